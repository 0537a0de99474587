"""A run's pull request that was closed without merging: reopen it, start again, or let it go."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from runs import wiring
from runs.core.ports import SeamError
from runs.core.states import AnswerCode, TrackerKind
from runs.dispatch import start_answers, start_requests
from runs.issues.remote_pages import WEB
from runs.kept import discard
from runs.kept import pages as kept_pages
from runs.kept.discard import DiscardRefused
from runs.models import Discarding, Project
from runs.people.stepup import confirmed
from runs.pulls import acts
from runs.web import answers
from runs.web.access import act, look, username
from runs.web.refusals import status_of
from trackers.base import TrackerError

GONE = "This pull request does not wait for a decision any more. Nothing was changed."


@require_GET
@look
def pull_closed(request: HttpRequest, project_id: int, number: int) -> HttpResponse:
    """What happened and the three ways on; back to the project when there is nothing to decide."""
    project = kept_pages.project_of(project_id)
    entry = _entry(project, number)
    if entry is None:
        return redirect("runs:project", project_id=project_id)
    _, branch, title, url = entry
    facts = {
        "project": project,
        "number": number,
        "branch": branch,
        "title": title,
        "key": project.claimed_key(branch) or "",
        "url": url if url.startswith(WEB) else reverse("runs:pull", args=[project_id, number]),
        "accepted": discard.accepted(project, branch),
        "is_builtin": project.tracker == TrackerKind.BUILTIN,
    }
    return answers.fresh(render(request, "kept/closed.html", facts))


@require_POST
@act
@confirmed
def pull_decide(request: HttpRequest, project_id: int, number: int) -> HttpResponse:
    """Carry out what was chosen: *reopen*, *again* or *discard*."""
    project = kept_pages.project_of(project_id)
    entry, back = _entry(project, number), reverse("runs:project", args=[project_id])
    if entry is None:
        return answers.failed(request, GONE, 409, back, "info")
    what, branch = request.POST.get("what", ""), entry[1]
    if what not in ("reopen", "again", "discard"):
        text = "Choose what is to happen with it. Nothing was changed."
        return answers.failed(request, text, 400, back)
    try:
        if what == "reopen":
            return _reopen(request, project, number)
        is_known = bool(request.POST.get("even_accepted"))
        by = username(request)
        done = discard.begin(wiring.lab(), project, branch, by, even_accepted=is_known)
    except DiscardRefused as refused:
        return answers.failed(request, refused.text, status_of(refused), back)
    except (SeamError, TrackerError) as error:
        text = f"It was not done; what was not removed is as it was: {error}"
        return answers.failed(request, text, 502, back)
    if isinstance(done, Discarding):
        text = discard.describe_wait(project, branch)
        more = " Start its issue when that is done." if what == "again" else ""
        return _done(request, back, text + more)
    text = f"{branch} was discarded. It is kept under Rescued. {done.on_origin}".strip()
    key = project.claimed_key(branch) or ""
    return _start(request, project, key, text) if what == "again" else _done(request, back, text)


def _reopen(request: HttpRequest, project: Project, number: int) -> HttpResponse:
    """Raises TrackerError, SeamError."""
    back = reverse("runs:pull", args=[project.pk, number])
    opened = acts.reopen(wiring.lab(), project, number, by=username(request))
    return _done(request, back, "" if opened else GONE)


def _start(request: HttpRequest, project: Project, key: str, text: str) -> HttpResponse:
    lab, back = wiring.lab(), reverse("runs:project", args=[project.pk])
    asked = start_requests.wait(lab, start_requests.request(lab, project, username(request), key))
    code, said = AnswerCode(asked.answer), f"{text} {start_answers.text(asked)}"
    if code is not AnswerCode.STARTED:
        return answers.failed(request, said, start_answers.STATUS[code], back, "warning")
    return _done(request, back, said)


def _done(request: HttpRequest, back: str, text: str) -> HttpResponse:
    return answers.done(request, {}, back, text)


def _entry(project: Project, number: int) -> list[str] | None:
    return next((entry for entry in project.pulls_closed if entry[0] == number), None)
