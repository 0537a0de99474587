"""How acts on a task group answer: its page as it is now, or the way there."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from runs.models import TaskGroup
from runs.web import answers, fragments


def page_of(group: TaskGroup) -> str:
    """The address of a group's page."""
    return reverse("runs:group", args=[group.project_id, group.pk])


def done(
    request: HttpRequest, group: TaskGroup, said: str, more: Mapping[str, str] | None = None
) -> HttpResponse:
    """The live parts of its page and `more` of it, or 303 back there."""
    regions: Mapping[str, str] = {}
    if answers.is_htmx(request):
        regions = fragments.regions(f"group:{group.pk}", True, request) or {}
    return answers.done(request, {**regions, **(more or {})}, page_of(group), said)


def refused(request: HttpRequest, group: TaskGroup, text: str, status: int = 409) -> HttpResponse:
    """What was not done and why, in the banner."""
    return answers.failed(request, text, status, page_of(group))
