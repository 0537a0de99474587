"""Addresses below /api/: the description for people, and version 1 for programs."""

from __future__ import annotations

from django.urls import include, path, register_converter
from django.urls.converters import StringConverter

from runs.api import api, page


class Rest(StringConverter):
    """What follows, whatever it is. `path` stops at a line break."""

    regex = r"[\s\S]+"


register_converter(Rest, "rest")

app_name = "api"
urlpatterns = [
    path("", page.page, name="page"),
    path("v1/openapi.json", page.openapi, name="openapi"),
    path("v1/", include(api.operations())),
    path("v1/<rest:rest>", api.door(api.nothing)),
]
