"""Addresses of the pages, in small lists by prefix."""

from __future__ import annotations

from runs.web import account_urls

app_name = "runs"
urlpatterns = [*account_urls.urlpatterns]
