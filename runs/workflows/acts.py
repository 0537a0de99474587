"""What people ask of composite workflows: start one, stop it, start a failed phase again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import F

from runs.core.ports import Lab
from runs.core.refusal import ActRefused
from runs.core.states import NoticeKind
from runs.groups import monitors
from runs.hosts import facts
from runs.models import MonitorPreset, Project, TaskGroup, Workflow, WorkflowPhase
from runs.timeline import announce
from runs.workflows import rules
from runs.workflows.models import PHASE_CHARACTERS, WORKFLOW_CHARACTERS
from runs.workflows.rules import PhaseState, WorkflowState

PRESET = "arc"
MOST_PHASES = 20
MOST_SECONDS = 7 * 24 * 3600
CEILING_SECONDS = round(rules.CEILING.total_seconds())
AGAIN = (PhaseState.ERROR, PhaseState.STOPPED)


class WorkflowRefused(ActRefused):
    """It cannot be done; `fields` says for each wrong value why. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class NewPhase:
    """A phase as it is asked for, over an open group that is named.

    Not given: the timeout of the group's preset, and a net beyond it.
    """

    name: str
    group: str
    timeout_seconds: int | None = None
    net_seconds: int | None = None


def start(
    lab: Lab,
    project: Project,
    name: str,
    phases: Sequence[NewPhase],
    *,
    by: str,
    ceiling_seconds: int = CEILING_SECONDS,
) -> Workflow:
    """Store a workflow whose first phase the worker begins at once. Raises WorkflowRefused."""
    name = " ".join(name.split())
    rows = _rows(project, phases[: MOST_PHASES + 1])
    wrong = _wrong(name, rows, ceiling_seconds)
    if wrong:
        raise WorkflowRefused(f"{' '.join(wrong.values())} Nothing was started.", fields=wrong)
    now = lab.now()
    with transaction.atomic():
        made = Workflow.objects.create(
            project=project,
            name=name,
            host=facts.carrier(lab, project),
            ceiling_seconds=ceiling_seconds,
            started_at=now,
            started_by=by,
            counted_from=now,
            look_at=now,
        )
        for row in rows:
            row.workflow = made
        WorkflowPhase.objects.bulk_create(rows)
        text = f"{words(made)} was started: {', '.join(row.name for row in rows)}"
        announce.tell(lab, NoticeKind.WORKFLOW_STARTED, text, project=project, by=by)
        transaction.on_commit(lambda: lab.bell.look(project.slug), robust=True)
    return made


def stop(lab: Lab, workflow: Workflow, by: str) -> bool:
    """End a workflow and the monitor of its phase; tasks and workers go on. False: it had ended."""
    now = lab.now()
    with transaction.atomic():
        open_now = (WorkflowState.RUNNING, WorkflowState.HELD)
        won = Workflow.objects.filter(pk=workflow.pk, state__in=open_now).update(
            state=WorkflowState.STOPPED,
            ended_at=now,
            ended_by=by,
            held_at=None,
            look_at=None,
            note="stopped by a person",
            version=F("version") + 1,
        )
        if won:
            running = workflow.phases.filter(state=PhaseState.RUNNING).select_related("monitor")
            for phase in running:
                if phase.monitor is not None:
                    monitors.stop(lab, phase.monitor, by)
            running.update(state=PhaseState.STOPPED, ended_at=now, note="stopped by a person")
            text = f"{words(workflow)} was stopped; tasks and workers go on"
            announce.tell(lab, NoticeKind.WORKFLOW_ENDED, text, project=workflow.project, by=by)
    workflow.refresh_from_db()
    return bool(won)


def restart(lab: Lab, workflow: Workflow, phase: WorkflowPhase, by: str) -> bool:
    """Let a held workflow go on with a new monitor of the phase that failed.

    The time that it waited for a person does not count. False: it does not wait for that phase.
    Raises WorkflowRefused when the group of the phase is gone or closed.
    """
    if phase.group is None or not phase.group.is_open:
        raise WorkflowRefused(
            f"The group {phase.group_name} is closed or gone, so this phase cannot begin again. "
            "Nothing was changed; the workflow can be stopped."
        )
    now = lab.now()
    with transaction.atomic():
        row = Workflow.objects.select_for_update().get(pk=workflow.pk)
        if row.state != WorkflowState.HELD or row.held_at is None:
            return False
        again = row.phases.filter(pk=phase.pk, state__in=AGAIN).update(
            state=PhaseState.WAITING, began_at=None, ended_at=None, monitor=None, note=""
        )
        won = again and Workflow.objects.filter(pk=row.pk, version=row.version).update(
            state=WorkflowState.RUNNING,
            counted_from=row.counted_from + max(timedelta(0), now - row.held_at),
            held_at=None,
            look_at=now,
            note="",
            version=F("version") + 1,
        )
        if not won:
            transaction.set_rollback(True)
            return False
        text = f"{words(row)} goes on: phase {phase.name} begins again"
        announce.tell(lab, NoticeKind.WORKFLOW_PHASE, text, project=workflow.project, by=by)
        slug = workflow.project.slug
        transaction.on_commit(lambda: lab.bell.look(slug), robust=True)
    workflow.refresh_from_db()
    return True


def words(workflow: Workflow) -> str:
    """A workflow as entries of the timeline name it, which no other one's do."""
    return f"workflow {workflow.pk} ({workflow.name})"


def _rows(project: Project, phases: Sequence[NewPhase]) -> list[WorkflowPhase]:
    """The phases with their groups, times and nets, still to be checked. Three queries at most."""
    names = {phase.group for phase in phases}
    open_now = TaskGroup.objects.filter(project=project, closed_at=None, name__in=names)
    groups = {group.name: group for group in open_now}
    own = dict(MonitorPreset.objects.complete().values_list("name", "timeout_seconds"))
    return [_row(n, one, groups.get(one.group), own) for n, one in enumerate(phases, 1)]


def _row(
    number: int, phase: NewPhase, group: TaskGroup | None, presets: Mapping[str, int | None]
) -> WorkflowPhase:
    timeout = phase.timeout_seconds
    if timeout is None and group is not None:
        timeout = presets.get(group.preset)
    net = phase.net_seconds
    if net is None:
        length = None if timeout is None else timedelta(seconds=timeout)
        net = round(rules.net_of(length).total_seconds())
    return WorkflowPhase(
        number=number,
        name=" ".join(phase.name.split()),
        group=group,
        group_name=phase.group,
        timeout_seconds=timeout,
        net_seconds=net,
    )


def _wrong(name: str, rows: Sequence[WorkflowPhase], ceiling: int) -> dict[str, str]:
    """What does not fit, by field; `phases.2.net_seconds` is of the second phase."""
    wrong = {}
    if not 1 <= len(name) <= WORKFLOW_CHARACTERS:
        wrong["name"] = f"Give a name of at most {WORKFLOW_CHARACTERS} characters."
    if not 1 <= ceiling <= MOST_SECONDS:
        wrong["ceiling_seconds"] = f"A ceiling is from 1 to {MOST_SECONDS} seconds."
    if not 1 <= len(rows) <= MOST_PHASES:
        wrong["phases"] = f"A workflow has from 1 to {MOST_PHASES} phases."
    taken: set[str] = set()
    for number, row in enumerate(rows, 1):
        found = _wrong_phase(row, taken)
        wrong |= {f"phases.{number}.{field}": text for field, text in found.items()}
        taken.add(row.name)
    return wrong


def _wrong_phase(row: WorkflowPhase, taken: set[str]) -> dict[str, str]:
    wrong = {}
    if not 1 <= len(row.name) <= PHASE_CHARACTERS:
        wrong["name"] = f"A phase has a name of at most {PHASE_CHARACTERS} characters."
    elif row.name in taken:
        wrong["name"] = f"Two phases are named {row.name}."
    if row.group is None:
        wrong["group"] = f"There is no open group {row.group_name[:60]} in this project."
    if row.timeout_seconds is not None and not 1 <= row.timeout_seconds <= MOST_SECONDS:
        wrong["timeout_seconds"] = f"A timeout is from 1 to {MOST_SECONDS} seconds."
    if not max(1, row.timeout_seconds or 1) <= row.net_seconds <= MOST_SECONDS:
        wrong["net_seconds"] = (
            "A safety net is not shorter than the timeout of its phase, and at most "
            f"{MOST_SECONDS} seconds."
        )
    return wrong
