"""What the page of a run shows of its loop: where it stands, its limits, its last turns, guidance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Func, IntegerField, QuerySet
from django.db.models.fields.json import KeyTextTransform, KeyTransform

from runs.core.states import LoopState
from runs.loop_pages import burn_down
from runs.loop_pages.burn_down import BurnDown
from runs.loops import issue_of_loop, stored
from runs.loops.rules import SOFT_LANDING, End, Limits
from runs.models import Loop, LoopTurn, Run
from runs.spending import limit_rules
from runs.web import words

LAST_TURNS, LAST_GUIDANCE, LAST_ISSUES, PAGE = 5, 5, 20, 50
# What nobody told: nothing yet, or nothing at all.
_UNTOLD = {False: "", True: "unknown"}
_LONG = ("facts", "answer", "events", "told")
_ENDS = {
    End.COMPLETED: ("good", "completed"),
    End.CANCELLED: ("", "cancelled by its event"),
    End.TURNS: ("bad", "turn limit reached"),
    End.RUNTIME: ("bad", "time limit reached"),
    End.COST: ("bad", "cost limit reached"),
    End.FAILURES: ("bad", "too many failed turns"),
    End.THRASHING: ("bad", "given-up tasks begun again"),
    End.MALFORMED: ("bad", "too many unreadable events"),
    End.STALE: ("bad", "same event again and again"),
    End.STOPPED: ("", "stopped"),
    End.RESTART: ("", "begun anew"),
    End.WORKSPACE_GONE: ("bad", "worktree gone"),
    End.SILENT: ("bad", "no events"),
    End.INTERRUPTED: ("", "interrupted"),
    End.LOST: ("bad", "ended with its run"),
}


class _Length(Func):
    """How many elements a JSON list has."""

    function = "JSON_ARRAY_LENGTH"
    output_field = IntegerField()

    def as_postgresql(self, compiler: Any, connection: Any, **more: Any) -> Any:
        return self.as_sql(compiler, connection, function="JSONB_ARRAY_LENGTH", **more)


@dataclass(frozen=True, slots=True)
class Meter:
    """What is used of one limit. `most` None: there is no limit."""

    name: str
    used: float
    most: float | None
    text: str

    @property
    def is_low(self) -> bool:
        return self.most is not None and self.used >= self.most * float(SOFT_LANDING)


@dataclass(frozen=True, slots=True)
class TurnRow:
    """A turn as a list shows it."""

    turn: LoopTurn

    @property
    def tone(self) -> str:
        turn = self.turn
        if turn.ended_at is None:
            return "live"
        return "warn" if turn.was_refused else "" if self.is_well else "bad"

    @property
    def state(self) -> str:
        return how(self.turn)

    @property
    def is_well(self) -> bool:
        turn = self.turn
        return turn.exit_code == 0 and turn.exit_signal is None and not turn.trouble

    @property
    def events(self) -> str:
        """The first topic, and how many more there are."""
        turn: Any = self.turn
        if not turn.event_count:
            return "" if turn.ended_at is None else "none"
        more = turn.event_count - 1
        return f"{turn.first_topic}{f' +{more}' if more else ''}"

    @property
    def tokens(self) -> str:
        return tokens(self.turn)

    @property
    def cost(self) -> str:
        return cost(self.turn)

    @property
    def took(self) -> str:
        return took(self.turn)


@dataclass(frozen=True, slots=True)
class IssueRow:
    """One issue of a loop that stays, as the card lists it."""

    shown: issue_of_loop.Shown

    @property
    def state(self) -> str:
        issue = self.shown.issue
        if issue.is_open:
            return "working" if issue.moved_at else "being begun"
        return issue.get_end_display()

    @property
    def tone(self) -> str:
        issue = self.shown.issue
        if issue.is_open:
            return "live"
        return {"completed": "good", "with_loop": "warn"}.get(issue.end, "")

    @property
    def took(self) -> str:
        seconds = self.shown.used.seconds
        return _UNTOLD[self._is_over] if seconds is None else words.duration(timedelta(0, seconds))

    @property
    def cost(self) -> str:
        told = self.shown.used.cost
        return _UNTOLD[self._is_over] if told is None else limit_rules.money(told)

    @property
    def _is_over(self) -> bool:
        return bool(self.shown.used.turns)


@dataclass(frozen=True, slots=True)
class Card:
    """The card *Loop* of a run."""

    loop: Loop
    tone: str
    state: str
    text: str
    wishes: Sequence[str]
    meters: Sequence[Meter]
    burn_down: BurnDown | None
    turns: Sequence[TurnRow]
    guidance: Sequence[Any]
    issues: Sequence[IssueRow]

    @property
    def is_open(self) -> bool:
        return not self.loop.end


def of(run: Run, now: datetime) -> Card | None:
    """The loop of a run; None for a run without one. Four queries, up to two more for one that stays."""
    loop = Loop.objects.defer("roles", "objective", "notes", "pending").filter(run=run).first()
    if loop is None:
        return None
    loop.run = run
    last = rows(loop)[:LAST_TURNS]
    said = loop.guidance.annotate(turn_number=F("given_in__number")).order_by("-id")
    turns = [TurnRow(turn) for turn in last]
    tone, state, text = stands(loop, turns[0].turn if turns else None)
    return Card(
        loop=loop,
        tone=tone,
        state=state,
        text=text,
        wishes=list(_wishes(loop)),
        meters=meters(loop, run.age(now)),
        burn_down=burn_down.build(loop),
        turns=turns,
        guidance=list(said[:LAST_GUIDANCE]),
        issues=[IssueRow(one) for one in issue_of_loop.newest(loop, LAST_ISSUES)],
    )


def rows(loop: Loop) -> QuerySet[LoopTurn]:
    """The turns of a loop, newest first, with what a list shows of their events and nothing long."""
    first = KeyTextTransform("topic", KeyTransform("0", "events"))
    found = LoopTurn.objects.filter(loop=loop).defer(*_LONG)
    return found.annotate(event_count=_Length("events"), first_topic=first).order_by("-id")


def page(loop: Loop, before: int | None) -> tuple[list[TurnRow], int | None]:
    """A page of turns, newest first, and where the next one begins."""
    wanted = rows(loop)
    if before is not None:
        wanted = wanted.filter(pk__lt=before)
    found = list(wanted[: PAGE + 1])
    return [TurnRow(turn) for turn in found[:PAGE]], (
        found[PAGE - 1].pk if len(found) > PAGE else None
    )


def stands(loop: Loop, last: LoopTurn | None) -> tuple[str, str, str]:
    """Colour, word and sentence for where a loop stands."""
    if loop.end:
        tone, word = _ENDS[End(loop.end)]
        code = "" if loop.exit_code is None else f"Exit code {loop.exit_code}."
        return tone, word, code
    most = stored.terms(loop.terms["rules"]).limits.turns
    number = f"turn {loop.number}{f' of at most {most}' if most is not None else ''}"
    if loop.state == LoopState.TURN:
        return "live", number, f"Working as {last.role}." if last is not None else ""
    why = f"{loop.why[:1].upper()}{loop.why[1:]}." if loop.why else ""
    if loop.state == LoopState.IDLE:
        return "", "idle", why
    if not loop.number:
        return "", "about to begin", why or "No turn has begun yet."
    return "", f"after {number}", why or "The next turn is about to begin."


def meters(loop: Loop, age: timedelta) -> list[Meter]:
    """Turns, time and money against their limits."""
    limits: Limits = stored.terms(loop.terms["rules"]).limits
    counters = stored.counters(loop.counters)
    seconds = age.total_seconds()
    most_seconds = limits.runtime.total_seconds() if limits.runtime is not None else None
    turns = f"{counters.turns:,}" + (f" of {limits.turns:,}" if limits.turns is not None else "")
    time = words.duration(age)
    if limits.runtime is not None:
        time += f" of {words.duration(limits.runtime)}"
    most_cost = float(limits.cost) if limits.cost is not None else None
    return [
        Meter("Turns", counters.turns, limits.turns, turns),
        Meter("Time", seconds, most_seconds, time),
        Meter("Cost", float(counters.cost), most_cost, _money(limits, counters)),
    ]


def how(turn: LoopTurn) -> str:
    """How a turn ended, in two words."""
    if turn.ended_at is None:
        return "running"
    if turn.was_refused:
        return "turned away"
    if turn.exit_signal is not None:
        return f"signal {turn.exit_signal}"
    if turn.trouble and turn.exit_code is None:
        return "not run"
    return "unknown" if turn.exit_code is None else f"exit {turn.exit_code}"


def tokens(turn: LoopTurn) -> str:
    """Tokens in and out; unknown where its agent did not tell."""
    if turn.tokens_in is None and turn.tokens_out is None:
        return "" if turn.ended_at is None else "unknown"
    number = (turn.tokens_in or 0) + (turn.tokens_out or 0)
    if number < 1000:
        return f"{number}"
    return f"{number / 1000:.1f} k" if number < 999_500 else f"{number / 1e6:.1f} M"


def cost(turn: LoopTurn) -> str:
    """What it cost; unknown where its agent did not tell."""
    if turn.cost is None:
        return "" if turn.ended_at is None else "unknown"
    return limit_rules.money(turn.cost)


def took(turn: LoopTurn) -> str:
    """How long it ran."""
    return "" if turn.seconds is None else words.duration(timedelta(seconds=turn.seconds))


def _money(limits: Limits, counters: Any) -> str:
    if not counters.is_cost_whole and not counters.cost:
        return "unknown: its agent reports no cost"
    told = limit_rules.money(counters.cost)
    told += f" of {limit_rules.money(limits.cost)}" if limits.cost is not None else ""
    return told if counters.is_cost_whole else f"{told}, some turns unknown"


def _wishes(loop: Loop) -> Any:
    """What was asked for and is done between two turns."""
    if loop.end:
        return
    if loop.stop_asked_at is not None:
        yield f"Stops after this turn, as {loop.stop_asked_by} asked."
    if loop.restart_asked_at is not None:
        yield f"Restarts after this turn, as {loop.restart_asked_by} asked."
