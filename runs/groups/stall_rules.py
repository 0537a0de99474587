"""Which tasks of a group are stalled now, and what comes of each. Pure; what a pass does is elsewhere.

Time is what has passed since the monitor's start, as in the rule of a pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from runs.groups.monitor_rules import Memory
from runs.groups.terms import Options, TaskFacts, TaskStatus


class Fate(StrEnum):
    """What becomes of a stalled task when nobody comes."""

    GIVEN_BACK = "given back"
    ONLY_WARNED = "only warned of"
    FOLLOWS_RUN = "follows a run"


@dataclass(frozen=True, slots=True)
class Stall:
    """A task in progress for longer than its monitor's threshold.

    `seen`: when the monitor first saw it so; `until`: when it is given back, for that fate only.
    """

    task: TaskFacts
    seen: timedelta
    age: timedelta
    fate: Fate
    until: timedelta | None = None


def stalls(
    options: Options, memory: Memory, tasks: Iterable[TaskFacts], elapsed: timedelta
) -> Sequence[Stall]:
    """The stalled ones among tasks, the longest first; a claim that was not seen yet is none."""
    found = []
    for task in tasks:
        seen = memory.seen.get(task.key)
        if task.status is not TaskStatus.IN_PROGRESS or seen is None or seen.claim != task.claim:
            continue
        age = elapsed - seen.since
        if age > options.stale:
            fate, until = _fate(options, task, seen.since)
            found.append(Stall(task, seen.since, age, fate, until))
    return sorted(found, key=lambda stall: stall.seen)


def _fate(options: Options, task: TaskFacts, seen: timedelta) -> tuple[Fate, timedelta | None]:
    if not task.is_releasable:
        return Fate.FOLLOWS_RUN, None
    if options.release is None:
        return Fate.ONLY_WARNED, None
    return Fate.GIVEN_BACK, seen + options.release
