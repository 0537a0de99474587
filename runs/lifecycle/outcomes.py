"""The one door that ends a run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet

from runs.accounts import holds
from runs.core.database import prepared_with_keys
from runs.core.effects import RunEnd
from runs.core.ports import Lab
from runs.core.states import NoticeKind, Outcome, RunKind, RunState
from runs.dispatch import streak
from runs.dispatch.streak import Move
from runs.forges import mirror
from runs.models import Host, Project, Run, Settings
from runs.projects import start_waits
from runs.timeline import announce

_FACTS = (
    *("started_at", "claimed_at", "ended_at", "rested_seconds"),
    *("held_at", "budget_stopped_at", "checking_at", "is_loop"),
)


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
    """End `run` with `outcome` if nobody has ended it yet; True when this call did.

    `lease` is the number of the tick's lease: a tick that lost it can no longer end anything.
    `seen` are further facts to keep, such as the pull request that proves a success. The run's
    token dies here, the project's streak moves, and what other rooms store with it (`lab.effects`)
    is stored too. What may fail (session, worktree) comes after, by `reaper.settle`.
    """
    reason = lab.mask(reason)
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
            budget_seconds=int(run.budget(Settings.current()).total_seconds()),
            **(seen or {}),
        )
        if won:
            announce.tell(lab, NoticeKind.RUN_ENDED, reason, run=run, by=by, outcome=outcome)
            _follow(lab, run, outcome, by)
            mirror.ask(lab, run)
    if won:
        run.refresh_from_db()
    return bool(won)


def _follow(lab: Lab, run: Run, outcome: Outcome, by: str) -> None:
    """Move the streak, let the issue wait, and call the effects, in the transaction of the outcome."""
    (known,) = _as_stored().rows(keys=[run.pk])
    did_start, was_claimed = known.did_start, known.claimed_at is not None
    if did_start:
        took = int(known.age(lab.now()).total_seconds())
        Run.objects.filter(pk=run.pk).update(took_seconds=took)
    _move_streak(lab, run, outcome, did_start)
    if outcome is Outcome.SUCCEEDED:
        holds.worked(run)
    if did_start:
        start_waits.forget(run.project_id, run.issue_key)
    elif outcome is Outcome.FAILED and run.kind == RunKind.AUTO:
        start_waits.failed(lab, run)
    elif outcome is Outcome.STOPPED:
        start_waits.stopped(run, by)
    end = RunEnd(run.pk, outcome, run.watch_id, did_start, was_claimed, known.is_loop)
    for effect in lab.effects.run_ended:
        effect(lab, end)


@prepared_with_keys(1)
def _as_stored(_now: datetime, run: int) -> QuerySet[Run]:
    return Run.objects.only(*_FACTS).filter(pk=run)


def _move_streak(lab: Lab, run: Run, outcome: Outcome, did_start: bool) -> None:
    rows = Project.objects.filter(pk=run.project_id)
    moved = streak.move(outcome, did_start)
    if moved is Move.CLEARS:
        rows.update(streak=0, last_failure=None, retry_at=None)
    elif moved is Move.ADDS:
        rows.update(streak=F("streak") + 1, last_failure=run)
        _tell_of_pause(lab, run, outcome)


def _tell_of_pause(lab: Lab, run: Run, outcome: Outcome) -> None:
    """Once, by the run that crosses the line: the row is ours until the transaction ends."""
    project = Project.objects.only("is_auto", "streak").get(pk=run.project_id)
    if project.streak != streak.PAUSE_AT:
        return
    paused = "automatic work is paused" if project.is_auto else "automatic work stays off"
    text = (
        f"{paused}: {project.streak} runs in a row failed, the last one on issue {run.issue_key} "
        f"{outcome.words}. Look at it, then press Resume"
    )
    announce.tell(
        lab,
        NoticeKind.AUTO_PAUSED,
        text,
        project=project,
        watch_id=run.watch_id,
        issue_key=run.issue_key,
    )
