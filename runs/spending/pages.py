"""What pages say of limits: how much of each is used, what they cannot do, and what they hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runs.models import AgentProfile, Project, Run, Settings
from runs.overview.need_facts import LimitNeeds
from runs.spending import day_rules, gathering, limit_rules
from runs.spending.day_rules import Sum
from runs.spending.gathering import Spending
from runs.spending.limit_rules import Meter, Program

if TYPE_CHECKING:
    from runs.overview.board import Board


@dataclass(frozen=True, slots=True)
class Lines:
    """The limits of a run or of a project's day, and what they cannot do."""

    meters: Sequence[Meter]
    caveats: Sequence[str]


@dataclass(frozen=True, slots=True)
class General:
    """The general limits of one run and of a day, in words, and what they cannot do."""

    run: str
    day: str
    caveats: Sequence[str]


@dataclass(frozen=True, slots=True)
class Today:
    """What was used on this day of UTC, as far as it was told."""

    sum: Sum

    @property
    def tokens(self) -> str:
        number = self.sum.tokens
        if number < 1000:
            return str(number)
        return f"{number / 1000:.0f} k" if number < 999_500 else f"{number / 1e6:.1f} M"

    @property
    def cost(self) -> str:
        """Unknown is not nothing: of how many runs nobody told a cost is said beside it."""
        has_any = self.sum.runs > self.sum.unpriced
        return limit_rules.money(self.sum.cost) if has_any else "cost not told"

    @property
    def unpriced(self) -> str:
        runs = "run" if self.sum.unpriced == 1 else "runs"
        has_any = self.sum.runs > self.sum.unpriced > 0
        return f"and {self.sum.unpriced} {runs} of unknown cost" if has_any else ""


def of_run(picture: Board, run: Run) -> Lines | None:
    """The limits that hold for a run; None while none is set. One query where one is of a day."""
    settings = picture.facts.settings
    spending = gathering.spending(settings, [run.project], picture.facts.now)
    meters = spending.of_run(run)
    if not meters:
        return None
    program = Program(run.agent or "Its agent", run.mode, run.output, run.resume_argv)
    told = limit_rules.caveats(
        program,
        tokens=any(not one.limit.is_money for one in meters) and run.used.tokens is None,
        cost=any(one.limit.is_money for one in meters),
    )
    return Lines(meters, told)


def of_project(picture: Board, project: Project) -> Lines:
    """The limits of a project's day, and what limits cannot do with its agent."""
    spending = _spending(picture)
    return Lines(spending.of_project(project), caveats(picture, project))


def caveats(picture: Board, project: Project) -> list[str]:
    """What the limits of a project cannot do with the agent that it uses. No query."""
    settings, known = picture.facts.settings, vars(project)
    agent = settings.agent if project.agent_id is None else None
    if agent is not None:
        program = _program(agent)
    elif project.agent_id is not None:
        program = Program(
            known.get("agent_name") or "",
            known.get("agent_mode") or "",
            known.get("agent_output") or "",
            known.get("agent_argv") or (),
        )
    else:
        return []
    return limit_rules.caveats(
        program,
        tokens=gathering.has_tokens(settings, project),
        cost=gathering.has_money(settings, project),
    )


def of_settings(settings: Settings, profiles: Iterable[AgentProfile]) -> General:
    """The general limits in words, and what they cannot do with each agent."""
    tokens = bool(settings.run_tokens_limit or settings.day_tokens_limit)
    cost = bool(settings.run_cost_limit or settings.day_cost_limit)
    found = [limit_rules.caveats(_program(one), tokens=tokens, cost=cost) for one in profiles]
    return General(
        limit_rules.amounts(settings.run_tokens_limit, settings.run_cost_limit),
        limit_rules.amounts(settings.day_tokens_limit, settings.day_cost_limit),
        [text for lines in found for text in lines],
    )


def hold_of(picture: Board, project: Project) -> str:
    """Why nothing may start in a project today; empty while it may. One query where a day has a limit."""
    return _spending(picture).hold(project)


def needs(picture: Board) -> list[LimitNeeds]:
    """The limits of this day that are reached: one line for each scope."""
    spending, day = _spending(picture), f"{day_rules.day_of(picture.facts.now)}"
    found: dict[int, LimitNeeds] = {}
    for project in picture.projects:
        meter = limit_rules.reached(spending.of_project(project))
        if meter is not None:
            scope = 0 if meter.limit.is_of_all else project.pk
            name = "All projects" if meter.limit.is_of_all else project.name
            words, numbers = meter.limit.words, meter.numbers
            found.setdefault(scope, LimitNeeds(scope, name, words, numbers, day))
    return list(found.values())


def today(picture: Board, runs: Sequence[Run]) -> Today | None:
    """What these runs used on this day; None where nothing was."""
    found = gathering.of_loaded(runs, day_rules.day_of(picture.facts.now))
    return Today(found) if found.runs else None


def _spending(picture: Board) -> Spending:
    facts = picture.facts
    return gathering.spending(facts.settings, picture.projects, facts.now)


def _program(profile: Any) -> Program:
    return Program(profile.name, profile.mode, profile.output, profile.argv)
