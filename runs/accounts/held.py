"""What pages say of agents whose account cannot be used, and of runs that wait for them.

Read along with what pages load anyway, so that it costs no query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db.models import F, QuerySet

from runs.accounts import hold_rules
from runs.core.states import Trouble
from runs.models import AgentProfile, Project, Run
from runs.overview.need_facts import AgentNeeds

if TYPE_CHECKING:
    from runs.overview.board import Board

_PREFIX = "held_"
_COLUMNS = ("name", "hold", "hold_note", "held_at", "held_until")


@dataclass(frozen=True, slots=True)
class Hold:
    """An agent's hold as its row tells it."""

    id: int
    name: str
    trouble: Trouble
    note: str
    at: datetime
    until: datetime

    @property
    def words(self) -> str:
        return hold_rules.words(self.trouble)

    @property
    def advice(self) -> str:
        return hold_rules.advice(self.trouble)


@dataclass(frozen=True, slots=True)
class Wait:
    """What a held run waits for. `until` is None as soon as nothing but a free slot is missing."""

    text: str
    until: datetime | None


def columns(agent: str) -> dict[str, Any]:
    """What is read of the hold of a row's agent; `agent` is the name of the relation."""
    return {f"{_PREFIX}agent_{name}": F(f"{agent}__{name}") for name in _COLUMNS}


def with_profile(rows: QuerySet[Run]) -> QuerySet[Run]:
    """Runs with what is told of their profile's hold."""
    return rows.annotate(**columns("profile"))


def wait_of(run: Run, now: datetime) -> Wait | None:
    """What a held run waits for; None for a run that is not held."""
    if not run.is_held:
        return None
    hold = _of_row(run, run.profile_id, now)
    if hold is None and run.retry_at is not None and run.retry_at > now:
        return Wait(f"did not start again: {run.agent_note}", run.retry_at)
    if hold is None:
        return Wait("waiting for a free slot", None)
    return Wait(hold_rules.waiting(hold.trouble, hold.name), hold.until)


def of_profile(profile: AgentProfile | None, now: datetime) -> Hold | None:
    """The hold of a profile that is there whole."""
    if profile is None:
        return None
    row = {name: getattr(profile, name) for name in _COLUMNS}
    return _hold(profile.pk, row, now)


def of_project(picture: Board, project: Project) -> Hold | None:
    """The hold of the agent that a project uses."""
    if project.agent_id is None:
        return of_profile(picture.facts.settings.agent, picture.facts.now)
    return _of_row(project, project.agent_id, picture.facts.now)


def of_board(picture: Board) -> list[Hold]:
    """The agents in use that are held: of the settings, of projects and of runs that wait."""
    found = {hold.id: hold for hold in _all(picture)}
    return sorted(found.values(), key=lambda hold: hold.name)


def needs(picture: Board) -> list[AgentNeeds]:
    """The same as what needs a person."""
    now = picture.facts.now
    waiting = [run.profile_id for run in picture.active if run.is_held]
    return [
        AgentNeeds(
            hold.id,
            hold.name,
            hold.trouble,
            hold.note,
            hold_rules.clock(hold.at, now),
            hold_rules.clock(hold.until, now),
            waiting.count(hold.id),
            hold.at,
        )
        for hold in of_board(picture)
    ]


def _all(picture: Board) -> Iterator[Hold]:
    now = picture.facts.now
    own = of_profile(picture.facts.settings.agent, now)
    rows = [(project, project.agent_id) for project in picture.projects]
    some = [_of_row(row, ident, now) for row, ident in rows]
    some += [_of_row(run, run.profile_id, now) for run in picture.active]
    yield from (hold for hold in (own, *some) if hold is not None)


def _of_row(row: Any, ident: int | None, now: datetime) -> Hold | None:
    """The hold of a row that was read with `columns`."""
    known = vars(row)
    told = {name: known.get(f"{_PREFIX}agent_{name}") for name in _COLUMNS}
    return _hold(ident, told, now)


def _hold(ident: int | None, row: Mapping[str, Any], now: datetime) -> Hold | None:
    if (
        ident is None
        or not row["hold"]
        or not hold_rules.is_held(row["hold"], row["held_until"], now)
    ):
        return None
    trouble = Trouble(row["hold"])
    return Hold(
        ident, row["name"] or "", trouble, row["hold_note"] or "", row["held_at"], row["held_until"]
    )
