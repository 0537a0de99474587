"""What programs are told of loops: where one stands, its turns, guidance, memories, settings."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BaseModel, Field

from runs.agents.models import EFFORT_CHARACTERS, MODEL_CHARACTERS
from runs.api.asked import BIGGEST_ID, NO_NUL, WHOLE, Given, Name
from runs.core.states import LoopState
from runs.loop_settings import settings_acts, unfit
from runs.loops import acts, issue_of_loop, prompts, stored
from runs.models import Loop, LoopGuidance, LoopMemory, LoopRole, LoopTerms, LoopTurn

Flag = Annotated[bool, Field(strict=True)]
Count = Annotated[int, Field(ge=0, le=unfit.MOST_COUNT), WHOLE]
FromOne = Annotated[int, Field(ge=1, le=unfit.MOST_COUNT), WHOLE]
FromTwo = Annotated[int, Field(ge=2, le=unfit.MOST_COUNT), WHOLE]
Seconds = Annotated[int, Field(ge=1, le=unfit.MOST_SECONDS), WHOLE]
Word = Annotated[str, Field(max_length=100, pattern=NO_NUL)]
Topics = Annotated[list[Word], Field(max_length=unfit.MOST_TOPICS)]
Agent = Annotated[int, Field(ge=1, le=BIGGEST_ID), WHOLE]
Text = Annotated[str, Field(min_length=1, max_length=acts.MOST_TEXT, pattern=NO_NUL)]
MOST_ISSUES = 100


def _left_out(schema: dict[str, Any]) -> None:
    schema.pop("default", None)


def left_out() -> Any:
    """A field that stays as it is when it is not given."""
    return Field(default=None, json_schema_extra=_left_out)


class LoopLimits(BaseModel):
    """When a loop ends by itself; null: no such limit. `max_cost` in US dollars."""

    max_turns: int | None
    max_seconds: float | None
    max_cost: float | None


class IssueOfLoop(BaseModel):
    """One issue of a loop that stays. Time, tokens and cost are null where a turn did not tell them.

    `end` is empty while it is worked on, else completed, given_back or with_loop.
    """

    position: int
    key: str
    title: str
    branch: str
    pull_number: int | None
    taken_at: datetime
    ended_at: datetime | None
    end: str
    note: str
    turns: int
    seconds: float | None
    tokens_in: int | None
    tokens_out: int | None
    cost: float | None


class RunLoop(BaseModel):
    """Where a loop stands. `turn` is the one that was ordered last in this generation.

    `turns`, `seconds` and `cost` are what is used of `limits`; `is_cost_whole` is false once a turn
    did not tell its cost. `end` is empty while it goes on; `exit_code` is that of the loop. `issues`
    are the newest hundred of a loop that stays, the newest first.
    """

    run: int
    state: LoopState
    why: str
    generation: int
    turn: int
    turns: int
    seconds: float
    cost: float
    is_cost_whole: bool
    limits: LoopLimits
    is_persistent: bool
    not_before: datetime | None
    stop_asked_by: str
    restart_asked_by: str
    end: str
    exit_code: int | None
    ended_at: datetime | None
    issues: list[IssueOfLoop]


class TurnSummary(BaseModel):
    """One call of an agent. `exit_code`, tokens and cost are null where nobody told them."""

    generation: int
    number: int
    role: str
    agent: str
    model: str
    began_at: datetime
    ended_at: datetime | None
    seconds: float | None
    exit_code: int | None
    signal: int | None
    trouble: str
    was_refused: bool
    event_count: int
    malformed: int
    tokens_in: int | None
    tokens_out: int | None
    cost: float | None
    commits: int
    head_before: str
    head: str


class Turns(BaseModel):
    items: list[TurnSummary]
    next: int | None


class LoopEvent(BaseModel):
    """What an agent told. `to`: the role that alone may take it."""

    topic: str
    payload: str
    to: str


class Turn(TurnSummary):
    """A turn in full. `prompt` is composed again from what is stored; `answer` is the end of its output."""

    prompt: str
    answer: str
    events: list[LoopEvent]
    dropped: int
    told: list[str]


class Guidance(BaseModel):
    """What a person told a loop. `given_in`: the turn whose prompt had it first."""

    id: int
    text: str
    by: str
    at: datetime
    given_in: int | None
    acknowledged_at: datetime | None


class Guidances(BaseModel):
    items: list[Guidance]
    next: int | None


class Memory(BaseModel):
    """What is kept for all later loops of a project."""

    id: int
    text: str
    by: str
    run: int | None
    at: datetime


class Memories(BaseModel):
    items: list[Memory]
    next: int | None


class TextGiven(Given):
    """A text of at most 4,000 characters."""

    text: Text


class RoleShown(BaseModel):
    """`agent` is null for the loop's own."""

    name: str
    instructions: str
    subscriptions: list[str]
    publishes: list[str]
    agent: int | None
    model: str
    effort: str


class LoopSettings(BaseModel):
    """How runs of a project are loops. Limits are null where there is none; `agent` for the project's own."""

    is_on: bool
    agent: int | None
    is_persistent: bool
    completion: str
    cancellation: str
    required: list[str]
    max_turns: int | None
    max_seconds: int | None
    max_cost: float | None
    max_turn_seconds: int | None
    failures: int
    redispatches: int
    malformed: int
    same_event: int
    recoveries: int
    blocks: int
    cooldown_seconds: int
    pause_seconds: int
    is_strict: bool
    may_idle: bool
    idle_seconds: int
    has_tasks: bool
    has_memories: bool
    cleans_up: bool
    resets_notes: bool
    check_in_seconds: int | None
    answer_seconds: int
    roles: list[RoleShown]


class RoleGiven(Given):
    """A role; no agent: the loop's own."""

    name: Annotated[Name, Field(min_length=1)]
    instructions: Annotated[str, Field(min_length=1, max_length=20_000, pattern=NO_NUL)]
    subscriptions: Topics
    publishes: Topics = []
    agent: Agent | None = None
    model: Annotated[str, Field(max_length=MODEL_CHARACTERS, pattern=NO_NUL)] = ""
    effort: Annotated[str, Field(max_length=EFFORT_CHARACTERS, pattern=NO_NUL)] = ""

    def values(self) -> dict[str, Any]:
        """It by the names of its columns."""
        found = self.model_dump()
        found["profile_id"] = found.pop("agent")
        return found


class LoopSettingsGiven(Given):
    """What is left out stays as it is. `roles` take the place of all that there are, in this order."""

    is_on: Flag = left_out()
    agent: Agent | None = left_out()
    is_persistent: Flag = left_out()
    completion: Annotated[Word, Field(min_length=1)] = left_out()
    cancellation: Word = left_out()
    required: Topics = left_out()
    max_turns: FromOne | None = left_out()
    max_seconds: Seconds | None = left_out()
    max_cost: Annotated[float, Field(gt=0, le=1_000_000)] | None = left_out()
    max_turn_seconds: Seconds | None = left_out()
    failures: FromOne = left_out()
    redispatches: FromOne = left_out()
    malformed: FromOne = left_out()
    same_event: FromTwo = left_out()
    recoveries: Count = left_out()
    blocks: FromOne = left_out()
    cooldown_seconds: Annotated[int, Field(ge=0, le=86_400), WHOLE] = left_out()
    pause_seconds: Annotated[int, Field(ge=0, le=86_400), WHOLE] = left_out()
    is_strict: Flag = left_out()
    may_idle: Flag = left_out()
    idle_seconds: Seconds = left_out()
    has_tasks: Flag = left_out()
    has_memories: Flag = left_out()
    cleans_up: Flag = left_out()
    resets_notes: Flag = left_out()
    check_in_seconds: Seconds | None = left_out()
    answer_seconds: Seconds = left_out()
    roles: Annotated[list[RoleGiven], Field(max_length=settings_acts.MOST_ROLES)] = left_out()

    def values(self) -> dict[str, Any]:
        """The terms that were given, by the names of their columns."""
        found = self.model_dump(exclude_unset=True, exclude={"roles"})
        if "agent" in found:
            found["profile_id"] = found.pop("agent")
        if found.get("max_cost") is not None:
            found["max_cost"] = Decimal(str(found["max_cost"]))
        return found


def loop(row: Loop, now: datetime) -> RunLoop:
    """A loop with what is used of its limits."""
    terms, counters = stored.terms(row.terms["rules"]), stored.counters(row.counters)
    runtime, cost = terms.limits.runtime, terms.limits.cost
    return RunLoop(
        run=row.run_id,
        state=LoopState(row.state),
        why=row.why,
        generation=row.generation,
        turn=row.number,
        turns=counters.turns,
        seconds=row.run.age(now).total_seconds(),
        cost=float(counters.cost),
        is_cost_whole=counters.is_cost_whole,
        limits=LoopLimits(
            max_turns=terms.limits.turns,
            max_seconds=None if runtime is None else runtime.total_seconds(),
            max_cost=None if cost is None else float(cost),
        ),
        is_persistent=terms.is_persistent,
        not_before=row.not_before,
        stop_asked_by=row.stop_asked_by,
        restart_asked_by=row.restart_asked_by,
        end=row.end,
        exit_code=row.exit_code,
        ended_at=row.ended_at,
        issues=[_issue(one) for one in issue_of_loop.newest(row, MOST_ISSUES)],
    )


def _issue(one: issue_of_loop.Shown) -> IssueOfLoop:
    issue, used = one.issue, one.used
    names = ("position", "title", "branch", "taken_at", "ended_at", "end", "note")
    return IssueOfLoop(
        **{name: getattr(issue, name) for name in names},
        key=issue.issue_key,
        pull_number=one.pull,
        turns=used.turns,
        seconds=used.seconds,
        tokens_in=used.tokens_in,
        tokens_out=used.tokens_out,
        cost=None if used.cost is None else float(used.cost),
    )


def turn_summary(row: Any) -> TurnSummary:
    """A row that was read with how many events it has."""
    return TurnSummary(**_turn(row, row.event_count))


def turn(row: LoopTurn) -> Turn:
    """A turn with its prompt, answer and events."""
    return Turn(
        **_turn(row, len(row.events)),
        prompt=prompts.compose(stored.facts(row.facts)),
        answer=row.answer,
        events=[LoopEvent(**one) for one in row.events],
        dropped=row.dropped,
        told=row.told,
    )


def guidance(row: LoopGuidance) -> Guidance:
    number = row.given_in.number if row.given_in is not None else None
    given = {name: getattr(row, name) for name in ("text", "by", "at", "acknowledged_at")}
    return Guidance(id=row.pk, given_in=number, **given)


def memory(row: LoopMemory) -> Memory:
    return Memory(id=row.pk, text=row.text, by=row.by, run=row.run_id, at=row.at)


def settings(row: LoopTerms, roles: list[LoopRole]) -> LoopSettings:
    """The terms and roles of a project."""
    given = {name: getattr(row, name) for name in unfit.TERMS if name != "profile_id"}
    shown = [
        RoleShown(
            name=one.name,
            instructions=one.instructions,
            subscriptions=one.subscriptions,
            publishes=one.publishes,
            agent=one.profile_id,
            model=one.model,
            effort=one.effort,
        )
        for one in roles
    ]
    return LoopSettings(**given, agent=row.profile_id, roles=shown)


def _turn(row: LoopTurn, event_count: int) -> Mapping[str, Any]:
    same = (
        *("generation", "number", "role", "agent", "model", "ended_at", "seconds", "exit_code"),
        *("trouble", "was_refused", "malformed", "tokens_in", "tokens_out", "commits"),
        *("head_before", "head"),
    )
    return {
        **{name: getattr(row, name) for name in same},
        "began_at": row.ordered_at,
        "signal": row.exit_signal,
        "cost": None if row.cost is None else float(row.cost),
        "event_count": event_count,
    }
