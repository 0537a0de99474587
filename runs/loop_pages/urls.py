"""Addresses of the loops of a project and of a run."""

from __future__ import annotations

from django.urls import include, path

from runs.loop_pages import import_views, run_views
from runs.loop_pages import settings_views as settings

_settings_patterns = [
    path("", settings.page, name="loop-settings"),
    path("live", settings.live, name="loop-settings-live"),
    path("terms", settings.terms, name="loop-terms"),
    path("import", import_views.import_ralph, name="loop-import"),
    path("roles/new", settings.role_new, name="loop-role-new"),
    path("roles/<int:role_id>/", settings.role, name="loop-role"),
    path("roles/<int:role_id>/remove", settings.role_remove, name="loop-role-remove"),
    path("memories/<int:memory_id>/remove", settings.memory_remove, name="loop-memory-remove"),
]
_turn = "turns/<int:generation_number>-<int:number>"
_run_patterns = [
    path("turns/", run_views.turns, name="run-turns"),
    path("turns/live", run_views.turns_live, name="run-turns-live"),
    path(f"{_turn}/", run_views.turn, name="run-turn"),
    path(f"{_turn}/prompt", run_views.turn_prompt, name="run-turn-prompt"),
    path(f"{_turn}/live", run_views.turn_live, name="run-turn-live"),
    path("loop/guide", run_views.guide, name="run-guide"),
    path("loop/stop", run_views.stop, name="run-loop-stop"),
    path("loop/restart", run_views.restart, name="run-loop-restart"),
]
urlpatterns = [
    path("projects/<int:project_id>/loops/", include(_settings_patterns)),
    path("runs/<int:run_id>/", include(_run_patterns)),
]
