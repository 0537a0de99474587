"""Addresses of History."""

from __future__ import annotations

from django.urls import path

from runs.history import file_views, views

urlpatterns = [
    path("history/", views.history, name="history"),
    path("history/live", views.history_live, name="history-live"),
    path("history/night", views.night, name="night"),
    path("history/night/live", views.night_live, name="night-live"),
    path("history/runs.csv", file_views.download, {"kind": "csv"}, name="history-csv"),
    path("history/runs.ndjson", file_views.download, {"kind": "ndjson"}, name="history-ndjson"),
    path("history/feed.atom", file_views.atom, name="history-feed"),
    path("projects/<int:project_id>/runs/", views.project_runs, name="project-runs"),
    path("projects/<int:project_id>/runs/live", views.project_runs_live, name="project-runs-live"),
    path("projects/<int:project_id>/badge.svg", file_views.badge_svg, name="badge-svg"),
    path("projects/<int:project_id>/badge", file_views.badge_page, name="badge"),
    path("runs/", views.runs, name="runs"),
]
