"""The gates over the API: the attempts of a run, what their commands printed, and one document of it."""

from __future__ import annotations

import codecs
from typing import Any

from django.http import HttpRequest
from ninja import Query
from pydantic import BaseModel, Field

from runs.api import replies, showing
from runs.api.asked import BIGGEST_NUMBER, NO_NUL, Given, Number, Paging, RunId
from runs.api.router import Router
from runs.gate_pages import schemas
from runs.gates import acceptance
from runs.lifecycle.api import run_of
from runs.models import Attempt, Validation
from runs.web.access import username
from runs.wiring import lab
from trackers.base import NotFound

router = Router(tags=["Checks"])

PIECE = 200_000


class Piece(BaseModel):
    """What a command printed. `next` is the cursor of what follows, also of what it prints later."""

    text: str
    next: int
    size: int


class From(BaseModel):
    """`name`: a file of the attempt's folder, as the ends of its paths name it."""

    name: str = Field(max_length=200, pattern=NO_NUL)
    cursor: int = Field(0, ge=0, le=BIGGEST_NUMBER)


@router.get(
    "/{int:run_id}/attempts",
    response=replies.look(schemas.GateAttempts),
    summary="List the attempts of a run",
)
def attempt_list(
    request: HttpRequest, run_id: RunId, wanted: Query[Paging]
) -> schemas.GateAttempts:
    """Passes through the gates, newest first; `cursor` is the number of the last one."""
    rows = _attempts(run_id)
    page, cursor = showing.page(rows, wanted, "-number")
    paths = lab().paths
    items = [schemas.attempt(paths, one) for one in page]
    return schemas.GateAttempts(items=items, next=cursor)


class SeenAttempt(Given):
    """`commit`: the full id of the commit that was looked at."""

    commit: str = Field(max_length=64, pattern=NO_NUL)


class SentBack(SeenAttempt):
    """`text`: what its agent has to change."""

    text: str = Field(max_length=acceptance.MOST_CHARACTERS, pattern=NO_NUL)


@router.post(
    "/{int:run_id}/attempts/{int:number}/accept",
    response=replies.given(schemas.GateAttempt),
    summary="Accept work that changes the checks",
)
def attempt_accept(
    request: HttpRequest, run_id: RunId, number: Number, given: SeenAttempt
) -> schemas.GateAttempt:
    """409 `not_asked` where this attempt and commit wait for nobody."""
    acceptance.accept(lab(), run_of(run_id), number, given.commit, username(request))
    return schemas.attempt(lab().paths, _attempts(run_id).get(number=number))


@router.post(
    "/{int:run_id}/attempts/{int:number}/send-back",
    response=replies.given(schemas.GateAttempt),
    summary="Send work that changes the checks back",
)
def attempt_send_back(
    request: HttpRequest, run_id: RunId, number: Number, given: SentBack
) -> schemas.GateAttempt:
    """Tell its agent what has to change, as after a review that did not agree."""
    run, by = run_of(run_id), username(request)
    acceptance.send_back(lab(), run, number, given.commit, given.text, by)
    return schemas.attempt(lab().paths, _attempts(run_id).get(number=number))


@router.get(
    "/{int:run_id}/attempts/{int:number}",
    response=replies.look(schemas.GateAttempt),
    summary="Show an attempt",
)
def attempt_show(request: HttpRequest, run_id: RunId, number: RunId) -> schemas.GateAttempt:
    """One pass: evidence, the commands of the clean room, reviews, and what each gate decided."""
    return schemas.attempt(lab().paths, _attempt(run_id, number))


@router.get(
    "/{int:run_id}/attempts/{int:number}/output",
    response=replies.look(Piece),
    summary="Read what a command printed",
)
def attempt_output(
    request: HttpRequest, run_id: RunId, number: RunId, wanted: Query[From]
) -> Piece:
    """A piece of one output file, in whole letters and without secrets."""
    row = _attempt(run_id, number)
    names = {one.get(kind) for one in row.results for kind in ("name", "stdout", "stderr")}
    names |= {one.log_name for one in row.reviews.all()}
    if not wanted.name or wanted.name not in names:
        raise NotFound(f"Attempt {number} of run {run_id} has no output {wanted.name[:60]}.")
    found = lab().checks.output(row.folder(lab().paths), wanted.name, wanted.cursor, PIECE)
    if found is None:
        raise NotFound(f"The output {wanted.name} is not kept any more.")
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    at_end = wanted.cursor + len(found.data) >= found.size
    text = decoder.decode(found.data, final=at_end and not row.is_running)
    kept_back = len(decoder.getstate()[0])
    after = wanted.cursor + len(found.data) - kept_back
    return Piece(text=text, next=after, size=found.size)


@router.get(
    "/{int:run_id}/checks",
    response=replies.look(schemas.RunChecks),
    summary="Export the checks of a run",
)
def run_checks(request: HttpRequest, run_id: RunId) -> schemas.RunChecks:
    """Attempts, decisions, results, resolution and the run level as one document."""
    run = run_of(run_id)
    levels = Validation.objects.filter(run=run)
    if run.watch_id is not None:
        levels = levels | Validation.objects.filter(session_id=run.watch_id)
    rows = list(_attempts(run_id).order_by("number"))
    return schemas.export(lab(), run, rows, list(levels.order_by("pk")))


def _attempts(run_id: int) -> Any:
    return Attempt.objects.filter(run=run_of(run_id)).prefetch_related("reviews")


def _attempt(run_id: int, number: int) -> Attempt:
    found: Attempt | None = _attempts(run_id).filter(number=number).first()
    if found is None:
        raise NotFound(f"Run {run_id} has no attempt {number}.")
    return found
