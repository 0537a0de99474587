"""Nights with nobody there, replayed on a moved clock: what agents do, and when."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from runs import tick
from runs.forges import tracker_cache
from runs.lifecycle import launch
from runs.models import Project, Run, Settings
from tests import make
from tests.fakes import World
from tests.transcript import agent_lines as x
from trackers.base import Ability

STEP = timedelta(minutes=5)
DIALOG = """
 Bash command
   git push --force
 Do you want to proceed?
 ❯ 1. Yes
   2. No, and tell Claude what to do differently (esc)
"""


class Fate(Enum):
    """What an agent does with its issue."""

    DELIVERS = "delivers"
    DIES = "dies"
    ASKS = "asks"
    STOPS = "stops"
    HANGS = "hangs"
    IS_TURNED_AWAY = "is turned away"


@dataclass(frozen=True)
class Plan:
    """What comes of one issue, so many minutes after its agent began."""

    fate: Fate
    after: timedelta = timedelta(minutes=15)


Plans = Mapping[str, Sequence[Plan]]
LATER = timedelta(hours=7, minutes=30)
D, X, T = Plan(Fate.DELIVERS), Plan(Fate.DIES), Plan(Fate.HANGS)
QUIET: Plans = {"billing": [D] * 4, "docs-site": [D] * 2}
ASKED: Plans = {
    "storefront": [D, Plan(Fate.ASKS, timedelta(hours=3, minutes=40)), D],
    "docs-site": [D] * 2,
}
OUTAGE: Plans = {"billing": [Plan(Fate.DELIVERS, timedelta(hours=2))] * 6, "docs-site": [X, D, D]}
BUSY: Plans = {
    "billing": [X, D, X, D, X, D, X, D, X, D, D, D],
    "docs-site": [D, X, X, X, D],
    "gateway": [D, Plan(Fate.IS_TURNED_AWAY), D, D, D, D, D],
    "search": [D, T, D, X, D, T, D, Plan(Fate.ASKS)],
    "storefront": [D, X, D, X, D, D, X, D, D, D, Plan(Fate.DELIVERS, LATER)],
}
BUDGETS = {"billing": 240, "search": 60, "storefront": 600}  # minutes
CAPS = {"gateway": 5}  # US dollars a day
TITLES = (
    "Retry when the service answers 503",
    "Say which field an import stumbled over",
    "Round totals once, at the end",
    "Close the connection after an error",
    "Show dates in the reader's own time zone",
    "Stop asking twice for the same page",
    "Accept numbers with a thin space",
    "Keep the filter when the list is sorted",
)


@dataclass(frozen=True)
class Outage:
    """When the forge gives no answer, counted from the evening on."""

    begin: timedelta
    end: timedelta

    def at(self, world: World, passed: timedelta) -> None:
        """Have it fail, or answer again."""
        if self.begin <= passed < self.end:
            world.tracker.fail()
        else:
            world.tracker.heal()


class Night:
    """Projects on automatic work; `pass_until` lets hours pass, `step` a look."""

    def __init__(self, world: World, plans: Plans, step: timedelta = STEP) -> None:
        self.world = world
        self.step = step
        self.plans = plans
        self.turned_away: set[int] = set()
        self.delivered: set[int] = set()
        world.tracker.abilities -= {Ability.LOCAL}
        Settings.objects.filter(pk=Settings.current().pk).update(session_cap=5)
        self.projects = {name: self._project(name, its) for name, its in plans.items()}

    def pass_until(self, length: timedelta, outage: Outage | None = None) -> None:
        """Let so much time pass, in some of which the forge may give no answer."""
        begun = self.world.clock.now
        while self.world.clock.now < begun + length:
            self.world.clock.forward(seconds=self.step.total_seconds())
            if outage is not None:
                outage.at(self.world, self.world.clock.now - begun)
            for run in Run.objects.working().select_related("project"):
                self._act(run)
            report = tick.tick(self.world.lab)
            assert outage is not None or report.errors == []
            while self.world.queue.launches:
                launch.carry_out(self.world.lab, self.world.queue.launches.pop(0))
            while self.world.queue.refreshes:
                tracker_cache.refresh(self.world.lab, self.world.queue.refreshes.pop(0))

    def _project(self, name: str, plans: Sequence[Plan]) -> Project:
        self.world.tracker.add_root(name)
        if name == "gateway":
            agent = make.an_agent(
                "Claude in print mode",
                argv=["claude", "-p", "{prompt}"],
                mode="one_shot",
                output="claude_stream_json",
            )
        else:
            agent = make.an_agent(f"Claude Code ({name})", argv=["claude", "{prompt}"])
        made = make.a_project(
            name,
            agent=agent,
            is_auto=True,
            run_budget_minutes=BUDGETS.get(name),
            day_cost_limit=CAPS.get(name, 0),
        )
        for number in range(1, len(plans) + 1):
            title = TITLES[number % len(TITLES)]
            self.world.tracker.add_issue(name, title, str(number), labels=[made.ready_label])
        return made

    def _act(self, run: Run) -> None:
        plan = self.plans[run.project.name][int(run.issue_key) - 1]
        now = self.world.clock.now
        begun = run.resumed_at or run.started_at or now
        if run.began_at is None and not run.is_one_shot:
            self._hears(run, {"event": "UserPromptSubmit", "session": f"s-{run.pk}"})
        if now - begun < plan.after:
            self.world.sessions.text[run.session] = f"✳ Thinking… ({now:%H:%M})"
            return
        match plan.fate:
            case Fate.DELIVERS:
                self._delivers(run)
            case Fate.DIES:
                self.world.sessions.end(run.session, 1)
            case Fate.STOPS if run.turn_ended_at is None:
                self._hears(run, {"event": "Stop"})
            case Fate.ASKS if not run.asks:
                wish = {"tool": "Bash", "wish": "git push --force"}
                self._hears(run, {"event": "PermissionRequest", **wish})
                self.world.sessions.text[run.session] = DIALOG
            case Fate.IS_TURNED_AWAY if run.pk not in self.turned_away:
                self._is_turned_away(run)
            case Fate.IS_TURNED_AWAY:
                self._delivers(run)

    def _hears(self, run: Run, event: dict[str, object]) -> None:
        folder = self.world.lab.paths.run_folder(run.pk)
        line = json.dumps({"at": self.world.clock.now.timestamp(), **event}).encode() + b"\n"
        events = self.world.sessions.events
        events[folder] = events.get(folder, b"") + line

    def _delivers(self, run: Run) -> None:
        if run.is_one_shot:
            folder = self.world.lab.paths.run_folder(run.pk)
            self.world.sessions.outputs[folder] = x.written(
                x.claude_init(), x.claude_does("make"), x.claude_result(total_cost_usd=1.6)
            )
            self.world.sessions.end(run.session, 0)
        if run.pk not in self.delivered:  # of which labsite may not hear at once
            self.delivered.add(run.pk)
            root, now = run.project.tracker_root, self.world.clock.now
            self.world.tracker.add_pull(root, run.branch, created_at=now)

    def _is_turned_away(self, run: Run) -> None:
        self.turned_away.add(run.pk)
        reset = self.world.clock.now + timedelta(hours=2)
        words = f"Claude AI usage limit reached|{int(reset.timestamp())}"
        folder = self.world.lab.paths.run_folder(run.pk)
        self.world.sessions.outputs[folder] = x.written(
            x.claude_init(), x.claude_does("make"), x.claude_refused(429, words)
        )
        self.world.sessions.end(run.session, 1)
