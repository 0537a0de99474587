"""What a loop does after each turn: go on, recover, stay alive, idle or end. Pure.

`count` adds a turn to what is known of the loop; `next_step` decides from that. The checks stand in
one fixed order, so that two conditions at once always give the same reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum

from runs.loops import events
from runs.loops.events import Batch, Event
from runs.loops.roles import COORDINATOR

BLOCKED = ("build.blocked", "task.blocked")
DISPATCHED = ("build.task", "task.start")
SOFT_LANDING = Decimal("0.8")
MOST_TASK = 200
EMPHASIS = re.compile(r"(\*{1,3}|_{1,3})(?P<word>.+)\1")
# Of so many tasks it is known how often they were blocked, and which were given up.
MOST_COUNTED = 1000
STAYS = (
    "Persistent mode: loop staying alive after completion signal. "
    "Check for new tasks or await human guidance."
)
SILENT = (
    "The turn before told no event, so nobody knows what comes next. Look at the state of the work, "
    "go on with it, and end the turn with an event."
)
RESTART_PAUSES = {0: timedelta(seconds=300), 3: timedelta()}
RESTART_PAUSE = timedelta(seconds=60)


class End(StrEnum):
    """Why a loop ended."""

    COMPLETED = "completed"
    CANCELLED = "cancelled"
    TURNS = "turns"
    RUNTIME = "runtime"
    COST = "cost"
    FAILURES = "failures"
    THRASHING = "thrashing"
    MALFORMED = "malformed"
    STALE = "stale"
    STOPPED = "stopped"
    RESTART = "restart"
    WORKSPACE_GONE = "workspace_gone"
    SILENT = "silent"
    INTERRUPTED = "interrupted"
    LOST = "lost"  # its session or its run ended without a word of its runner

    @property
    def words(self) -> str:
        """Why it ended, as the begin of a sentence."""
        return _WORDS[self]

    @property
    def code(self) -> int:
        """The exit code of `./lab loop`."""
        return _CODES.get(self, 1)


_WORDS = {
    End.COMPLETED: "its loop was completed",
    End.CANCELLED: "its loop was cancelled by its own event",
    End.TURNS: "its loop reached its most turns",
    End.RUNTIME: "its loop reached its most time",
    End.COST: "its loop reached its most money",
    End.FAILURES: "too many turns of its loop failed in a row",
    End.THRASHING: "tasks that were given up were begun again and again",
    End.MALFORMED: "too many events in a row could not be read",
    End.STALE: "the same event was told again and again",
    End.STOPPED: "its loop was stopped between two turns",
    End.RESTART: "its loop begins anew",
    End.WORKSPACE_GONE: "its worktree is gone",
    End.SILENT: "too many turns in a row told no event",
    End.INTERRUPTED: "its loop was interrupted by a signal",
    End.LOST: "its loop ended with its run",
}
_CODES = {
    End.COMPLETED: 0,
    End.CANCELLED: 0,
    End.TURNS: 2,
    End.RUNTIME: 2,
    End.COST: 2,
    End.RESTART: 3,
    End.INTERRUPTED: 130,
}


@dataclass(frozen=True, slots=True)
class Limits:
    """When a loop ends by itself. None: no such limit. `cost` in US dollars."""

    turns: int | None = 100
    runtime: timedelta | None = timedelta(hours=4)
    cost: Decimal | None = None
    failures: int = 3
    redispatches: int = 3
    malformed: int = 3
    same_event: int = 3
    recoveries: int = 3
    blocks: int = 3


@dataclass(frozen=True, slots=True)
class Terms:
    """How a project wants its loops to end and to stay."""

    limits: Limits = field(default_factory=Limits)
    completion: str = "LOOP_COMPLETE"
    cancellation: str = ""
    required: tuple[str, ...] = ()
    is_persistent: bool = False
    is_strict: bool = False
    may_idle: bool = True
    has_roles: bool = False


@dataclass(frozen=True, slots=True)
class TurnResult:
    """What one turn left. `cost` is None when its program did not tell it.

    `last_line` is the last line of its answer that is not blank. `role` is the role that had it.
    `has_worked`: it took an issue, committed, or changed a task.
    """

    role: str = COORDINATOR
    exit_code: int | None = 0
    batch: Batch = field(default_factory=Batch)
    last_line: str = ""
    cost: Decimal | None = Decimal(0)
    has_worked: bool = True


@dataclass(frozen=True, slots=True)
class Counters:
    """What is counted over the turns of a loop; stored with it, so that it can be continued.

    `cost` is the sum of what was told, `is_cost_whole` False once a turn did not tell. The rows of
    failures, lines and events are counted in a row. `blocks`: how often each task was blocked,
    the newest last; of tasks beyond `MOST_COUNTED` the oldest are forgotten.
    """

    turns: int = 0
    cost: Decimal = Decimal(0)
    is_cost_whole: bool = True
    failures: int = 0
    malformed: int = 0
    recoveries: int = 0
    last_event: Event | None = None
    same_event: int = 0
    blocks: tuple[tuple[str, int], ...] = ()
    abandoned: frozenset[str] = frozenset()
    redispatches: int = 0
    seen: frozenset[str] = frozenset()
    completions: int = 0
    has_worked: bool = False


@dataclass(frozen=True, slots=True)
class Outside:
    """What is known of a loop beside its turns. None: could not tell.

    `open_tasks` are tasks that are not closed, `unacknowledged` guidance of people that the agent
    has not acknowledged. Stop and restart are carried out between turns.
    """

    age: timedelta = timedelta()
    open_tasks: int | None = 0
    unacknowledged: int = 0
    wants_stop: bool = False
    wants_restart: bool = False
    has_workspace: bool | None = True
    is_interrupted: bool = False


class Next(StrEnum):
    """What comes after a turn."""

    TURN = "turn"
    RECOVER = "recover"
    STAY = "stay"  # a completion was answered by a resume event
    IDLE = "idle"  # no turn until there is something to do
    END = "end"


@dataclass(frozen=True, slots=True)
class Step:
    """What comes next, the events that are put beside the agent's own, and what is told on the way.

    `completes`: its completion signal was accepted, so that the work at hand is done.
    """

    next: Next
    put: tuple[Event, ...] = ()
    told: tuple[str, ...] = ()
    end: End | None = None
    completes: bool = False


def count(terms: Terms, before: Counters, turn: TurnResult) -> tuple[Counters, tuple[Event, ...]]:
    """The counters after a turn, and an event for each task that was given up with it.

    The completion signal is no repeated event: a loop that stays says it after each issue.
    """
    told = turn.batch.events
    blocks, abandoned, announced = dict(before.blocks), set(before.abandoned), []
    redispatches = before.redispatches
    last, same = before.last_event, before.same_event
    for event in told:
        is_completion = event.topic == terms.completion
        same = 0 if is_completion else same + 1 if event == last else 1
        last = None if is_completion else event
        task = _task(event)
        if event.topic in BLOCKED and task not in abandoned:
            blocks[task] = blocks.pop(task, 0) + 1  # the newest stands last
            if blocks[task] >= terms.limits.blocks:
                abandoned.add(task)
                announced.append(Event(events.ABANDONED, task))
        elif event.topic in DISPATCHED and task in abandoned:
            redispatches += 1
    kept = tuple(blocks.items())[-MOST_COUNTED:]
    after = replace(
        before,
        turns=before.turns + 1,
        cost=before.cost + (turn.cost or 0),
        is_cost_whole=before.is_cost_whole and turn.cost is not None,
        failures=0 if turn.exit_code == 0 else before.failures + 1,
        malformed=turn.batch.malformed_row,
        recoveries=0 if told else before.recoveries,
        last_event=last,
        same_event=same,
        blocks=kept,
        abandoned=frozenset(abandoned & dict(kept).keys()),
        redispatches=redispatches,
        # Of what was told only that is kept which has to come before a completion.
        seen=before.seen | ({event.topic for event in told} & set(terms.required)),
        has_worked=before.has_worked or turn.has_worked,
    )
    return after, tuple(announced)


def given_up(terms: Terms, event: Event) -> str:
    """What is told of a task that was given up."""
    task = event.payload or "A task without a name"
    return f"“{task}” was given up: it was blocked {terms.limits.blocks} times"


def next_step(terms: Terms, counters: Counters, turn: TurnResult, outside: Outside) -> Step:
    """What a loop does after a turn that `counters` has in it already.

    An interruption comes before everything; a completion that is accepted before every limit, since
    the work is done; then the limits in their order; then what keeps the loop going.
    """
    if outside.is_interrupted:
        return _ended(End.INTERRUPTED)
    if _is_cancelled(terms, turn):
        return _ended(End.CANCELLED)
    completion = _completion(terms, counters, turn, outside)
    if completion is not None and completion.end is End.COMPLETED and not terms.is_persistent:
        return completion
    is_done = completion is not None and completion.end is End.COMPLETED
    for reason in reached(terms.limits, counters, outside):
        return replace(_ended(reason), completes=is_done)
    if completion is None:
        return _go_on(terms, counters, turn)
    if completion.end is None:
        return completion
    return _stay(terms, counters, completion.told)


def after(step: Step, counters: Counters) -> Counters:
    """The counters once a step is taken: a recovery counts, a completion begins the next piece of work."""
    if step.next is Next.RECOVER:
        return replace(counters, recoveries=counters.recoveries + 1)
    if step.next in (Next.STAY, Next.IDLE):
        return replace(counters, completions=counters.completions + 1, has_worked=False)
    return counters


def reached(limits: Limits, counters: Counters, outside: Outside) -> Iterator[End]:
    """The reasons for which a loop ends between two turns, in their order; a limit is reached at it."""
    checks = (
        (End.TURNS, limits.turns is not None and counters.turns >= limits.turns),
        (End.RUNTIME, limits.runtime is not None and outside.age >= limits.runtime),
        (End.COST, limits.cost is not None and counters.cost >= limits.cost),
        (End.FAILURES, counters.failures >= limits.failures),
        (End.THRASHING, counters.redispatches >= limits.redispatches),
        (End.MALFORMED, counters.malformed >= limits.malformed),
        (End.STALE, counters.same_event >= limits.same_event),
        (End.STOPPED, outside.wants_stop),
        (End.RESTART, outside.wants_restart),
        (End.WORKSPACE_GONE, outside.has_workspace is False),
    )
    yield from (end for end, is_reached in checks if is_reached)


def nearing(limits: Limits, counters: Counters, outside: Outside) -> dict[End, str]:
    """What is left of each hard limit of which 80 % are used, for the next prompt."""
    left: dict[End, str] = {}
    if limits.turns is not None and counters.turns >= limits.turns * SOFT_LANDING:
        left[End.TURNS] = f"{max(0, limits.turns - counters.turns)} of {limits.turns} turns"
    if limits.runtime is not None and outside.age >= limits.runtime * float(SOFT_LANDING):
        minutes = max(0, int((limits.runtime - outside.age).total_seconds() // 60))
        left[End.RUNTIME] = f"{minutes} of {int(limits.runtime.total_seconds() // 60)} minutes"
    if limits.cost is not None and counters.cost >= limits.cost * SOFT_LANDING:
        left[End.COST] = (
            f"{max(Decimal(0), limits.cost - counters.cost):.2f} of {limits.cost:.2f} dollars"
        )
    return left


@dataclass(frozen=True, slots=True)
class CheckIn:
    """How a loop stands, for a person who is told so at an interval."""

    turn: int
    age: timedelta
    role: str
    open_tasks: int
    closed_tasks: int
    cost: Decimal | None

    @property
    def words(self) -> str:
        """It as one sentence; a cost that was not told whole is unknown."""
        cost = "cost unknown" if self.cost is None else f"${self.cost:.2f} so far"
        minutes = int(self.age.total_seconds() // 60)
        tasks = f"{self.open_tasks} tasks open, {self.closed_tasks} closed"
        return f"turn {self.turn} after {minutes} min ({self.role}); {tasks}; {cost}"


def is_check_in_due(now: datetime, last: datetime | None, every: timedelta | None) -> bool:
    """Whether a person is told how the loop stands at the end of a turn; without an interval never."""
    return every is not None and last is not None and now - last >= every


def pause_before_restart(code: int) -> timedelta:
    """How long a persistent loop that has ended waits before it is started again."""
    return RESTART_PAUSES.get(code, RESTART_PAUSE)


def pause_before_turn(cooldown: timedelta, *, has_message: bool) -> timedelta:
    """How long the next turn waits; a message of a person is never kept waiting."""
    return timedelta() if has_message else cooldown


def _ended(reason: End, *told: str) -> Step:
    return Step(Next.END, told=told, end=reason)


def _task(event: Event) -> str:
    """The task of an event: the begin of the first line of its payload."""
    return event.payload.strip().partition("\n")[0].strip()[:MOST_TASK]


def _is_cancelled(terms: Terms, turn: TurnResult) -> bool:
    return bool(terms.cancellation) and any(
        event.topic == terms.cancellation for event in turn.batch.events
    )


def _completion(
    terms: Terms, counters: Counters, turn: TurnResult, outside: Outside
) -> Step | None:
    """What comes of a completion signal: accepted (its end is *completed*), refused, or None: there is none.

    A turn that failed completes nothing, nor does a role, nor a word that is not the last.
    """
    if turn.role != COORDINATOR or turn.exit_code != 0 or not _says_complete(terms, turn):
        return None
    refusals = list(_refusals(terms, counters, outside))
    if refusals:
        text = "Completion was not accepted: " + "; ".join(refusals) + "."
        return Step(Next.TURN, (Event(events.RESUME, text),), (text,))
    left = outside.open_tasks or 0
    told = (f"It was completed with {left} open tasks.",) if left else ()
    return replace(_ended(End.COMPLETED, *told), completes=True)


def _says_complete(terms: Terms, turn: TurnResult) -> bool:
    """By the last event; without roles and events also by the last line of the answer.

    Where something was told after what could be read, nobody knows what came last.
    """
    batch = turn.batch
    if batch.dropped or (batch.malformed and batch.malformed_row):
        return False
    told: Sequence[Event] = batch.events
    if told:
        return told[-1].topic == terms.completion
    return not terms.has_roles and _plain(turn.last_line) == terms.completion


def _plain(line: str) -> str:
    """A line without the marks of Markdown that make all of it bold or italic."""
    found = EMPHASIS.fullmatch(line.strip())
    return found["word"].strip() if found else line.strip()


def _refusals(terms: Terms, counters: Counters, outside: Outside) -> Iterator[str]:
    missing = [topic for topic in terms.required if topic not in counters.seen]
    if missing:
        yield f"{' and '.join(missing)} must be told before"
    if outside.unacknowledged:
        yield "guidance of a person is not acknowledged yet"
    if terms.is_strict and outside.open_tasks is None:
        yield "it could not be told whether tasks are open"
    if terms.is_strict and outside.open_tasks:
        yield f"{outside.open_tasks} tasks are open"


def _stay(terms: Terms, counters: Counters, told: tuple[str, ...]) -> Step:
    """A persistent loop after a completion: it looks for more, or idles when there was nothing to do."""
    told = (*told, "The loop stays: its completion signal was answered with task.resume.")
    put = (Event(events.RESUME, STAYS),)
    if terms.may_idle and not counters.has_worked:
        return Step(Next.IDLE, put, told, completes=True)
    return Step(Next.STAY, put, told, completes=True)


def _go_on(terms: Terms, counters: Counters, turn: TurnResult) -> Step:
    """Another turn; one in which nothing was told is recovered, a few times in a row."""
    if turn.batch.events or turn.exit_code != 0:
        return Step(Next.TURN)
    if counters.recoveries >= terms.limits.recoveries:
        return _ended(End.SILENT)
    return Step(Next.RECOVER, (Event(events.RESUME, SILENT, to=turn.role),))
