"""Steps the running composite workflows in a tick: facts, the rule, what it asks for.

Each step is one transaction, of whoever reads the version that the workflow still has: a monitor
is started together with the phase that it watches, or neither.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping
from datetime import datetime, timedelta

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import F, Prefetch, QuerySet

from runs.core import lease
from runs.core.database import prepared
from runs.core.ports import Lab
from runs.core.states import NoticeKind
from runs.core.tick_context import TickContext
from runs.groups import monitors
from runs.groups.terms import TaskStatus, minutes
from runs.models import Task, Workflow, WorkflowPhase
from runs.timeline import announce
from runs.workflows import rules
from runs.workflows.acts import PRESET, words
from runs.workflows.models import WorkflowQuerySet
from runs.workflows.rules import Do, PhaseState, Step, WorkflowState

logger = logging.getLogger(__name__)

MOST_STEPS = 60
# A monitor that somebody stopped is seen at the latest then.
LOOK_EVERY = timedelta(seconds=30)


class _Changed(Exception):
    """Its monitor or its phase has changed meanwhile: read again, then decide anew."""


def look(tick: TickContext) -> None:
    """Step every running workflow of this host. One query while there is none. Raises lease.Lost."""
    for row in _running(tick.lab.host).rows():
        tick.keep_lease()
        # Without its database a tick is blind, and that is told once.
        with tick.going_on(
            f"workflow {row.pk} was not stepped", OperationalError, InterfaceError, workflow=row.pk
        ):
            advance(tick.lab, row, tick.number)


def advance(lab: Lab, row: Workflow, number: int) -> None:
    """Step one workflow until it waits, for its monitor, for time or for a person."""
    for _ in range(MOST_STEPS):
        now, phases = lab.now(), list(row.phases.all())
        seen = [phase.seen(now) for phase in phases]
        elapsed = now - row.counted_from
        done = rules.step(seen, elapsed, row.ceiling)
        if done.do is Do.WAIT:
            _rest(row, now + min(LOOK_EVERY, rules.rest(seen, elapsed, row.ceiling)))
            return
        phase = None if done.at is None else phases[done.at]
        _carry_out(lab, row, done, phase, number)
        found = list(_read(Workflow.objects.running().filter(pk=row.pk)))
        if not found:
            return
        row = found[0]


@prepared
def _running(_now: datetime, host: str) -> QuerySet[Workflow]:
    return _read(Workflow.objects.running().filter(host=host).order_by("pk"))


def _read(rows: WorkflowQuerySet) -> WorkflowQuerySet:
    phases = WorkflowPhase.objects.select_related("group", "monitor")
    return rows.select_related("project").prefetch_related(Prefetch("phases", phases))


def _rest(row: Workflow, until: datetime) -> None:
    if row.look_at != until:
        mine = Workflow.objects.running().filter(pk=row.pk, version=row.version)
        mine.update(look_at=until)


def _carry_out(
    lab: Lab, row: Workflow, done: Step, phase: WorkflowPhase | None, number: int
) -> None:
    """One step, whole or not at all. A monitor that is refused holds the workflow."""
    try:
        with transaction.atomic():
            _take(lab, row, number)
            _act(lab, row, done, phase)
    except _Changed:
        return
    except monitors.MonitorRefused as refused:
        held = Step(Do.HOLD, done.at, PhaseState.ERROR)
        with contextlib.suppress(_Changed), transaction.atomic():
            _take(lab, row, number)
            _act(lab, row, held, phase, str(refused))


def _act(lab: Lab, row: Workflow, done: Step, phase: WorkflowPhase | None, why: str = "") -> None:
    if done.do is Do.FINISH:
        _finish(lab, row)
    elif done.do is Do.CEILING:
        _ceiling(lab, row, done, phase)
    elif phase is not None and done.do is Do.HOLD:
        _hold(lab, row, done, phase, why or _why(phase))
    elif phase is not None:
        acts = {Do.BEGIN: _begin, Do.SETTLE: _settle, Do.CUT: _cut}
        acts[done.do](lab, row, done, phase)


def _take(lab: Lab, row: Workflow, number: int) -> None:
    """The right to this step. Raises _Changed when somebody was first, or the lease is gone."""
    if not lease.update(Workflow.objects.running(), row, lab, number, look_at=lab.now()):
        raise _Changed


def _begin(lab: Lab, row: Workflow, done: Step, phase: WorkflowPhase) -> None:
    """Its own monitor, with its own label and timeout."""
    if phase.group is None:
        raise monitors.MonitorRefused(f"The group {phase.group_name} is gone.")
    monitor = monitors.start(
        lab,
        phase.group,
        by=row.started_by,
        preset=PRESET,
        given={"timeout_seconds": phase.timeout_seconds},
        phase=phase.name,
    )
    _set(phase, done, began_at=lab.now(), monitor=monitor)
    _tell(lab, row, phase, f"phase {phase.name} began")


def _settle(lab: Lab, row: Workflow, done: Step, phase: WorkflowPhase) -> None:
    """What its monitor found is what the phase gave, partial or not."""
    monitor = phase.monitor
    if monitor is None:
        raise _Changed
    _end(lab, row, done, phase, monitor.completed, monitor.incomplete, "")


def _cut(lab: Lab, row: Workflow, done: Step, phase: WorkflowPhase) -> None:
    _stop_and_end(lab, row, done, phase, f"its safety net of {minutes(phase.net)} min was reached")


def _hold(lab: Lab, row: Workflow, done: Step, phase: WorkflowPhase, why: str) -> None:
    """Nothing goes on by itself after an error."""
    _set(phase, done, ended_at=lab.now(), note=why)
    held = {"state": WorkflowState.HELD, "held_at": lab.now(), "look_at": None}
    note = f"phase {phase.name} {'was stopped' if done.becomes is PhaseState.STOPPED else 'failed'}"
    Workflow.objects.filter(pk=row.pk).update(**held, note=f"{note}: {why}")
    text = f"{words(row)} waits for a person: {note}: {why}"
    announce.tell(lab, NoticeKind.WORKFLOW_HELD, text, project=row.project)


def _why(phase: WorkflowPhase) -> str:
    if phase.monitor is None:
        return f"the group {phase.group_name} is gone, and its monitor with it"
    if phase.monitor.error:
        return phase.monitor.error
    return f"its monitor was stopped by {phase.monitor.ended_by or 'labsite'}"


def _ceiling(lab: Lab, row: Workflow, done: Step, phase: WorkflowPhase | None) -> None:
    why = f"the ceiling of {minutes(row.ceiling)} min was reached"
    if phase is not None:
        _stop_and_end(lab, row, done, phase, why)
    _close(lab, row, WorkflowState.TIMED_OUT, why)


def _finish(lab: Lab, row: Workflow) -> None:
    late = [one.name for one in row.phases.all() if one.is_timed_out]
    note = f"with partial results of {', '.join(late)}" if late else "every phase is complete"
    _close(lab, row, WorkflowState.COMPLETE, note)


def _close(lab: Lab, row: Workflow, state: WorkflowState, note: str) -> None:
    ended: Mapping[str, object] = {"state": state, "ended_at": lab.now(), "look_at": None}
    Workflow.objects.filter(pk=row.pk).update(**ended, note=note)
    text = f"{words(row)} ended {state}: {note}"
    announce.tell(lab, NoticeKind.WORKFLOW_ENDED, text, project=row.project)


def _stop_and_end(lab: Lab, row: Workflow, done: Step, phase: WorkflowPhase, why: str) -> None:
    """Stop a monitor in time and take what there is. Raises _Changed when it ended by itself."""
    if phase.monitor is None or not monitors.stop(lab, phase.monitor, ""):
        raise _Changed
    listed = list(Task.objects.filter(group=phase.group).values_list("key", "status"))
    completed = [key for key, status in listed if status == TaskStatus.COMPLETED]
    incomplete = [key for key, status in listed if status != TaskStatus.COMPLETED]
    _end(lab, row, done, phase, completed, incomplete, why)


def _end(
    lab: Lab,
    row: Workflow,
    done: Step,
    phase: WorkflowPhase,
    completed: list[str],
    incomplete: list[str],
    why: str,
) -> None:
    result = {"completed": completed, "incomplete": incomplete, "note": why}
    _set(phase, done, ended_at=lab.now(), **result)
    found = f"{len(completed)}/{len(completed) + len(incomplete)}"
    if done.becomes is PhaseState.TIMED_OUT:
        reason = f": {why}" if why else ""
        _tell(lab, row, phase, f"phase {phase.name} gave partial results, {found}{reason}")
    else:
        _tell(lab, row, phase, f"phase {phase.name} is complete, {found}")


def _set(phase: WorkflowPhase, done: Step, **columns: object) -> None:
    """Raises _Changed when the phase is not what it was."""
    mine = WorkflowPhase.objects.filter(pk=phase.pk, state=phase.state)
    if not mine.update(state=done.becomes, **columns):
        raise _Changed


def _tell(lab: Lab, row: Workflow, phase: WorkflowPhase, text: str) -> None:
    said = f"{words(row)}: {text}"
    announce.tell(lab, NoticeKind.WORKFLOW_PHASE, said, project=row.project, group=phase.group)


def clock_set(host: str, moved: timedelta) -> None:
    """Let what counts time be set with the clock, so that no workflow ends for it."""
    rows = Workflow.objects.filter(host=host, ended_at=None)
    rows.update(
        counted_from=F("counted_from") + moved,
        held_at=F("held_at") + moved,
        look_at=F("look_at") + moved,
        version=F("version") + 1,
    )
    phases = WorkflowPhase.objects.filter(workflow__in=rows, state=PhaseState.RUNNING)
    phases.update(began_at=F("began_at") + moved)
