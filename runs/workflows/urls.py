"""Addresses of composite workflows."""

from __future__ import annotations

from django.urls import include, path

from runs.workflows import views

workflow_patterns = [
    path("", views.workflows, name="workflows"),
    path("live", views.workflows_live, name="workflows-live"),
    path("<int:workflow_id>/", views.workflow, name="workflow"),
    path("<int:workflow_id>/live", views.workflow_live, name="workflow-live"),
    path("<int:workflow_id>/stop", views.stop, name="workflow-stop"),
    path(
        "<int:workflow_id>/phases/<int:phase_number>/restart",
        views.restart,
        name="workflow-restart",
    ),
]
urlpatterns = [path("projects/<int:project_id>/workflows/", include(workflow_patterns))]
