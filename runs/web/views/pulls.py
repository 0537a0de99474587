"""Pages of pull requests in the built-in tracker."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from runs.web import answers, issue_live, issue_pages, pull_pages
from runs.web.access import act, look, username
from runs.wiring import lab
from runs.work import pulls as verbs
from trackers.base import TrackerError


@require_GET
@look
def pull_list(request: HttpRequest, project_id: int) -> HttpResponse:
    """The pull requests of a project: the open ones, or those that ended."""
    project = issue_pages.project_of(project_id)
    facts = issue_pages.facts(pull_pages.pull_list, project, issue_pages.read_filter(request.GET))
    return issue_live.page(request, project, "pulls/list.html", facts, "pulls-live")


@require_GET
@look
def pull_list_live(request: HttpRequest, project_id: int) -> HttpResponse:
    """The live parts of the list."""
    project = issue_pages.project_of(project_id)
    facts = issue_pages.facts(pull_pages.pull_list, project, issue_pages.read_filter(request.GET))
    return issue_live.refresh(request, project, issue_live.PULL_LIST, facts)


@require_GET
@look
def pull(request: HttpRequest, project_id: int, number: int) -> HttpResponse:
    """One pull request: text, comments, branches, state, issue, run."""
    project = issue_pages.project_of(project_id)
    facts = issue_pages.facts(pull_pages.conversation, project, number)
    return issue_live.page(request, project, "pulls/detail.html", facts, "pull-live", number)


@require_GET
@look
def pull_live(request: HttpRequest, project_id: int, number: int) -> HttpResponse:
    """The live parts of one pull request."""
    project = issue_pages.project_of(project_id)
    facts = issue_pages.facts(pull_pages.conversation, project, number)
    return issue_live.refresh(request, project, issue_live.PULL, facts)


@require_POST
@act
def pull_close(request: HttpRequest, project_id: int, number: int) -> HttpResponse:
    """Close it unmerged. Its branch stays."""
    project = issue_pages.project_of(project_id)
    back = reverse("runs:pull", args=[project.pk, number])
    try:
        closed = verbs.close(lab(), project, number, by=username(request))
    except TrackerError as error:
        raise Http404(str(error)) from error
    if not closed:
        text = f"Pull request {number} was not open any more. Nothing was changed."
        return answers.failed(request, text, 409, back, "info")
    facts = issue_pages.facts(pull_pages.frame, project, number, "conversation")
    return issue_live.changed(request, project, issue_live.PULL_FRAME, facts, back)
