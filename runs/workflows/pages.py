"""What the pages of composite workflows show: the list of a project, and one workflow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Prefetch
from django.http import Http404

from runs.groups import card as group_card
from runs.groups.card import GroupCard
from runs.models import Notice, Project, TaskGroup, Workflow, WorkflowPhase
from runs.web import addresses
from runs.workflows.acts import AGAIN, words
from runs.workflows.rules import PhaseState, WorkflowState

PAGE, NOTICES, NAMES = 50, 100, 12
_TONES: Mapping[str, str] = {
    PhaseState.RUNNING: "live",
    PhaseState.COMPLETE: "good",
    PhaseState.TIMED_OUT: "warn",
    PhaseState.ERROR: "bad",
    WorkflowState.HELD: "bad",
}


@dataclass(frozen=True, slots=True)
class PhaseRow:
    """A phase with the bar of its group; without one once the group is deleted."""

    phase: WorkflowPhase
    card: GroupCard | None
    is_held: bool

    @property
    def tone(self) -> str:
        return _TONES.get(self.phase.state, "")

    @property
    def words(self) -> str:
        """How it stands, in a word."""
        return "failed" if self.phase.state == PhaseState.ERROR else self.phase.state

    @property
    def is_running(self) -> bool:
        return self.phase.state == PhaseState.RUNNING

    @property
    def net_at(self) -> datetime | None:
        """When its safety net would stop it."""
        began = self.phase.began_at
        return began + self.phase.net if began is not None and self.is_running else None

    @property
    def total(self) -> int:
        return len(self.phase.completed) + len(self.phase.incomplete)

    @property
    def has_result(self) -> bool:
        return self.phase.state in (PhaseState.COMPLETE, PhaseState.TIMED_OUT)


@dataclass(frozen=True, slots=True)
class WorkflowCard:
    """A workflow as a line of the list shows it."""

    row: Workflow
    phases: Sequence[WorkflowPhase]

    @property
    def url(self) -> str:
        return addresses.of("runs:workflow", self.row.project_id, self.row.pk)

    @property
    def is_partial(self) -> bool:
        """Whether it came to its end although a phase of it did not."""
        is_complete = self.row.state == WorkflowState.COMPLETE
        return is_complete and any(one.is_timed_out for one in self.phases)

    @property
    def tone(self) -> str:
        if self.is_partial:
            return "warn"
        return "live" if self.row.state == WorkflowState.RUNNING else _TONES.get(self.row.state, "")

    @property
    def words(self) -> str:
        """How it stands, in a word or two."""
        return "partial results" if self.is_partial else self.row.state

    @property
    def at(self) -> str:
        """Which phase it is in, in words."""
        now = next((one for one in self.phases if one.state == PhaseState.RUNNING), None)
        if now is not None:
            return f"phase {now.number} of {len(self.phases)}: {now.name}"
        ended = sum(one.ended_at is not None for one in self.phases)
        return f"{ended} of {len(self.phases)} phases ended"

    @property
    def ceiling_at(self) -> datetime | None:
        """When its ceiling would stop it; nothing while it waits for a person."""
        if self.row.state != WorkflowState.RUNNING:
            return None
        return self.row.counted_from + self.row.ceiling


def workflow_of(project: Project, workflow_id: int) -> Workflow:
    """A workflow of a project, else 404."""
    found = Workflow.objects.filter(pk=workflow_id, project=project).first()
    if found is None:
        raise Http404("There is no such workflow.")
    found.project = project
    return found


def workflows(project: Project, page: int) -> Mapping[str, Any]:
    """The workflows of a project, newest first, and the groups a new one may name. Three queries."""
    first = (page - 1) * PAGE
    rows = Workflow.objects.filter(project=project).order_by("-pk").prefetch_related("phases")
    found = list(rows[first : first + PAGE + 1])
    names = TaskGroup.objects.filter(project=project, closed_at=None).order_by("-pk")
    return {
        "project": project,
        "cards": [WorkflowCard(row, list(row.phases.all())) for row in found[:PAGE]],
        "group_names": list(names.values_list("name", flat=True)[:NAMES]),
        "chosen": {"page": page},
        "previous": f"?page={page - 1}" if page > 1 else "",
        "next": f"?page={page + 1}" if len(found) > PAGE else "",
    }


def workflow(project: Project, workflow_id: int) -> Mapping[str, Any]:
    """Everything that the page of a workflow shows. Four queries, whatever its phases."""
    phases = WorkflowPhase.objects.select_related("monitor")
    rows = Workflow.objects.filter(pk=workflow_id, project=project)
    row = rows.prefetch_related(Prefetch("phases", phases)).first()
    if row is None:
        raise Http404("There is no such workflow.")
    row.project = project
    found = list(row.phases.all())
    cards = _cards(project, [phase.group_id for phase in found if phase.group_id])
    is_held = row.state == WorkflowState.HELD
    return {
        "project": project,
        "workflow": row,
        "card": WorkflowCard(row, found),
        "phases": [
            PhaseRow(one, cards.get(one.group_id or 0), is_held and one.state in AGAIN)
            for one in found
        ],
        "notices": _notices(project, row),
    }


def _cards(project: Project, groups: Sequence[int]) -> Mapping[int, GroupCard]:
    rows = group_card.counted(TaskGroup.objects.filter(pk__in=groups))
    return {row.pk: group_card.card(row) for row in rows}


def _notices(project: Project, row: Workflow) -> Sequence[Notice]:
    """What was told of it since it began, newest first."""
    rows = Notice.objects.filter(project=project, at__gte=row.started_at)
    rows = rows.filter(kind__startswith="workflow.", text__startswith=words(row))
    found = list(rows.order_by("-pk")[:NOTICES])
    for notice in found:
        notice.project = project
        # On its own page nobody has to be told of which one.
        notice.text = notice.text.removeprefix(words(row)).removeprefix(":").strip()
    return found
