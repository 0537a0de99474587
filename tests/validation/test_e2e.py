"""The end-to-end check with real processes: a real run on a temporary repository, and no trace of it."""

from __future__ import annotations

import json
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from runs.core import tokens
from runs.machine import processes
from runs.models import AgentProfile, Project, Settings
from runs.validation import clean_room, e2e, e2e_fixture, run_level
from runs.validation.clean_room import ByHand, Lost, Result, Room
from runs.validation.command_rules import Checked
from runs.validation.specs import E2E, Coverage, Scope, Spec
from tests.patience import PATIENCE
from tests.real import RealWorld, git

pytestmark = pytest.mark.django_db(transaction=True)

SOLVES = (
    "import json, sys, pathlib\n"
    "repo = pathlib.Path(sys.argv[-1])\n"
    "(repo / 'GREETING.txt').write_text('hello')\n"
    "at = repo / '.issue.json'\n"
    "at.write_text(json.dumps({**json.loads(at.read_text()), 'status': 'closed'}))\n"
)


def room_of(real: RealWorld, project: Project) -> Room:
    repo = project.repo(real.paths)
    commit = git(repo, "rev-parse", "refs/remotes/origin/main")
    folder, path = real.paths.validations / "1", real.paths.clean_rooms / "run-level-1"
    return Room(project, commit, commit, path, folder, tokens.new_mark())


def tried(real: RealWorld, **terms: Any) -> Result:
    """A run level that has nothing but the end-to-end check."""
    project = Project.objects.first() or real.project()
    spec = Spec((), True, True, Coverage(False), E2E(**terms), Scope.RUN_LEVEL)
    return clean_room.run(real.lab, room_of(real, project), spec, ByHand(lambda: True))


def command(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def left(real: RealWorld) -> list[Path]:
    root = real.paths.e2e_fixtures
    return list(root.iterdir()) if root.exists() else []


@pytest.mark.row("MALA-V-16", "MALA-V-102", "MALA-V-103", level="real")
@pytest.mark.parametrize(
    ("code", "reasons"),
    [
        pytest.param(SOLVES, [], id="good"),
        pytest.param(SOLVES + "sys.exit(1)", ["failed with exit status 1"], id="exit 1"),
        pytest.param(
            SOLVES.replace("'closed'", "'open'"),
            ["the issue of the fixture is not closed"],
            id="issue left open",
        ),
        pytest.param(
            SOLVES.replace("'GREETING.txt'", "'OTHER.txt'"),
            ["GREETING.txt, which the issue asks for, is not there"],
            id="file missing",
        ),
        pytest.param(
            "import sys; open(sys.argv[-1] + '/.issue.json', 'w').write('[')",
            ["is not closed", "is not there"],
            id="nonsense in the issue",
        ),
    ],
)
def test_it_passes_with_all_three_and_each_that_is_missing_has_its_reason(
    real: RealWorld, code: str, reasons: list[str]
) -> None:
    found = tried(real, command=command(code))
    assert found.passed is not bool(reasons)
    assert found.e2e is not None
    assert found.e2e["passed"] is found.passed
    why = found.e2e["failure_reason"] or ""
    assert len(why.split("; ")) == max(1, len(reasons))
    assert all(reason in why for reason in reasons)
    assert found.failures == ([why] if why else [])
    assert not found.is_fixable or found.passed
    assert left(real) == []
    assert found.artifacts["e2e_fixture_path"] is None


@pytest.mark.row("MALA-V-72", "MALA-V-103", level="real")
def test_a_fixture_that_is_kept_is_a_repository_with_a_package_and_one_issue(
    real: RealWorld,
) -> None:
    code = "import os, sys; assert os.environ['LAB_E2E_FIXTURE'] == sys.argv[-1]; print('ran')"
    found = tried(real, command=command(code), keep=True)
    assert found.e2e is not None
    repo = Path(found.e2e["fixture_path"])
    assert found.artifacts["e2e_fixture_path"] == str(repo)
    assert repo.is_relative_to(real.paths.e2e_fixtures)
    assert git(repo, "log", "--format=%s") == "feat: a tiny package"
    assert git(repo, "status", "--porcelain") == ""
    assert (repo / "src" / "tiny" / "__init__.py").exists()
    assert "[project]" in (repo / "pyproject.toml").read_text()
    issue = json.loads((repo / e2e_fixture.ISSUE_FILE).read_text())
    assert (issue["key"], issue["status"]) == ("1", "open")
    log = real.paths.validations / "1" / found.e2e["log"]
    assert log.read_text() == "ran\n"
    again = tried(real, command=command(SOLVES))
    assert again.passed
    assert left(real) == []


@pytest.mark.row("MALA-V-72", level="real")
def test_the_root_of_fixtures_can_be_another(real: RealWorld, tmp_path: Path) -> None:
    found = tried(real, command=command("pass"), keep=True, fixture_root=str(tmp_path / "f"))
    assert Path(found.e2e["fixture_path"]).is_relative_to(tmp_path / "f")


@pytest.mark.row("MALA-V-74", "MALA-V-101", level="real")
def test_the_labsite_of_a_fixture_has_one_issue_and_one_agent_and_nests_nothing(
    real: RealWorld,
) -> None:
    """What `make` sets up in the second labsite, here in the test's own."""
    agent = real.project().agent
    assert agent is not None
    given = e2e_fixture.agent_of(agent, Settings.current())
    AgentProfile.objects.all().delete()
    repo = real.folder / "tiny"
    e2e_fixture.write(real.lab, repo)
    made = e2e_fixture.make(real.lab, repo, given, 7)
    made.refresh_from_db()
    assert (made.parallel_runs, made.run_budget_minutes, made.policy) == (1, 7, "gates")
    tracker = real.lab.tracker_for(made.tracker)
    assert tracker is not None
    (issue,) = tracker.open_issues(made.tracker_root)
    assert (issue.key, issue.title) == ("1", e2e_fixture.TITLE)
    level = run_level.spec_of(made, None)
    assert level is not None
    assert not level["e2e"]["enabled"]
    assert run_level.nothing(level) is not None


class Started:
    """The commands of a machine, and what was asked of them."""

    def __init__(self, inner: Any) -> None:
        self._inner, self.argvs = inner, list[list[str]]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def run(self, check: Any, goes_on: Any) -> Any:
        self.argvs.append([str(word) for word in check.argv])
        return Checked(0, 0.1, tail="{}")


@pytest.mark.row("MALA-V-101", level="real")
def test_the_real_command_is_started_for_one_issue(real: RealWorld) -> None:
    project = real.project()
    checks = Started(real.lab.checks)
    lab = replace(real.lab, checks=checks)
    e2e.run(lab, room_of(real, project), E2E(), lambda: True)
    (watch,) = [one for one in checks.argvs if "watch" in one]
    assert watch[-5:] == [str(e2e.MANAGE), "watch", e2e_fixture.PROJECT, "--max-issues", "1"]


@pytest.mark.row("MALA-V-73", "C-39", level="real")
@pytest.mark.parametrize(
    ("terms", "why"),
    [
        ({"command": ("no-such-program", "x")}, "the program no-such-program is not on"),
        ({"command": ("sh", "bd")}, "the program bd is not on this machine"),
        ({"required_env": ("NO_SUCH_KEY",)}, "the variable NO_SUCH_KEY is not set"),
    ],
)
def test_what_is_needed_and_not_there_fails_by_its_name(
    real: RealWorld, terms: dict[str, Any], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = real.lab.programs
    find = type(programs).find

    def without_bd(self: Any, program: str, env: Any) -> str | None:
        return "" if program == "bd" else find(self, program, env)

    monkeypatch.setattr(type(programs), "find", without_bd)
    found = tried(real, **terms)
    assert not found.passed
    assert why in found.failures[0]
    assert left(real) == []


@pytest.mark.row("MALA-V-73", "C-39", level="real")
@pytest.mark.parametrize("trouble", ["program", "login", "none chosen"])
def test_without_an_agent_that_can_work_it_fails_and_says_why(
    real: RealWorld, trouble: str
) -> None:
    project = real.project()
    agent = project.agent
    assert agent is not None
    if trouble == "program":
        agent.argv = ["no-such-agent"]
    if trouble == "login":
        agent.login_command = ["false"]
    agent.save()
    if trouble == "none chosen":
        Project.objects.update(agent=None)
    found = tried(real)
    why = {
        "program": "no-such-agent",
        "login": "is not logged in",
        "none chosen": "no agent is chosen",
    }[trouble]
    assert why in found.failures[0]


@pytest.mark.row("MALA-V-74", level="real")
def test_one_that_hangs_is_ended_at_its_limit_with_all_it_started(real: RealWorld) -> None:
    spec = replace(E2E(command=("sh", "-c", "setsid sleep 680 & sleep 681")), minutes=0.02)  # type: ignore[arg-type]
    project = real.project()
    room = room_of(real, project)
    found = e2e.run(real.lab, room, spec, lambda: True)
    assert "its time limit" in (found["failure_reason"] or "")
    assert processes.marked(room.mark) == []
    assert left(real) == []


def test_one_that_is_called_off_leaves_nothing(real: RealWorld, tmp_path: Path) -> None:
    there, stop = tmp_path / "there", threading.Event()
    spec = E2E(command=("sh", "-c", f"touch {there}; sleep 682"))
    room = room_of(real, real.project())

    def body() -> None:
        try:
            with pytest.raises(Lost):
                e2e.run(real.lab, room, spec, lambda: not stop.is_set())
        finally:
            connections.close_all()

    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    real.until(there.exists)
    stop.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert processes.marked(room.mark) == []
    assert left(real) == []


def test_it_is_not_tried_where_a_command_has_failed(real: RealWorld) -> None:
    project = real.project()
    bad = clean_room.specs.Command("t", ("false",), clean_room.specs.Kind.TEST)
    spec = Spec((bad,), True, True, Coverage(False), E2E(), Scope.RUN_LEVEL)
    found = clean_room.run(real.lab, room_of(real, project), spec, ByHand(lambda: True))
    assert found.e2e is None
    assert len(found.failures) == 1
