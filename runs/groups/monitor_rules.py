"""The rule of a monitor: one pass over a listing of tasks (RUNE).

Time is what has passed since the monitor started, so that setting the machine's clock ages nobody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum

from runs.groups.terms import MILESTONES, Decision, Options, Result, TaskFacts, TaskStatus, minutes


class Kind(StrEnum):
    """What an event is; `STALLED`, `RELEASED` and `TIMEOUT` are warnings."""

    PROGRESS = "progress"
    CHECKPOINT = "checkpoint"
    STALLED = "stalled"
    RELEASED = "released"
    TIMEOUT = "timeout"
    SIGNALS = "signals"
    FELL_BACK = "fell back"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a checkpoint carries, and no more."""

    n: int
    label: str
    completed: int
    total: int
    percentage: int
    active: tuple[str, ...]
    blockers: tuple[str, ...]
    decision: Decision


@dataclass(frozen=True, slots=True)
class Event:
    """One thing to tell, in the order of the pass. `task` is there for what concerns one task."""

    kind: Kind
    text: str
    task: TaskFacts | None = None
    checkpoint: Checkpoint | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """Since when a task has been seen in progress, after the monitor's start, and in which claim."""

    claim: int
    since: timedelta


@dataclass(frozen=True, slots=True)
class Memory:
    """What a monitor remembers between passes."""

    milestone: int = 0
    checkpoints: int = 0
    seen: Mapping[str, Seen] = field(default_factory=dict)
    reported: frozenset[str] = frozenset()


class End(StrEnum):
    """How a pass or a check ends a monitor. After `TIMEOUT` the tasks are listed once more."""

    COMPLETE = "complete"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True)
class Pass:
    """What one pass came to. Tasks to give back are those of the `RELEASED` events."""

    memory: Memory
    events: tuple[Event, ...]
    end: End | None = None
    result: Result | None = None


def look(
    options: Options,
    expected: int,
    memory: Memory,
    tasks: Sequence[TaskFacts],
    elapsed: timedelta,
) -> Pass:
    """One pass: clocks, progress, completion, checkpoints, stalls, timeout."""
    completed = [t for t in tasks if t.status is TaskStatus.COMPLETED]
    active = [t for t in tasks if t.status is TaskStatus.IN_PROGRESS]
    memory = _aged(memory, completed, active, tasks, elapsed)
    told = [
        Event(Kind.PROGRESS, f"{options.label} progress: {len(completed)}/{expected} tasks"),
    ]
    if len(completed) >= expected:
        memory, last = closing(options, expected, memory, len(completed))
        done = Result(tuple(t.key for t in completed), (), timed_out=False)
        return Pass(memory, (*told, *last), End.COMPLETE, done)
    stalled = [(t, age) for t in active if (age := _age(memory, t, elapsed)) > options.stale]
    if options.has_checkpoints:
        memory, new = _checkpoint(options, expected, memory, len(completed), active, stalled)
        told += new
    memory, warnings = _stalled(options, memory, active, elapsed)
    told += warnings
    if options.timeout is not None and elapsed > options.timeout:
        said = f"{options.label} timeout reached ({minutes(options.timeout)} min). "
        told.append(Event(Kind.TIMEOUT, f"{said}Collecting partial results."))
        return Pass(memory, tuple(told), End.TIMEOUT)
    return Pass(memory, tuple(told))


def closing(
    options: Options, expected: int, memory: Memory, completed: int
) -> tuple[Memory, tuple[Event, ...]]:
    """The checkpoint of 100 percent, once, where checkpoints are asked for."""
    if not options.has_checkpoints or memory.milestone >= MILESTONES[-1]:
        return memory, ()
    memory = replace(memory, milestone=MILESTONES[-1], checkpoints=memory.checkpoints + 1)
    last = Checkpoint(
        memory.checkpoints, options.label, completed, expected, 100, (), (), Decision.COMPLETE
    )
    return memory, (_told(last),)


def _aged(
    memory: Memory,
    completed: Sequence[TaskFacts],
    active: Sequence[TaskFacts],
    tasks: Sequence[TaskFacts],
    elapsed: timedelta,
) -> Memory:
    """Stale clocks start at first sight and with each new claim; completion drops them."""
    seen = dict(memory.seen)
    for task in active:
        before = seen.get(task.key)
        if before is None or before.claim != task.claim:
            seen[task.key] = Seen(task.claim, elapsed)
    done = {task.key for task in completed}
    there = {task.key for task in tasks} - done
    return replace(
        memory,
        seen={key: value for key, value in seen.items() if key in there},
        reported=memory.reported & there,
    )


def _age(memory: Memory, task: TaskFacts, elapsed: timedelta) -> timedelta:
    return elapsed - memory.seen[task.key].since


def _checkpoint(
    options: Options,
    expected: int,
    memory: Memory,
    completed: int,
    active: Sequence[TaskFacts],
    stalled: Sequence[tuple[TaskFacts, timedelta]],
) -> tuple[Memory, list[Event]]:
    """At the lowest milestone not yet told, or for a task newly stalled."""
    percentage = completed * 100 // expected
    reached = [m for m in MILESTONES if m > memory.milestone and percentage >= m]
    is_blocked_anew = any(task.key not in memory.reported for task, _ in stalled)
    if not reached and not is_blocked_anew:
        return memory, []
    memory = replace(
        memory,
        checkpoints=memory.checkpoints + 1,
        milestone=reached[0] if reached else memory.milestone,
        reported=memory.reported | {task.key for task, _ in stalled},
    )
    new = Checkpoint(
        memory.checkpoints,
        options.label,
        completed,
        expected,
        percentage,
        tuple(task.subject for task in active),
        tuple(
            f"#{task.key} {task.subject} (stale >{age // timedelta(minutes=1)}min)"
            for task, age in stalled
        ),
        Decision.INVESTIGATE if stalled else Decision.CONTINUE,
    )
    return memory, [_told(new)]


def _stalled(
    options: Options, memory: Memory, active: Sequence[TaskFacts], elapsed: timedelta
) -> tuple[Memory, list[Event]]:
    """A warning a pass for each stalled task, or its release."""
    seen, told = dict(memory.seen), []
    for task in active:
        age, name = _age(memory, task, elapsed), f"{options.label}: task #{task.key}"
        if options.release is not None and task.is_releasable and age > options.release:
            said = f"{name} stalled (>{minutes(options.release)}min) — auto-releasing"
            told.append(Event(Kind.RELEASED, said, task))
            del seen[task.key]
        elif age > options.stale:
            said = f"{name} may be stalled (>{minutes(options.stale)}min)"
            told.append(Event(Kind.STALLED, said, task))
    return replace(memory, seen=seen), told


def _told(checkpoint: Checkpoint) -> Event:
    return Event(Kind.CHECKPOINT, "\n".join(lines(checkpoint)), checkpoint=checkpoint)


def lines(checkpoint: Checkpoint) -> list[str]:
    """A checkpoint in words: heading, progress, active, blockers if any, decision."""
    said = [
        f"Checkpoint {checkpoint.n} — {checkpoint.label}",
        f"Progress: {checkpoint.completed}/{checkpoint.total} ({checkpoint.percentage}%)",
        f"Active: {', '.join(checkpoint.active) or 'none'}",
    ]
    if checkpoint.blockers:
        said.append(f"Blockers: {', '.join(checkpoint.blockers)}")
    return [*said, f"Decision: {checkpoint.decision}"]


def partial(options: Options, result: Result, expected: int) -> str:
    """How partial results are told after a timeout."""
    return f"{options.label} completed with partial results: {len(result.completed)}/{expected}"
