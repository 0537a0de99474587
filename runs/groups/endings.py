"""What came of task groups in some time: how they ended, and what told to look into them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Case, Count, Exists, Max, OuterRef, When

from runs.groups.terms import Decision, MonitorState
from runs.models import Checkpoint, Monitor

SHOWN = 6
_WORDS: Mapping[str, str] = {
    MonitorState.COMPLETE: "complete",
    MonitorState.TIMED_OUT: "timed out",
    MonitorState.ERROR: "failed",
    MonitorState.STOPPED: "stopped",
}
# Few are shown of many, and a person who comes back looks for these.
_BAD_FIRST = Case(When(state__in=(MonitorState.ERROR, MonitorState.TIMED_OUT), then=0), default=1)
_SECRET = ("group__project__token", "group__project__hook_secret")


@dataclass(frozen=True, slots=True)
class Investigated:
    """A group whose checkpoints said to investigate: how often, and when last."""

    project: int
    project_name: str
    group: int
    group_name: str
    times: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Ended:
    """A group whose newest monitor has ended."""

    monitor: Monitor

    @property
    def words(self) -> str:
        """How: the result where there is one, else what became of the monitor."""
        row = self.monitor
        if (result := row.result) is not None:
            completed, total = len(result.completed), len(result.completed) + len(result.incomplete)
            return f"{row.state}, {completed} of {total} tasks completed"
        if row.state == MonitorState.ERROR:
            return f"its monitor failed: {row.error}" if row.error else "its monitor failed"
        return f"its monitor was stopped by {row.ended_by or 'labsite'}"


@dataclass(frozen=True, slots=True)
class GroupEnds:
    """How many ended in each way, some of them, and those that asked for a look."""

    counts: Sequence[tuple[str, int]]
    ended: Sequence[Ended]
    investigated: Sequence[Investigated]

    def __bool__(self) -> bool:
        return bool(self.counts or self.investigated)

    @property
    def total(self) -> int:
        return sum(number for _, number in self.counts)

    @property
    def more(self) -> int:
        return self.total - len(self.ended)


def between(begin: datetime, until: datetime) -> GroupEnds:
    """What came after `begin` and not after `until`, what went badly first.

    Three queries, each by its own index.
    A group that is watched again has not ended.
    """
    later = Monitor.objects.filter(group=OuterRef("group"), pk__gt=OuterRef("pk"))
    ended = Monitor.objects.filter(~Exists(later), ended_at__gt=begin, ended_at__lte=until)
    told = Checkpoint.objects.filter(
        decision=Decision.INVESTIGATE, at__gt=begin, at__lte=until
    ).order_by()
    by_state: Mapping[str, int] = dict(
        ended.order_by().values_list("state").annotate(number=Count("pk"))
    )
    groups = told.values_list(
        "monitor__group__project",
        "monitor__group__project__name",
        "monitor__group",
        "monitor__group__name",
    )
    asked = groups.annotate(times=Count("pk"), last=Max("at")).order_by("-last")
    some = ended.select_related("group__project").defer(*_SECRET)
    some = some.order_by(_BAD_FIRST, "-ended_at", "-id")
    return GroupEnds(
        [(said, by_state[one]) for one, said in _WORDS.items() if one in by_state],
        [Ended(row) for row in some[:SHOWN]],
        [Investigated(*row) for row in asked[:SHOWN]],
    )
