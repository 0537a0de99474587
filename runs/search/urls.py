"""Addresses of search."""

from __future__ import annotations

from django.urls import path

from runs.search import views

urlpatterns = [
    path("search/", views.search, name="search"),
    path("shortcuts/", views.sheet, name="shortcuts"),
]
