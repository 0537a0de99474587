"""What people do with task groups: make one, add and settle tasks, watch it, close it, delete it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from runs import wiring
from runs.core.ports import SeamError
from runs.groups import acts, monitors, pages, tasks
from runs.groups import answers as group_answers
from runs.groups.forms import IssuesForm, MoreTasksForm, TasksForm
from runs.models import Project, TaskGroup
from runs.web import answers
from runs.web.access import act, username
from trackers.base import TrackerError

MADE = "The group was made. Start a monitor when its work begins."
ADDED = "{} added."
COMPLETED = "Task #{} is completed."
BACK = "Task #{} is free again; another worker can take it."
CLOSED = "The group is closed. Its tasks stay as they are."
CLOSED_BEFORE = "It was closed before. Nothing was changed."
DELETED = "The group {} was deleted."
Refused = (acts.GroupRefused, tasks.TaskRefused, TrackerError)


@require_http_methods(["GET", "POST"])
@act
def new(request: HttpRequest, project_id: int) -> HttpResponse:
    """Make a group of tasks that somebody writes, one a line."""
    project = pages.project_of(project_id)
    form = TasksForm(monitors.presets(), request.POST or None)

    def make() -> TaskGroup:
        given = form.cleaned_data
        return acts.make(
            wiring.lab(),
            project,
            given["name"],
            preset=given["preset"],
            new=form.new,
            by=username(request),
        )

    return _made(request, project, form, "tasks", make)


@require_http_methods(["GET", "POST"])
@act
def from_issues(request: HttpRequest, project_id: int) -> HttpResponse:
    """Make a group with a task for each of some issues, which follows the issue's runs."""
    project = pages.project_of(project_id)
    first = {"label": project.ready_label}
    form = IssuesForm(monitors.presets(), request.POST or None, initial=first)

    def make() -> TaskGroup:
        given = form.cleaned_data
        return acts.from_issues(
            wiring.lab(),
            project,
            given["name"],
            form.chosen,
            preset=given["preset"],
            by=username(request),
        )

    return _made(request, project, form, "issues", make)


@require_POST
@act
def add(request: HttpRequest, project_id: int, group_id: int) -> HttpResponse:
    """Add tasks, one a line, all or none."""
    group = pages.group_of(project_id, group_id)
    form = MoreTasksForm.of(group, request.POST)
    if form.is_valid():
        try:
            made = tasks.add(wiring.lab(), group, form.new, by=username(request))
        except tasks.TaskRefused as refused:
            form.add_error("tasks", str(refused))
        else:
            said = ADDED.format("1 task" if len(made) == 1 else f"{len(made)} tasks")
            more = {"task-form": _task_form(request, group, MoreTasksForm.of(group))}
            return group_answers.done(request, group, said, more)
    if answers.is_htmx(request):
        parts = {"task-form": _task_form(request, group, form)}
        return answers.fresh(HttpResponse(answers.partials(parts), status=422))
    facts = {"group": group, "project": group.project, "form": form}
    return answers.fresh(render(request, "groups/add.html", facts, status=422))


@require_POST
@act
def complete(request: HttpRequest, project_id: int, group_id: int, task_id: int) -> HttpResponse:
    """Call a task completed, whoever has it."""
    group = pages.group_of(project_id, group_id)
    key = pages.task_of(group, task_id).key
    return _settled(request, group, COMPLETED.format(key), tasks.complete, key)


@require_POST
@act
def hand_back(request: HttpRequest, project_id: int, group_id: int, task_id: int) -> HttpResponse:
    """Take a task from its worker, so that another can have it."""
    group = pages.group_of(project_id, group_id)
    key = pages.task_of(group, task_id).key
    return _settled(request, group, BACK.format(key), tasks.hand_back, key)


@require_POST
@act
def close(request: HttpRequest, project_id: int, group_id: int) -> HttpResponse:
    """End a group: its monitor stops, its tasks stay as they are."""
    group = pages.group_of(project_id, group_id)
    won = acts.close(wiring.lab(), group, username(request))
    return group_answers.done(request, group, CLOSED if won else CLOSED_BEFORE)


@require_POST
@act
def delete(request: HttpRequest, project_id: int, group_id: int) -> HttpResponse:
    """Remove a group with all that was told of it; without the second press the question is a page."""
    group = pages.group_of(project_id, group_id)
    if not request.POST.get("sure"):
        facts = {"group": group, "project": group.project}
        return answers.fresh(render(request, "groups/sure.html", facts))
    acts.delete(wiring.lab(), group, username(request))
    back = reverse("runs:groups", args=[project_id])
    if answers.is_htmx(request):
        return answers.elsewhere(request, back)
    return answers.done(request, {}, back, DELETED.format(group.name))


def _made(
    request: HttpRequest,
    project: Project,
    form: forms.Form,
    kind: str,
    make: Callable[[], TaskGroup],
) -> HttpResponse:
    """The new group's page, or the form with what does not fit at its field."""
    if request.method == "POST" and form.is_valid():
        try:
            group = make()
        except Refused as refused:
            _fill(form, refused)
        else:
            return answers.done(request, {}, group_answers.page_of(group), MADE)
    status = 422 if form.is_bound else 200
    facts = {"project": project, "form": form, "kind": kind}
    return answers.fresh(render(request, "groups/new.html", facts, status=status))


def _fill(form: forms.Form, refused: Exception) -> None:
    """The reasons at their fields; those of no field of this form stand above it."""
    fields = getattr(refused, "fields", {})
    for name, text in fields.items():
        form.add_error(name if name in form.fields else None, text)
    if not fields:
        form.add_error(None, f"{refused} Nothing was made.")


def _settled(
    request: HttpRequest, group: TaskGroup, said: str, verb: Callable[..., object], key: str
) -> HttpResponse:
    try:
        verb(wiring.lab(), group, key, by=username(request))
    except tasks.TaskRefused as refused:
        return group_answers.refused(request, group, str(refused))
    except SeamError as error:
        text = f"It was not done: {error}. Nothing was changed; try again."
        return group_answers.refused(request, group, text, 502)
    return group_answers.done(request, group, said)


def _task_form(request: HttpRequest, group: TaskGroup, form: Any) -> str:
    facts = {"group": group, "project": group.project, "form": form}
    return render_to_string("groups/_task_form.html", facts, request)
