"""A task group as a line of a list shows it: how far it is, and how its newest monitor stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery

from runs.core.database import prepared_with_keys
from runs.groups.terms import MILESTONES, MonitorState, TaskStatus
from runs.models import Monitor, Project, TaskGroup
from runs.web import addresses

OPEN_SHOWN = 6
_TONES: Mapping[str, str] = {
    MonitorState.RUNNING: "live",
    MonitorState.COMPLETE: "good",
    MonitorState.TIMED_OUT: "warn",
    MonitorState.ERROR: "bad",
}
_WORDS: Mapping[str, str] = {
    MonitorState.RUNNING: "watched",
    MonitorState.TIMED_OUT: "timed out",
    MonitorState.ERROR: "monitor failed",
    MonitorState.STOPPED: "monitor stopped",
}


@dataclass(frozen=True, slots=True)
class Mark:
    """A milestone on the bar: whether the work is there, and whether a checkpoint told so."""

    percent: int
    is_reached: bool
    is_told: bool

    @property
    def words(self) -> str:
        """What of it somebody hears who does not see the bar."""
        if self.is_told:
            return "told by a checkpoint"
        return "reached" if self.is_reached else "ahead"


@dataclass(frozen=True, slots=True)
class GroupCard:
    """A group with its tasks counted. `state`: its newest monitor's; empty before the first."""

    group: TaskGroup
    total: int
    completed: int
    active: int
    state: str = ""
    expected: int | None = None
    milestone: int = 0

    @property
    def url(self) -> str:
        return addresses.of("runs:group", self.group.project_id, self.group.pk)

    @property
    def goal(self) -> int:
        """How many completed tasks are all: what the monitor was told, else those there are."""
        return self.total if self.expected is None else self.expected

    @property
    def value(self) -> int:
        """What the bar shows: never beyond its end."""
        return min(self.completed, self.goal)

    @property
    def percent(self) -> int:
        """As checkpoints count it; a monitor that expects nothing has all."""
        if self.goal:
            return min(100, self.completed * 100 // self.goal)
        return 100 if self.expected == 0 else 0

    @property
    def pending(self) -> int:
        return self.total - self.completed - self.active

    @property
    def marks(self) -> Sequence[Mark]:
        """The milestones as marks on the bar."""
        return [
            Mark(one, bool(self.goal) and self.percent >= one, self.milestone >= one)
            for one in MILESTONES
        ]

    @property
    def tone(self) -> str:
        return tone(self.state)

    @property
    def words(self) -> str:
        """How it stands, in a word or two."""
        if not self.state:
            return "not watched" if self.group.is_open else "closed"
        return _WORDS.get(self.state, self.state)


def tone(state: str) -> str:
    """The colour of a monitor's state."""
    return _TONES.get(state, "")


def counted(rows: QuerySet[TaskGroup]) -> QuerySet[Any]:
    """Groups with what a card shows of each, in one statement."""
    newest = Monitor.objects.filter(group=OuterRef("pk")).order_by("-pk")
    return rows.annotate(
        task_count=Count("tasks"),
        completed_count=Count("tasks", filter=Q(tasks__status=TaskStatus.COMPLETED)),
        active_count=Count("tasks", filter=Q(tasks__status=TaskStatus.IN_PROGRESS)),
        monitor_state=Subquery(newest.values("state")[:1]),
        monitor_expected=Subquery(newest.values("expected")[:1]),
        monitor_milestone=Subquery(newest.values("milestone")[:1]),
    )


def card(group: Any) -> GroupCard:
    """The card of a group that was read with `counted`."""
    return GroupCard(
        group,
        group.task_count,
        group.completed_count,
        group.active_count,
        group.monitor_state or "",
        group.monitor_expected,
        group.monitor_milestone or 0,
    )


def open_of(project: Project) -> Sequence[GroupCard]:
    """The newest open groups of a project, for its page. One query."""
    return [card(one) for one in _open().rows(keys=[project.pk])]


@prepared_with_keys(1)
def _open(_now: datetime, project: int) -> QuerySet[Any]:
    rows = counted(TaskGroup.objects.filter(project=project, closed_at=None))
    return rows.order_by("-pk")[:OPEN_SHOWN]
