"""Where the gates of a project begin: its agent says that it is done, and the run is *checking*."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction
from django.db.models import Case, Exists, F, OuterRef, Value, When

from runs.core import budgets
from runs.core.ports import Lab
from runs.core.states import Claim, GateTurn, NoticeKind, RunState
from runs.models import Host, Run
from runs.timeline import announce

SAYS = {
    Claim.DONE: "its agent says that it is done",
    Claim.NO_CHANGE: "its agent says that nothing has to be changed",
    Claim.OBSOLETE: "its agent says that the issue is obsolete",
}
# Its answers and waits are over; what its program tells meanwhile is read when it goes on.
_OVER: Mapping[str, object] = {
    **{"waits": "", "waits_at": None, "waits_note": "", "budget_stopped_at": None},
    **{"asks": "", "asked_at": None, "question": ""},
    **{"answer": "", "answered_by": "", "answered_at": None, "answered_mark": ""},
    "look_asked_at": None,
}


def said_at(run: Run) -> datetime | None:
    """When the turn of its agent ended by itself, after all that it was told at a gate."""
    at = run.turn_ended_at
    if at is None or run.turn_interrupted_at is not None:
        return None
    return None if run.gate_told_at is not None and at <= run.gate_told_at else at


def begin(lab: Lab, run: Run, seen: Mapping[str, object], lease: int) -> bool:
    """Move a working run to *checking*; False when somebody ended or moved it meanwhile.

    Its session and its slot stay, its budget rests. The next step of a tick begins an attempt.
    """
    # Its word may have been stored since the tick read the run.
    claimed = Case(When(claim="", then=Value(Claim.DONE.value)), default=F("claim"))
    since = run.budget_stopped_at
    rested = int(budgets.age(lab.now(), since).total_seconds()) if since is not None else 0
    rows = (
        Run.objects.working()
        .filter(Exists(Host.objects.filter(name=OuterRef("host"), lease_number=lease)), pk=run.pk)
        .filter(budget_stopped_at=since)
    )
    with transaction.atomic():
        won = rows.update(
            **{**seen, **_OVER},
            state=RunState.CHECKING,
            gate_turn=GateTurn.BEGIN,
            checking_at=lab.now(),
            claim=claimed,
            rested_seconds=F("rested_seconds") + rested,
        )
        if won:
            run.refresh_from_db()
            text = f"{SAYS[Claim(run.claim)]}; the gates of the project check it"
            announce.tell(lab, NoticeKind.RUN_CHECKING, text, run=run)
    return bool(won)
