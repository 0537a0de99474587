"""Addresses of login, logout, one-time links, one's own account, and health."""

from __future__ import annotations

from django.urls import path

from runs.notices import views as notices
from runs.overview import health_views
from runs.people import account_views, auth_views, confirm_views, passkey_views, token_views
from runs.telemetry import views as metrics

urlpatterns = [
    path("login/", auth_views.Login.as_view(), name="login"),
    path("login/again", auth_views.Again.as_view(), name="login-again"),
    path("logout/", auth_views.Logout.as_view(), name="logout"),
    path("setup/<str:token>/", auth_views.first_account, name="setup"),
    path("invite/<int:person_id>/<str:token>/", auth_views.invite, name="invite"),
    path("confirm/", confirm_views.confirm, name="confirm"),
    path("account/", account_views.account, name="account"),
    path("account/live", account_views.account_live, name="account-live"),
    path("account/password", account_views.password, name="password"),
    path("account/tokens/new", token_views.token_new, name="token-new"),
    path("account/tokens/<int:token_id>/revoke", token_views.token_revoke, name="token-revoke"),
    path("account/notices/", notices.notices, name="notices"),
    path("account/notices/live", notices.notices_live, name="notices-live"),
    path("account/notices/new", notices.address_new, name="notice-address-new"),
    path("account/notices/device", notices.device_new, name="device-new"),
    path("account/notices/quiet", notices.quiet, name="notice-times"),
    path("account/notices/<int:address_id>/", notices.address, name="notice-address"),
    path("account/notices/<int:address_id>/test", notices.test, name="notice-address-test"),
    path("account/notices/<int:address_id>/remove", notices.remove, name="notice-address-remove"),
    path("account/passkeys/new", passkey_views.passkey_new, name="passkey-new"),
    path("account/passkeys/add", passkey_views.passkey_invitation, name="passkey-add"),
    path("account/passkeys/<int:passkey_id>/remove", passkey_views.remove, name="passkey-remove"),
    path("login/passkey/question", passkey_views.login_question, name="passkey-login-question"),
    path("login/passkey", passkey_views.login_answer, name="passkey-login"),
    path(
        "confirm/passkey/question", passkey_views.confirm_question, name="passkey-confirm-question"
    ),
    path("confirm/passkey", passkey_views.confirm_answer, name="passkey-confirm"),
    path("healthz", health_views.healthz, name="healthz"),
    path("readyz", health_views.readyz, name="readyz"),
    path("metrics", metrics.metrics, name="metrics"),
]
