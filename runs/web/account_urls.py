"""Addresses of login, logout, one-time links, one's own account, and health."""

from __future__ import annotations

from django.urls import path

from runs.web.views import account, auth, confirm, health, notices, passkeys, tokens

urlpatterns = [
    path("login/", auth.Login.as_view(), name="login"),
    path("login/again", auth.Again.as_view(), name="login-again"),
    path("logout/", auth.Logout.as_view(), name="logout"),
    path("setup/<str:token>/", auth.first_account, name="setup"),
    path("invite/<int:person_id>/<str:token>/", auth.invite, name="invite"),
    path("confirm/", confirm.confirm, name="confirm"),
    path("account/", account.account, name="account"),
    path("account/password", account.password, name="password"),
    path("account/tokens/new", tokens.token_new, name="token-new"),
    path("account/tokens/<int:token_id>/revoke", tokens.token_revoke, name="token-revoke"),
    path("account/notices/", notices.notices, name="notices"),
    path("account/notices/new", notices.address_new, name="notice-address-new"),
    path("account/notices/<int:address_id>/", notices.address, name="notice-address"),
    path("account/notices/<int:address_id>/test", notices.test, name="notice-address-test"),
    path("account/notices/<int:address_id>/remove", notices.remove, name="notice-address-remove"),
    path("account/passkeys/new", passkeys.passkey_new, name="passkey-new"),
    path("account/passkeys/add", passkeys.passkey_invitation, name="passkey-add"),
    path("account/passkeys/<int:passkey_id>/remove", passkeys.remove, name="passkey-remove"),
    path("login/passkey/question", passkeys.login_question, name="passkey-login-question"),
    path("login/passkey", passkeys.login_answer, name="passkey-login"),
    path("confirm/passkey/question", passkeys.confirm_question, name="passkey-confirm-question"),
    path("confirm/passkey", passkeys.confirm_answer, name="passkey-confirm"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
]
