"""Pages of pull requests in the built-in tracker."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from runs.core.ports import SeamError
from runs.issues import pages as issue_pages
from runs.models import Project
from runs.pulls import acts, merging, pages
from runs.pulls.merging import MergeRefused, Seen
from runs.validation import acts as validation_acts
from runs.validation.acts import CheckRefused
from runs.web import addresses, answers, live
from runs.web.access import act, look, username
from runs.web.live import Live
from runs.web.refusals import status_of
from runs.wiring import lab
from trackers.base import Refused, TrackerError
from trackers.builtin import queries


@require_GET
@look
def pull_list(request: HttpRequest, project_id: int) -> HttpResponse:
    """The pull requests of a project: the open ones, or those that ended."""
    shown = _list(request, project_id)
    return live.page(request, "pulls/list.html", shown, "runs:pulls-live", project_id)


@require_GET
@look
def pull_list_live(request: HttpRequest, project_id: int) -> HttpResponse:
    """The live parts of the list."""
    return live.refresh(request, _list(request, project_id))


def _list(request: HttpRequest, project_id: int) -> Live:
    project = issue_pages.project_of(project_id)
    facts = issue_pages.facts(pages.pull_list, project, issue_pages.read_filter(request.GET))
    return live.of_project(project, pages.LIST, facts)


@require_GET
@look
def pull(request: HttpRequest, project_id: int, number: int) -> HttpResponse:
    """One pull request: text, comments, branches, state, issue, run."""
    project = issue_pages.project_of(project_id)
    facts = issue_pages.facts(pages.reviewed, project, number)
    shown, at = live.of_project(project, pages.PULL, facts), (project_id, number)
    return live.page(request, "pulls/detail.html", shown, "runs:pull-live", *at)


@require_GET
@look
def pull_live(request: HttpRequest, project_id: int, number: int) -> HttpResponse:
    """The live parts of one pull request."""
    project = issue_pages.project_of(project_id)
    facts = issue_pages.facts(pages.conversation, project, number)
    return live.refresh(request, live.of_project(project, pages.PULL, facts))


@require_POST
@act
def pull_close(request: HttpRequest, project_id: int, number: int) -> HttpResponse:
    """Close it unmerged. Its branch stays."""
    project = issue_pages.project_of(project_id)
    back = reverse("runs:pull", args=[project.pk, number])
    try:
        closed = acts.close(lab(), project, number, by=username(request))
    except Refused as error:
        return answers.failed(request, str(error), 409, back, "info")
    except TrackerError as error:
        raise Http404(str(error)) from error
    if not closed:
        text = f"Pull request {number} was not open any more. Nothing was changed."
        return answers.failed(request, text, 409, back, "info")
    return _acted(request, project, number, "")


@require_POST
@act
def pull_merge(request: HttpRequest, project_id: int, number: int) -> HttpResponse:
    """Merge it, if it is still what the reader saw."""
    project = issue_pages.project_of(project_id)
    back = reverse("runs:pull", args=[project.pk, number])
    seen = Seen(**{name: request.GET.get(name, "") for name in ("head", "into", "checks")})
    try:
        done = merging.merge(lab(), project, number, by=username(request), seen=seen)
    except MergeRefused as error:
        return _not_merged(request, project, number, error.text, 409)
    except SeamError as error:
        return _not_merged(request, project, number, f"It was not merged: {error}", 502)
    except Refused as error:
        return answers.failed(request, str(error), 409, back)
    except TrackerError as error:
        raise Http404(str(error)) from error
    closed = "".join(f" Issue {one} is closed." for one in done.closed)
    text = f"Pull request {number} was merged into {done.into}.{closed}"
    return _acted(request, project, number, text)


@require_POST
@act
def pull_check(request: HttpRequest, project_id: int, number: int) -> HttpResponse:
    """Run the project's commands on what it delivers."""
    project = issue_pages.project_of(project_id)
    back = reverse("runs:pull", args=[project.pk, number])
    try:
        pull = queries.pull(project.tracker_root, number)
        validation_acts.check_delivery(lab(), project, pull.head, username(request))
    except CheckRefused as refused:
        return answers.failed(request, refused.text, status_of(refused), back)
    except TrackerError as error:
        raise Http404(str(error)) from error
    return _acted(request, project, number, "The project's checks have begun on it.")


def _not_merged(
    request: HttpRequest, project: Project, number: int, text: str, status: int
) -> HttpResponse:
    """The reason, and the card as things stand now."""
    if not answers.is_htmx(request):
        back = reverse("runs:pull", args=[project.pk, number])
        return answers.failed(request, text, status, back, "warning")
    facts = issue_pages.facts(pages.mergeable_frame, project, number, "conversation")
    answer = live.refused(request, pages.ACTED, facts(), text)
    answer.status_code = status
    return answer


def _acted(request: HttpRequest, project: Project, number: int, text: str) -> HttpResponse:
    """What a merge or a close changes on the page that it was pressed on."""
    facts = issue_pages.facts(pages.mergeable_frame, project, number, tab_of(request))
    back = reverse("runs:pull", args=[project.pk, number])
    shown = live.of_project(project, pages.ACTED, facts)
    return live.changed(request, shown, back, text)


def tab_of(request: HttpRequest) -> str:
    """The part of the pull request that the reader looks at."""
    path = addresses.path_in(request.headers.get("HX-Current-URL", ""))
    last = path.rstrip("/").rpartition("/")[2]
    return last if last in ("commits", "files") else "conversation"
