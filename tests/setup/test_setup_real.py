"""Set-up commands on real git and real processes: before an agent, a validation and a clean room."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from runs.core.states import RunState, ValidationState
from runs.machine import processes
from runs.models import Notice, Project, Run
from runs.watch import pages
from tests.gates.rooms import Claimed, command
from tests.gates.test_clean_room_real import judged
from tests.real import IDENTITY, RealWorld, a_checkout, git
from tests.validation.test_validations import Desk
from tests.world.stories import look, press_start, ready

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.real]

PREPARE = """sh -c "echo made-by-the-set-up > tools.txt; echo prepared" """
READ = "import shutil, time; shutil.copy('tools.txt', 'seen.txt'); time.sleep(600)"


def test_an_agent_finds_what_the_set_up_made(real: RealWorld) -> None:
    project = real.project(argv=[sys.executable, "-c", READ])
    Project.objects.update(setup=PREPARE)
    ready(real)
    run = press_start(real, project).run
    assert run is not None
    seen = Path(run.worktree) / "seen.txt"
    real.until(seen.exists)
    assert seen.read_text() == "made-by-the-set-up\n"
    assert run.setup["results"][0]["tail"] == "prepared\n"


@pytest.fixture
def local_submodules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let git take submodules from this machine; `RealWorld` reads this when it is made."""
    settings = tmp_path / "gitconfig"
    settings.write_text('[protocol "file"]\n\tallow = always\n')
    monkeypatch.setitem(IDENTITY, "GIT_CONFIG_GLOBAL", str(settings))


@pytest.mark.usefixtures("local_submodules")
def test_an_agent_finds_the_submodules_of_its_project(real: RealWorld, tmp_path: Path) -> None:
    look_inside = "import shutil, time; shutil.copy('lib/hello.txt', 'seen.txt'); time.sleep(600)"
    project = real.project(argv=[sys.executable, "-c", look_inside])
    a_checkout(tmp_path / "library", tmp_path / "library.git")
    checkout = tmp_path / "more"
    git(tmp_path, "clone", "-q", project.url, str(checkout))
    git(checkout, "submodule", "--quiet", "add", str(tmp_path / "library.git"), "lib")
    git(checkout, "commit", "-q", "-m", "feat: a library")
    git(checkout, "push", "-q", "origin", "HEAD:main")
    Project.objects.update(has_submodules=True)
    ready(real)
    run = press_start(real, project).run
    assert run.state == RunState.WORKING, run.reason
    real.until((Path(run.worktree) / "seen.txt").exists)


def test_one_that_fails_takes_its_files_and_its_processes_with_it(real: RealWorld) -> None:
    project = real.project()
    # Left behind on purpose: a process that has gone into the background, and files that nobody ignores.
    line = "echo half > half.txt; (setsid sleep 600 &); echo no network >&2; exit 3"
    Project.objects.update(setup=f"sh -c '{line}'")
    ready(real)
    asked = press_start(real, project)
    run = Run.objects.get()
    assert asked.text.endswith("failed with exit status 3. Its final output: no network")
    assert not (real.paths.worktrees / "demo-7").exists()
    assert real.repos.claims(project.repo(real.paths)) == frozenset()
    assert not processes.marked(run.marker(real.paths))
    Project.objects.update(setup="")
    look(real)
    assert press_start(real, project).answer == "started"


def test_a_validation_prepares_its_worktree_first(real: RealWorld) -> None:
    desk = Desk(real, "grep -q set-up tools.txt", setup=PREPARE)
    desk.accept("1", {"one.txt": "1"})
    row = desk.validate()
    assert (row.state, row.reason) == (ValidationState.PASSED, "1 command passed")
    assert [one.get("is_setup", False) for one in row.results] == [True, False]
    shown = [one.state for one in pages.validation_card(real.lab, row, []).commands]
    assert shown == ["passed", "passed"]


def test_a_validation_whose_set_up_fails_names_it(real: RealWorld) -> None:
    desk = Desk(real, "true", setup="sh -c 'echo gone; exit 4'", fix_attempts=0)
    desk.accept("1", {"one.txt": "1"})
    row = desk.validate()
    assert row.state == ValidationState.FAILED
    assert row.reason.startswith("the set-up failed: sh -c 'echo gone; exit 4' failed with exit ")
    assert len(row.results) == 1
    assert row.results[0]["tail"] == "gone\n"


def test_a_clean_room_prepares_its_worktree_first(real: RealWorld) -> None:
    claimed = Claimed(real, command("sees", "grep", "-q", "set-up", "tools.txt"))
    claimed.project.setup = PREPARE
    claimed.project.save()
    decision, attempt = judged(claimed)
    assert decision.passed, decision
    assert [one["command"] for one in attempt.results] == ["set-up 1", "sees"]
    assert Notice.objects.filter(text__contains="runs sh -c").exists()


def test_a_clean_room_whose_set_up_fails_says_so_to_the_agent(real: RealWorld) -> None:
    claimed = Claimed(real, command("sees", "true"))
    claimed.project.setup = "sh -c 'echo no lock file; exit 5'"
    claimed.project.save()
    decision, attempt = judged(claimed)
    assert not decision.passed
    assert decision.is_retryable
    assert decision.reasons[0].startswith("the set-up failed: sh -c")
    assert decision.reasons[0].endswith("The end of its output:\nno lock file")
    assert [one["command"] for one in attempt.results] == ["set-up 1"]
