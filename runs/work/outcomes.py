"""The one door that ends a run."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction
from django.db.models import Exists, OuterRef

from runs.domain.ports import Lab
from runs.domain.states import NoticeKind, Outcome, RunState
from runs.models import Host, Run
from runs.work import announce


def record(
    lab: Lab,
    run: Run,
    outcome: Outcome,
    reason: str,
    *,
    by: str = "",
    lease: int | None = None,
    seen: Mapping[str, object] | None = None,
) -> bool:
    """End `run` with `outcome` if nobody has ended it yet; True when this call did (LAB-28, LAB-36).

    `lease` is the number of the tick's lease: a tick that lost it can no longer end anything.
    `seen` are further facts to keep, such as the pull request that proves a success. The run's
    token dies here. Effects (session, worktree) come after, by `reaper.settle`.
    """
    rows = Run.objects.active().filter(pk=run.pk)
    if lease is not None:
        rows = rows.filter(Exists(Host.objects.filter(name=OuterRef("host"), lease_number=lease)))
    with transaction.atomic():
        won = rows.update(
            outcome=outcome,
            state=RunState.ENDED,
            reason=reason,
            ended_at=lab.now(),
            token_hash="",
            **(seen or {}),
        )
        if won:
            announce.tell(lab, NoticeKind.RUN_ENDED, reason, run=run, by=by, outcome=outcome)
    if won:
        run.refresh_from_db()
    return bool(won)
