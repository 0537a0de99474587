"""Watch sessions over the API: list, open, show, drain, abort, kill, resume; their validations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Query, Status
from pydantic import BaseModel, Field

from runs.api import replies, showing
from runs.api.asked import BIGGEST_NUMBER, WHOLE, Given, Paging, ProjectId, RunId
from runs.api.router import Router
from runs.models import Run, WatchSession
from runs.projects.api import project_of
from runs.validation import acts as validations
from runs.validation.schemas import Validations, ValidationShown, validation
from runs.validation.specs import Switch, Switches
from runs.watch import acts
from runs.watch.session import EVERY, LIMIT, Terms, WrongTerms, read_terms
from runs.watch.session import Request as Asked
from runs.web.access import username
from runs.web.refusals import INVALID, Denied
from runs.wiring import lab
from trackers.base import NotFound

router = Router(tags=["Watch sessions"])

OVER = "It had ended already, or was asked for as much before. Nothing was changed."
RUNNING = "There was nothing to resume. Nothing was changed."
Off = Annotated[Switch, Field(strict=False)]
Percent = Annotated[float, Field(ge=0, le=100, strict=True)]
Count = Annotated[int, Field(ge=-BIGGEST_NUMBER, le=BIGGEST_NUMBER), WHOLE]


class NewWatch(Given):
    """`max_issues`: null for no limit. `validate_every`: null for 10 while it watches, else at the end.

    The rest is over the checks of the project, for this session: what is turned off, the percentage
    of coverage that is needed, and whether clean worktrees of failures are kept. Null: as it says.
    """

    watch: Annotated[bool, Field(strict=True)] = False
    max_issues: Count | None = None
    validate_every: Count | None = None
    disable_validations: Annotated[list[Off], Field(max_length=len(Switch))] = []
    coverage_threshold: Percent | None = None
    keep_worktrees: Annotated[bool, Field(strict=True)] | None = None


class Watch(BaseModel):
    """A watch session. `code` and `reason` are there once it has ended; `active` are its live runs.

    `held` says why its last poll started nothing although something was ready. The last three are
    over the checks of its project; null: as it says.
    """

    id: int
    project: int
    is_auto: bool
    watch: bool
    max_issues: int | None
    validate_every: int | None
    state: str
    completed: int
    failed: int
    unstarted: int
    stopped: int
    held: str
    threshold: int | None
    validated: int
    poll_failures: int
    next_poll_at: datetime | None
    request: Literal["none", "drain", "abort", "kill"]
    asked_by: str
    opened_by: str
    opened_at: datetime
    ended_at: datetime | None
    code: int | None
    reason: str
    needs_resume: bool
    active: list[int]
    disable_validations: list[Switch]
    coverage_threshold: float | None
    keep_worktrees: bool | None


class Watches(BaseModel):
    items: list[Watch]
    next: int | None


@router.get(
    "/{int:project_id}/watch", response=replies.look(Watches), summary="List watch sessions"
)
def watch_list(request: HttpRequest, project_id: ProjectId, wanted: Query[Paging]) -> Watches:
    """The sessions of a project, newest first; the open one is the first."""
    rows = WatchSession.objects.filter(project=project_of(project_id))
    page, cursor = showing.page(rows, wanted)
    return Watches(items=_shown(page), next=cursor)


@router.post(
    "/{int:project_id}/watch", response=replies.given(Watch, 201), summary="Open a watch session"
)
def watch_open(request: HttpRequest, project_id: ProjectId, given: NewWatch) -> Status[Watch]:
    """Open a session; one can be open a project."""
    project = project_of(project_id)
    try:
        made = acts.open(lab(), project, _terms(given), username(request))
    except acts.AlreadyOpen as refused:
        text = f"{refused} It is session {refused.session.pk}."
        raise Denied(409, "already_open", text) from refused
    return Status(201, _one(made))


@router.post(
    "/{int:project_id}/watch/resume",
    response=replies.act(Watch),
    summary="Resume automatic work",
)
def watch_resume(request: HttpRequest, project_id: ProjectId) -> Watch:
    """Let automatic work go on that stopped because its tracker could not be reached."""
    project = project_of(project_id)
    if not acts.resume(lab(), project, username(request)):
        raise Denied(409, "nothing_to_resume", RUNNING)
    found = acts.open_of(project)
    if found is None:
        raise Denied(409, "nothing_to_resume", RUNNING)
    return _one(found)


@router.get(
    "/{int:project_id}/watch/{int:session_id}",
    response=replies.look(Watch),
    summary="Show a watch session",
)
def watch_show(request: HttpRequest, project_id: ProjectId, session_id: RunId) -> Watch:
    return _one(_session_of(project_id, session_id))


@router.get(
    "/{int:project_id}/watch/{int:session_id}/validations",
    response=replies.look(Validations),
    summary="List the validations of a watch session",
)
def watch_validations(
    request: HttpRequest, project_id: ProjectId, session_id: RunId, wanted: Query[Paging]
) -> Validations:
    """The newest first, each with its commands and fixers; `cursor` is the number of the last one."""
    rows = _session_of(project_id, session_id).validations.prefetch_related("fixers")
    page, cursor = showing.page(rows, wanted, "-number")
    return Validations(items=[validation(one) for one in page], next=cursor)


@router.post(
    "/{int:project_id}/watch/{int:session_id}/drain",
    response=replies.act(Watch),
    summary="Drain a watch session",
)
def watch_drain(request: HttpRequest, project_id: ProjectId, session_id: RunId) -> Watch:
    """Start nothing more, wait for what runs, validate, end with 130."""
    return _ask(request, project_id, session_id, Asked.DRAIN)


@router.post(
    "/{int:project_id}/watch/{int:session_id}/abort",
    response=replies.act(Watch),
    summary="Abort a watch session",
)
def watch_abort(request: HttpRequest, project_id: ProjectId, session_id: RunId) -> Watch:
    """Interrupt what runs; it has ten seconds."""
    return _ask(request, project_id, session_id, Asked.ABORT)


@router.post(
    "/{int:project_id}/watch/{int:session_id}/kill",
    response=replies.act(Watch),
    summary="Kill a watch session",
)
def watch_kill(request: HttpRequest, project_id: ProjectId, session_id: RunId) -> Watch:
    """End what runs at once. Worktrees and branches are kept."""
    return _ask(request, project_id, session_id, Asked.KILL)


@router.post(
    "/{int:project_id}/watch/{int:session_id}/validate",
    response=replies.act(ValidationShown),
    summary="Validate an ended watch session again",
)
def watch_validate(
    request: HttpRequest, project_id: ProjectId, session_id: RunId
) -> ValidationShown:
    """Begin another validation where the last one failed; the one at work, if one is."""
    row = _session_of(project_id, session_id)
    return validation(validations.validate_again(lab(), row, username(request)))


def _terms(given: NewWatch) -> Terms:
    wrong = {}
    numbers = {LIMIT: given.max_issues, EVERY: given.validate_every}
    texts = {name: None if one is None else str(one) for name, one in numbers.items()}
    for name in texts:
        alone = {other: text if other == name else None for other, text in texts.items()}
        try:
            read_terms(given.watch, alone[LIMIT], alone[EVERY])
        except WrongTerms as error:
            wrong[name.replace("-", "_")] = error.text
    if wrong:
        raise Denied(422, INVALID, f"{' '.join(wrong.values())}. Nothing was done.", wrong)
    switches = Switches(
        frozenset(given.disable_validations), given.coverage_threshold, given.keep_worktrees
    )
    return replace(read_terms(given.watch, texts[LIMIT], texts[EVERY]), switches=switches)


def _session_of(project_id: int, session_id: int) -> WatchSession:
    project = project_of(project_id)
    found = WatchSession.objects.filter(pk=session_id, project=project).first()
    if found is None:
        raise NotFound(f"There is no watch session {session_id} in this project.")
    found.project = project
    return found


def _ask(request: HttpRequest, project_id: int, session_id: int, wanted: Asked) -> Watch:
    row = _session_of(project_id, session_id)
    if not acts.ask(lab(), row, wanted, username(request)):
        raise Denied(409, "already_ended", OVER)
    return _one(row)


def _one(row: WatchSession) -> Watch:
    return _shown([row])[0]


def _shown(rows: Sequence[WatchSession]) -> list[Watch]:
    """Sessions with their live runs, in one more query for any number of them."""
    live: dict[int, list[int]] = {row.pk: [] for row in rows}
    for session, run in (
        Run.objects.active().filter(watch__in=live).order_by("pk").values_list("watch_id", "pk")
    ):
        live[session].append(run)
    return [_watch(row, live[row.pk]) for row in rows]


def _watch(row: WatchSession, active: list[int]) -> Watch:
    same = (
        *("completed", "failed", "unstarted", "stopped", "threshold", "validated"),
        *(
            "poll_failures",
            "next_poll_at",
            "asked_by",
            "opened_by",
            "opened_at",
            "ended_at",
            "code",
            "reason",
        ),
        *("is_auto", "needs_resume", "held"),
    )
    facts: dict[str, Any] = {name: getattr(row, name) for name in same}
    switches = Switches.stored(row.switches)
    return Watch(
        id=row.pk,
        project=row.project_id,
        watch=row.is_watching,
        max_issues=row.limit,
        validate_every=row.every,
        state=row.phase,
        request=Asked(row.request).name.lower(),  # type: ignore[arg-type]
        active=active,
        disable_validations=sorted(switches.disabled),
        coverage_threshold=switches.coverage_threshold,
        keep_worktrees=switches.keep_worktrees,
        **facts,
    )
