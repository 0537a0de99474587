"""Addresses of what is done with agents' profiles, below the settings."""

from __future__ import annotations

from django.urls import path

from runs.web.views import agents, held, logins

urlpatterns = [
    path("settings/live", agents.settings_live, name="settings-live"),
    path("settings/agents/<int:profile_id>/check", agents.check, name="agent-check"),
    path("settings/agents/<int:profile_id>/try-again", held.try_again, name="agent-try-again"),
    path("settings/agents/<int:profile_id>/login", logins.login_of, name="agent-login"),
    path("settings/agents/<int:profile_id>/login/begin", logins.begin, name="agent-login-begin"),
    path("settings/agents/<int:profile_id>/login/code", logins.code, name="agent-login-code"),
    path("settings/agents/<int:profile_id>/login/end", logins.end, name="agent-login-end"),
]
