"""Watch sessions on the pages: opened, drained, aborted, killed, resumed; one of them, all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.urls import resolve, reverse
from django.urls.exceptions import Resolver404
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs import wiring
from runs.core.states import ValidationState
from runs.issues.pages import read_filter
from runs.models import Project, WatchSession
from runs.overview import attention
from runs.settings.acts import TuningRefused
from runs.validation import acts as validations
from runs.validation import command_settings
from runs.watch import acts, pages
from runs.watch.forms import ChecksForm, WatchForm
from runs.watch.pages import Chosen
from runs.watch.session import Request
from runs.web import access, answers, fragments, live
from runs.web.access import act, look, username
from runs.web.live import Live
from runs.web.refusals import at_fields, status_of

LIST = {**fragments.WATCHES, "watch-start": "watch/_new"}
OPENED = "A watch session was opened. It takes ready issues from now on."
NOTHING = "Nothing was started."
OVER = "It had ended already, or was asked for as much before. Nothing was changed."
SAID = {
    Request.DRAIN: "It drains: nothing new starts, and what runs may finish.",
    Request.ABORT: "It was aborted: what runs is interrupted and has ten seconds.",
    Request.KILL: "It was killed: what runs is ended now. Worktrees and branches are kept.",
}
RESUMED = "Automatic work goes on: the tracker is asked again."
GOES_ON = "There was nothing to resume. Nothing was changed."
SAVED = "The next validation runs these."
SAME = "Nothing was changed: it was so already."


@require_http_methods(["GET", "POST"])
@look
def sessions(request: HttpRequest, project_id: int) -> HttpResponse:
    """The sessions of a project; who may act opens one here."""
    project = pages.project_of(project_id)
    if request.method == "POST":
        if not access.may_act(request.user):
            return access.refused(request)
        return _opened(request, project)
    return _list(request, project, WatchForm())


@require_GET
@look
def sessions_live(request: HttpRequest, project_id: int) -> HttpResponse:
    """The list as it is now."""
    return live.refresh(request, _rows(request, pages.project_of(project_id), WatchForm()))


@require_GET
@look
def session(request: HttpRequest, project_id: int, session_id: int) -> HttpResponse:
    """One session: how it stands, its validations, its runs."""
    project = pages.project_of(project_id)
    row = pages.session_of(project, session_id)
    seen = pages.seen(row)
    if access.may_act(request.user):
        attention.opened(row, wiring.lab().now())
    chosen = Chosen.read(request.GET)
    # A push shows what is newest, so a page on what is older only refreshes.
    pushed = f"watch:{session_id}" if chosen.is_newest else ""
    shown, at = _session(project, session_id, chosen, seen, pushed), (project_id, session_id)
    return live.page(request, "watch/session.html", shown, "runs:watch-live", *at)


@require_GET
@look
def session_live(request: HttpRequest, project_id: int, session_id: int) -> HttpResponse:
    """Its live parts; the output of a running command is asked each time."""
    project = pages.project_of(project_id)
    row = pages.session_of(project, session_id)
    seen = None if row.last_validation_state == ValidationState.RUNNING else pages.seen(row)
    return live.refresh(request, _session(project, session_id, Chosen.read(request.GET), seen))


@require_POST
@act
def drain(request: HttpRequest, project_id: int, session_id: int) -> HttpResponse:
    """Start nothing more and let what runs finish."""
    return _ask(request, project_id, session_id, Request.DRAIN)


@require_POST
@act
def abort(request: HttpRequest, project_id: int, session_id: int) -> HttpResponse:
    """Interrupt what runs; without the second press the question is a page."""
    return _ask(request, project_id, session_id, Request.ABORT)


@require_POST
@act
def kill(request: HttpRequest, project_id: int, session_id: int) -> HttpResponse:
    """End what runs at once; without the second press the question is a page."""
    return _ask(request, project_id, session_id, Request.KILL)


@require_POST
@act
def validate(request: HttpRequest, project_id: int, session_id: int) -> HttpResponse:
    """Validate an ended session again."""
    project = pages.project_of(project_id)
    row = pages.session_of(project, session_id)
    back = reverse("runs:watch-session", args=[project_id, session_id])
    before = validations.latest(row)
    try:
        begun = validations.validate_again(wiring.lab(), row, username(request))
    except validations.CheckRefused as refused:
        return answers.failed(request, refused.text, status_of(refused), back)
    is_htmx = answers.is_htmx(request)
    regions = live.regions(request, _session(project, session_id)) if is_htmx else {}
    if begun == before:
        return answers.done(
            request, regions, back, f"Validation {begun.number} is already running.", "info"
        )
    return answers.done(request, regions, back, f"Started validation {begun.number}.")


@require_POST
@act
def resume(request: HttpRequest, project_id: int) -> HttpResponse:
    """Let automatic work go on whose tracker could not be reached."""
    project = get_object_or_404(Project, pk=project_id)
    was = acts.resume(wiring.lab(), project, username(request))
    regions = _of_project(request, project_id)
    back = reverse("runs:project", args=[project_id])
    text = RESUMED if was else GOES_ON
    return answers.done(request, regions, back, text, "success" if was else "info")


@require_http_methods(["GET", "POST"])
@look
def checks(request: HttpRequest, project_id: int) -> HttpResponse:
    """What validations of a project run; changed by whoever may act."""
    project = pages.project_of(project_id)
    form, status = ChecksForm.stored(project), 200
    if request.method == "POST":
        if not access.may_act(request.user):
            return access.refused(request)
        form, status = ChecksForm(request.POST), 422
        changed = _stored(project, form, username(request))
        if changed is not None:
            back = reverse("runs:checks", args=[project_id])
            text, level = (SAVED, "success") if changed else (SAME, "info")
            return answers.done(request, {}, back, text, level)  # type: ignore[arg-type]
    context = {"project": project, "form": form}
    return answers.fresh(render(request, "validation/checks.html", context, status=status))


def _stored(project: Project, form: ChecksForm, by: str) -> bool | None:
    """Whether something was changed; None with the reason at its field."""
    if not form.is_valid():
        return None
    try:
        return command_settings.store(wiring.lab(), project, **form.cleaned_data, by=by)
    except TuningRefused as refused:
        at_fields(form, refused)
        return None


def _opened(request: HttpRequest, project: Project) -> HttpResponse:
    form = WatchForm(request.POST)
    if not form.is_valid():
        return _refused(request, project, form, 422)
    try:
        made = acts.open(wiring.lab(), project, form.terms, username(request))
    except acts.AlreadyOpen as refused:
        at_fields(form, refused)
        return _refused(request, project, form, 409, refused.session)
    except acts.WatchRefused as refused:
        at_fields(form, refused)
        return _refused(request, project, form, 409)
    back = reverse("runs:watch-session", args=[project.pk, made.pk])
    if not answers.is_htmx(request):
        return answers.elsewhere(request, back)
    regions = {
        **_of_project(request, project.pk),
        "watch-form": _form(request, project, WatchForm()),
    }
    return answers.done(request, regions, back, OPENED)


def _refused(
    request: HttpRequest,
    project: Project,
    form: WatchForm,
    status: int,
    other: WatchSession | None = None,
) -> HttpResponse:
    """The form with what is wrong, and the way to the session that is open."""
    if not answers.is_htmx(request):
        return _list(request, project, form, status, other)
    said = " ".join(str(error) for errors in form.errors.values() for error in errors)
    text = said if NOTHING in said else f"{said}. {NOTHING}"
    parts = {"banner": answers.banner(text), "watch-form": _form(request, project, form, other)}
    regions = _of_project(request, project.pk) if other is not None else {}
    return answers.fresh(HttpResponse(answers.partials({**regions, **parts}), status=status))


def _list(
    request: HttpRequest,
    project: Project,
    form: WatchForm,
    status: int = 200,
    other: WatchSession | None = None,
) -> HttpResponse:
    shown, at = _rows(request, project, form), "runs:watches-live"
    return live.page(request, "watch/list.html", shown, at, project.pk, status=status, other=other)


def _rows(request: HttpRequest, project: Project, form: WatchForm) -> Live:
    page = read_filter(request.GET).page
    pushed = f"watches:{project.pk}" if page == 1 else ""

    def facts() -> dict[str, Any]:
        return {**pages.sessions(project, page), "form": form}

    return live.of_project(project, LIST, facts, pushed=pushed)


def _form(
    request: HttpRequest, project: Project, form: WatchForm, other: WatchSession | None = None
) -> str:
    context = {"project": project, "form": form, "other": other}
    return render_to_string("watch/_form.html", context, request)


def _ask(request: HttpRequest, project_id: int, session_id: int, wanted: Request) -> HttpResponse:
    project = pages.project_of(project_id)
    row = pages.session_of(project, session_id)
    if wanted > Request.DRAIN and not request.POST.get("sure"):
        watch = pages.card(row)
        button = watch.button(wanted.name.lower())
        context = {"project": project, "watch": watch, "button": button}
        return answers.fresh(render(request, "watch/sure.html", context))
    won = acts.ask(wiring.lab(), row, wanted, username(request))
    text, level = (SAID[wanted], "success") if won else (OVER, "info")
    back = reverse("runs:watch-session", args=[project_id, session_id])
    if _is_on(request, "watch-session"):
        regions = live.regions(request, _session(project, session_id))
    else:
        regions = _of_project(request, project_id)
    return answers.done(request, regions, back, text, level)  # type: ignore[arg-type]


def _session(
    project: Project,
    session_id: int,
    chosen: Chosen = pages.NEWEST,
    seen: str | None = "",
    pushed: str = "",
) -> Live:
    def facts() -> Mapping[str, Any]:
        return pages.session(wiring.lab(), project, session_id, chosen)

    return live.of_project(project, fragments.WATCH, facts, seen, pushed)


def _of_project(request: HttpRequest, project_id: int) -> dict[str, str]:
    """What changed on the page that the press was on."""
    if not answers.is_htmx(request):
        return {}
    return fragments.regions(fragments.here(request), True, request) or {}


def _is_on(request: HttpRequest, name: str) -> bool:
    """Whether an htmx request came from the page of this name."""
    path = request.headers.get("HX-Current-URL", "").partition("://")[2]
    try:
        return resolve(f"/{path.partition('/')[2].partition('?')[0]}").url_name == name
    except Resolver404:
        return False
