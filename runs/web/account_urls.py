"""Addresses of login, logout, first account and health."""

from __future__ import annotations

from django.urls import path

from runs.web.views import auth, health

urlpatterns = [
    path("login/", auth.Login.as_view(), name="login"),
    path("logout/", auth.Logout.as_view(), name="logout"),
    path("setup/<str:token>/", auth.first_account, name="setup"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
]
