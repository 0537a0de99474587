"""An issue written and started by a program, with real git and tmux and an agent that shows its arguments."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from runs import tick
from runs.models import Notice, Project, Run
from tests import make
from tests.api.program import Program
from tests.fakes import FakeBell
from tests.lifecycle.test_starting import DUMPER
from tests.real import RealWorld

pytestmark = pytest.mark.django_db(transaction=True)

EVIL = 'it\'s "so" $(touch boom) `touch boom`; touch boom\nsecond line --flag \\ {prompt} %s'
TITLE = EVIL.replace("\n", " ")  # a title is one line


class Worker(FakeBell):
    """Does at once what the worker does when it is rung."""

    def __init__(self, ticks: Callable[[str], None]) -> None:
        super().__init__()
        self._ticks = ticks

    def look(self, project: str) -> None:
        self._ticks(project)


@pytest.fixture
def project(real: RealWorld) -> Project:
    """A project with the built-in tracker, whose agent writes its arguments into a file."""

    def ticks(slug: str) -> None:
        tick.tick(real.lab, project=slug)
        real.work()

    found = real.project(argv=[*DUMPER, "--title", "{prompt}"], tracker="builtin")
    real.lab = dataclasses.replace(real.lab, bell=Worker(ticks))
    return found


@pytest.mark.row("X-14", level="real")
def test_a_title_sent_by_a_program_reaches_the_agent_as_one_literal_argument(
    real: RealWorld, project: Project
) -> None:
    program = Program.of(make.a_user())
    written = program.post(
        f"/projects/{project.pk}/issues", {"title": EVIL, "labels": ["ready-for-agent"]}
    )
    assert written.json()["title"] == TITLE

    started = program.post(f"/projects/{project.pk}/runs", {})

    assert started.status_code == 201, started.content
    run = Run.objects.get(pk=started.json()["run"]["id"])
    dump = Path(run.worktree) / "dump.json"
    real.until(dump.exists)
    argv = json.loads(dump.read_text())["argv"]
    assert (len(argv), argv[0], argv[1]) == (2, "--title", run.prompt)
    assert "$(touch boom)" in run.prompt
    assert run.issue_title == TITLE
    assert not list(real.folder.rglob("boom"))
    shown = program.get(f"/runs/{run.pk}").json()
    assert (shown["issue_title"], shown["state"], shown["started_by"]) == (TITLE, "working", "anna")

    assert program.post(f"/runs/{run.pk}/stop").json()["outcome"] == "stopped"
    assert real.session_names() == []
    told = Notice.objects.filter(run=run, by="anna").values_list("kind", flat=True)
    assert {"run.starting", "run.ended"} <= set(told)


@pytest.mark.row("X-14", level="real")
@pytest.mark.parametrize("key", ["$(touch boom)", "1; touch boom", "--force", "../1", "1\n2", "01"])
def test_a_key_that_is_none_starts_nothing(real: RealWorld, project: Project, key: str) -> None:
    program = Program.of(make.a_user())
    program.post(f"/projects/{project.pk}/issues", {"title": "t", "labels": ["ready-for-agent"]})
    refused = program.post(f"/projects/{project.pk}/runs", {"issue": key})
    assert (refused.status_code, refused.json()["code"]) == (409, "nothing_ready")
    assert not Run.objects.exists()
    assert not list(real.folder.rglob("boom"))
