"""Addresses of the pages, in small lists by prefix."""

from __future__ import annotations

app_name = "runs"
urlpatterns: list = []
