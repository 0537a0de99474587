"""A loop whose runner is played by the test: turns are reported as `labctl turns` reports them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from runs.core.ports import Lab
from runs.loops import turns
from runs.loops.results import Result
from runs.loops.turns import Answer, Report
from runs.models import Host, Loop, LoopTerms, LoopTurn, Project, Run
from tests import make
from tests.fakes import World
from tests.world.stories import look, start

ENDED = Result(exit_code=0, seconds=1.0)


def project_of(world: World, **terms: Any) -> Project:
    """A project that works in loops, with a one-shot agent that prints plain text."""
    world.tracker.add_root("demo")
    agent = make.an_agent("Turner", argv=["turner", "{prompt}"], mode="one_shot")
    project = make.a_project(agent=agent)
    LoopTerms.objects.create(project=project, is_on=True, **terms)
    return project


@dataclass
class Desk:
    """A loop run, and its runner's side of it."""

    world: World
    run: Run
    answer: Answer | None = None

    @property
    def lab(self) -> Lab:
        return self.world.lab

    @property
    def loop(self) -> Loop:
        return Loop.objects.get(run=self.run)

    @property
    def turn(self) -> LoopTurn:
        """The newest turn."""
        return self.loop.turns.latest("id")

    def step(self, number: int = 0, generation: int = 1, **told: Any) -> Answer:
        """Ask what to do, as a runner that has run this turn last."""
        Host.objects.update(last_tick_at=self.world.clock())
        self.run = Run.objects.select_related("project", "profile").get(pk=self.run.pk)
        self.answer = turns.step(self.lab, self.run, Report(number, generation, **told))
        return self.answer

    def begin(self) -> Answer:
        """The first question of a runner."""
        return self.step()

    def finish(self, *events: object, output: str = "", result: Result = ENDED) -> Answer:
        """Report the turn that was ordered, with the events that its agent told and what it printed."""
        assert self.answer is not None
        number, generation = self.answer.content["number"], self.answer.content["generation"]
        folder = self.loop.folder(self.lab.paths) / f"{generation}-{number}"
        lines = [one if isinstance(one, str) else json.dumps(one) for one in events]
        self.world.sessions.events[folder] = "".join(f"{line}\n" for line in lines).encode()
        self.world.sessions.files[folder / "output"] = output.encode()
        return self.step(number, generation, result=result)

    def writes(self, notes: str) -> None:
        """The agent leaves notes."""
        path = self.loop.folder(self.lab.paths) / "scratchpad.md"
        self.world.sessions.files[path] = notes.encode()


def desk_of(world: World, project: Project, key: str = "7") -> Desk:
    """A loop run whose session has begun."""
    run = start(world, project, key)
    look(world)
    run.refresh_from_db()
    return Desk(world, run)


def topic(name: str, payload: str = "") -> dict[str, str]:
    """An event as an agent tells it."""
    return {"topic": name, "payload": payload}
