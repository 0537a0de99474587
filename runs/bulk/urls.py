"""Addresses of acts on many rows."""

from __future__ import annotations

from django.urls import path

from runs.bulk import views

urlpatterns = [
    path("bulk/runs/<str:act>", views.runs, name="bulk-runs"),
    path("projects/<int:project_id>/bulk/pulls/<str:act>", views.pulls, name="bulk-pulls"),
    path("projects/<int:project_id>/bulk/parked/<str:act>", views.parked, name="bulk-parked"),
]
