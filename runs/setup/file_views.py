"""Adds, replaces and removes the files that a project brings along."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_POST

from runs.core.ports import SeamError
from runs.models import Project
from runs.project_settings import views as settings_views
from runs.setup import file_acts
from runs.setup.file_acts import FileRefusedError
from runs.setup.file_pages import FileForm
from runs.web import answers
from runs.web.access import act, username
from runs.web.refusals import at_fields
from runs.wiring import lab

STORED = "{} stored. New worktrees get it; those that exist keep what they have."
REMOVED = "Removed. New worktrees no longer get it; those that exist keep it."
NONE = "No file was stored."
GONE = "This file was removed already."


@require_POST
@act
def store(request: HttpRequest, project_id: int) -> HttpResponse:
    """Add a file, or replace the one of the same path."""
    project = _project(project_id)
    form = FileForm(request.POST)
    if form.is_valid():
        path, content = form.cleaned_data["path"], form.cleaned_data["content"]
        try:
            made = file_acts.store(lab(), project, path, content, by=username(request))
        except FileRefusedError as refused:
            at_fields(form, refused)
        else:
            return answers.done(request, {}, _back(project_id), STORED.format(made.path))
    return settings_views.show_setup(request, project_id, form)


@require_POST
@act
def remove(request: HttpRequest, project_id: int, file_id: int) -> HttpResponse:
    """Bring a file along no more."""
    was_there = file_acts.remove(lab(), _project(project_id), file_id, by=username(request))
    text, level = (REMOVED, "success") if was_there else (GONE, "info")
    return answers.done(request, {}, _back(project_id), text, level)  # type: ignore[arg-type]


@require_POST
@act
def store_included(request: HttpRequest, project_id: int) -> HttpResponse:
    """Store the files that `.worktreeinclude` names, from the folder that the project was added by."""
    by, level = username(request), "success"
    try:
        stored, left_out = file_acts.store_included(lab(), _project(project_id), by=by)
    except SeamError as error:
        return answers.failed(request, f"Nothing was stored: {error}", 502, _back(project_id))
    text = f"Stored {', '.join(stored)}." if stored else NONE
    if left_out:
        level = "warning"
        text += "".join(f" {path} was not stored. {why}" for path, why in left_out.items())
    return answers.done(request, {}, _back(project_id), text, level)  # type: ignore[arg-type]


def _project(project_id: int) -> Project:
    return get_object_or_404(Project.objects.defer("token", "hook_secret"), pk=project_id)


def _back(project_id: int) -> str:
    return reverse("runs:project-settings-of", args=[project_id, "setup"])
