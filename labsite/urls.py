"""All addresses."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

admin.site.site_header = "labsite"
admin.site.site_title = "labsite"
admin.site.index_title = "Budgets, caps and profiles"

urlpatterns = [
    path("admin/", admin.site.urls),
    path("", include("runs.web.urls")),
]
