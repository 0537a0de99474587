"""Addresses of a project's page *Checks*."""

from __future__ import annotations

from django.urls import include, path

from runs.specs import views

spec_patterns = [
    path("", views.page, name="spec"),
    path("live", views.live, name="spec-live"),
    path("export.json", views.export, name="spec-export"),
    path("<str:scope>.json", views.as_json, name="spec-json"),
    path("policy", views.policy, name="spec-policy"),
    path("terms", views.terms, name="spec-terms"),
    path("propose", views.propose, name="spec-propose"),
    path("import", views.import_file, name="spec-import"),
    path("commands/new", views.command_new, name="spec-command-new"),
    path("commands/<int:command_id>/", views.command, name="spec-command"),
    path("commands/<int:command_id>/move", views.command_move, name="spec-command-move"),
    path("commands/<int:command_id>/remove", views.command_remove, name="spec-command-remove"),
    path("reviewers/new", views.reviewer_new, name="spec-reviewer-new"),
    path("reviewers/<int:reviewer_id>/", views.reviewer, name="spec-reviewer"),
    path("reviewers/<int:reviewer_id>/remove", views.reviewer_remove, name="spec-reviewer-remove"),
]
urlpatterns = [path("projects/<int:project_id>/checks/", include(spec_patterns))]
