"""A run of Claude Code and one of Codex, each with a conversation in its program's own folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import User

from runs.models import Run
from tests import make
from tests.api.program import Program
from tests.conversation import long_talk
from tests.fakes import World

TREE = "/srv/trees/demo-7"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home folder of the agents of a fake world."""
    return tmp_path / "home"


@pytest.fixture
def claude_run(home: Path, world: World, db: None) -> Run:
    """Without a record yet: the test writes one."""
    profile = make.an_agent("My Claude", argv=["claude", "{prompt}"], trust="claude")
    told = {"worktree": TREE, "agent_session": long_talk.SESSION, "agent": "My Claude"}
    return make.a_run(make.a_project(), profile=profile, **told)


@pytest.fixture
def codex_run(home: Path, world: World, db: None) -> Run:
    profile = make.an_agent("My Codex", argv=["codex", "{prompt}"])
    told = {"worktree": TREE, "agent_session": long_talk.THREAD, "agent": "My Codex"}
    return make.a_run(make.a_project("other"), "8", profile=profile, **told)


@pytest.fixture
def looking(world: World, operator: User) -> Program:
    """A program that may only look."""
    return Program.of(operator, "look")
