"""A project whose agent is a one-shot Claude Code, and runs of it that ended."""

from __future__ import annotations

import pytest

from runs.core.states import Outcome
from runs.models import Project, Run
from tests import make
from tests.fakes import World
from tests.transcript import agent_lines as x
from tests.world.stories import look, start

ONE_SHOT = ["claude", "-p", "--model", "{model}", "{prompt}"]


@pytest.fixture
def project(world: World, db: None) -> Project:
    agent = make.an_agent(
        "Claude", argv=ONE_SHOT, mode="one_shot", output="claude_stream_json", model_names=["a"]
    )
    world.tracker.add_root("demo")
    return make.a_project(agent=agent)


def prints(world: World, run: Run, *lines: x.Line) -> None:
    """What its program prints."""
    world.sessions.outputs[world.lab.paths.run_folder(run.pk)] = x.written(*lines)


def dead(world: World, project: Project, key: str = "7") -> Run:
    """A run that worked in a session of its own and ended without a pull request."""
    run = start(world, project, key)
    prints(world, run, x.claude_init(), x.claude_does("make"))
    world.sessions.end(run.session, 1)
    look(world)
    run.refresh_from_db()
    assert (run.outcome, run.settled_at is not None) == (Outcome.DIED, True)
    return run
