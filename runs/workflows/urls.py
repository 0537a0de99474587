"""Addresses of composite workflows."""

from __future__ import annotations

from django.urls import include, path

from runs.workflows import views as workflows

workflow_patterns = [
    path("", workflows.workflows, name="workflows"),
    path("live", workflows.workflows_live, name="workflows-live"),
    path("<int:workflow_id>/", workflows.workflow, name="workflow"),
    path("<int:workflow_id>/live", workflows.workflow_live, name="workflow-live"),
    path("<int:workflow_id>/stop", workflows.stop, name="workflow-stop"),
    path(
        "<int:workflow_id>/phases/<int:phase_number>/restart",
        workflows.restart,
        name="workflow-restart",
    ),
]
urlpatterns = [path("projects/<int:project_id>/workflows/", include(workflow_patterns))]
