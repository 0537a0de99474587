"""Addresses of what is done with agents' profiles, below the settings."""

from __future__ import annotations

from django.urls import path

from runs.accounts import login_views
from runs.accounts import views as account_views
from runs.agents import views

urlpatterns = [
    path("settings/live", views.settings_live, name="settings-live"),
    path("settings/agents/<int:profile_id>/check", views.check, name="agent-check"),
    path(
        "settings/agents/<int:profile_id>/try-again",
        account_views.try_again,
        name="agent-try-again",
    ),
    path("settings/agents/<int:profile_id>/try", views.try_out, name="agent-try"),
    path("settings/trials/<int:trial_id>/", views.trial_of, name="agent-trial"),
    path("settings/trials/<int:trial_id>/live", views.trial_live, name="agent-trial-live"),
    path("settings/trials/<int:trial_id>/stop", views.trial_stop, name="agent-trial-stop"),
    path("settings/agents/<int:profile_id>/login", login_views.login_of, name="agent-login"),
    path(
        "settings/agents/<int:profile_id>/login/begin", login_views.begin, name="agent-login-begin"
    ),
    path("settings/agents/<int:profile_id>/login/code", login_views.code, name="agent-login-code"),
    path("settings/agents/<int:profile_id>/login/end", login_views.end, name="agent-login-end"),
]
