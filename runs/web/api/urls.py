"""Addresses below /api/: the description for people, and version 1 for programs."""

from __future__ import annotations

from django.urls import include, path

from runs.web.api import api, page

app_name = "api"
urlpatterns = [
    path("", page.page, name="page"),
    path("v1/openapi.json", page.openapi, name="openapi"),
    path("v1/", include(api.operations())),
    path("v1/<path:rest>", api.door(api.nothing)),
]
