"""Task groups on the pages: all of a project, one of them, its tasks, what was told of it."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from runs.groups import pages
from runs.groups.forms import MoreTasksForm
from runs.issues.pages import read_filter
from runs.web import answers, live
from runs.web.access import look
from runs.web.live import Live

LIST = {"group-rows": "groups/_rows"}
LAST = 2**63 - 1


@require_GET
@look
def groups(request: HttpRequest, project_id: int) -> HttpResponse:
    """The task groups of a project."""
    shown = _list(request, project_id)
    return live.page(request, "groups/list.html", shown, "runs:groups-live", project_id)


@require_GET
@look
def groups_live(request: HttpRequest, project_id: int) -> HttpResponse:
    """The list as it is now."""
    return live.refresh(request, _list(request, project_id))


@require_GET
@look
def all_groups(request: HttpRequest) -> HttpResponse:
    """The task groups of all projects."""
    return live.page(request, "groups/all.html", _all(request), "runs:groups-all-live")


@require_GET
@look
def all_groups_live(request: HttpRequest) -> HttpResponse:
    """The same list as it is now."""
    return live.refresh(request, _all(request))


def _all(request: HttpRequest) -> Live:
    page = read_filter(request.GET).page
    return Live("chrome", LIST, lambda: pages.all_groups(page))


def _list(request: HttpRequest, project_id: int) -> Live:
    project = pages.project_of(project_id)
    page = read_filter(request.GET).page
    return live.of_project(project, LIST, lambda: pages.groups(project, page))


@require_GET
@look
def group(request: HttpRequest, project_id: int, group_id: int) -> HttpResponse:
    """One group: how far it is, what holds it up, who works on it."""
    found = pages.group_of(project_id, group_id)
    return live.page(
        request,
        "groups/group.html",
        Live(f"group:{group_id}"),
        "runs:group-live",
        project_id,
        group_id,
        task_form=MoreTasksForm.of(found),
    )


@require_GET
@look
def group_live(request: HttpRequest, project_id: int, group_id: int) -> HttpResponse:
    """Its live parts."""
    return live.refresh(request, Live(f"group:{group_id}"))


@require_GET
@look
def tasks(request: HttpRequest, project_id: int, group_id: int) -> HttpResponse:
    """All tasks of a group, a page at a time."""
    found = pages.group_of(project_id, group_id)
    page = read_filter(request.GET).page
    return answers.fresh(render(request, "groups/tasks.html", pages.tasks(found, page)))


@require_GET
@look
def feed(request: HttpRequest, project_id: int, group_id: int) -> HttpResponse:
    """What was told of a group before the entry that the address names."""
    found = pages.group_of(project_id, group_id)
    sent = request.GET.get("before", "")
    before = int(sent) if sent.isascii() and sent.isdigit() and len(sent) < 19 else LAST
    return answers.fresh(render(request, "groups/feed.html", pages.older(found, before)))
