"""Set-up commands on real git and real processes: before an agent, a validation and a clean room."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from runs.core.states import RunState, ValidationState
from runs.followups import acts
from runs.kept import discard
from runs.lifecycle import stop
from runs.machine import processes
from runs.models import Discarding, Notice, Project, Run
from runs.setup import after_run, file_acts
from runs.watch import pages
from tests.gates.review_desk import OK
from tests.gates.review_desk import Desk as ReviewDesk
from tests.gates.rooms import Claimed, command
from tests.gates.test_clean_room_real import judged
from tests.real import IDENTITY, RealWorld, a_checkout, git
from tests.validation.test_validations import MENDS, Desk, agent
from tests.world.stories import look, press_start, ready, start

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.real]

PREPARE = """sh -c "echo made-by-the-set-up > tools.txt; echo prepared" """
READ = "import shutil, time; shutil.copy('tools.txt', 'seen.txt'); time.sleep(600)"


SECRET = "s3cret-of-the-operator"
ENV = f"API_KEY={SECRET}\n"
SHOW = (
    "import os, pathlib, time; text = pathlib.Path('.env').read_text(); print(text, flush=True); "
    "pathlib.Path('seen.txt').write_text(oct(os.stat('.env').st_mode)); time.sleep(600)"
)


def test_an_agent_finds_the_project_s_files_and_its_screen_shows_none_of_their_secrets(
    real: RealWorld,
) -> None:
    project = real.project(argv=[sys.executable, "-c", SHOW])
    file_acts.store(real.lab, project, ".env", ENV, by="anna")
    Project.objects.update(setup="grep -q operator .env")
    ready(real)
    run = press_start(real, project).run
    assert run is not None
    seen = Path(run.worktree) / "seen.txt"
    real.until(seen.exists)
    assert seen.read_text() == "0o100600"
    real.until(lambda: "API_KEY=" in real.lab.sessions.screens([run.session])[run.session])
    screen = real.lab.sessions.screens([run.session])[run.session]
    assert "API_KEY=[hidden]" in screen
    seen.unlink()
    assert not real.repos.is_dirty(Path(run.worktree))


def test_one_that_git_tracks_fails_the_start_in_words_and_leaves_nothing(real: RealWorld) -> None:
    project = real.project()
    name = git(project.repo(real.paths), "ls-tree", "--name-only", "origin/main").split()[0]
    file_acts.store(real.lab, project, name, ENV, by="anna")
    ready(real)
    asked = press_start(real, project)
    assert asked.text.endswith(f"failed: {name} is tracked by git; not overwritten")
    assert not (real.paths.worktrees / "demo-7").exists()
    assert real.repos.claims(project.repo(real.paths)) == frozenset()


def test_work_is_checked_with_the_files(real: RealWorld) -> None:
    desk = Desk(real, "cat .env")
    file_acts.store(real.lab, desk.project, ".env", ENV, by="anna")
    desk.accept("1", {"one.txt": "1"})
    row = desk.validate()
    assert (row.state, row.reason) == (ValidationState.PASSED, "1 command passed")
    assert row.results[0]["tail"] == "API_KEY=[hidden]\n"


def test_work_that_tracks_one_of_the_files_does_not_pass(real: RealWorld) -> None:
    claimed = Claimed(real, command("sees", "cat", ".env"))
    file_acts.store(real.lab, claimed.project, ".env", ENV, by="anna")
    decision, attempt = judged(claimed)
    assert decision.passed, decision
    assert attempt.results[0]["tail"] == "API_KEY=[hidden]\n"
    claimed.commit("8", {".env": "A=1"})
    git(claimed.tree("8"), "add", "-f", ".env")
    decision, _ = judged(claimed, "8", commit=claimed.commit("8", {}))
    assert not decision.passed
    assert decision.reasons[0].startswith(
        "the set-up failed: .env is tracked by git; not overwritten"
    )


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


SEES = "import os; os.access('.', os.W_OK); open('tools.txt').read(); open('.env').read(); "


@pytest.mark.parametrize("setup", [PREPARE, "sh -c 'echo no network; exit 6'"])
def test_a_reviewer_reads_a_copy_that_was_set_up_as_far_as_that_worked(
    real: RealWorld, setup: str
) -> None:
    is_broken = setup != PREPARE
    desk = ReviewDesk(real)
    file_acts.store(real.lab, desk.project, ".env", ENV, by="anna")
    Project.objects.update(setup=setup)
    desk.reviewer("first", OK if is_broken else SEES + OK)
    assert desk.judge().passed
    told = "first reviews without the set-up: the set-up of the project failed: sh -c 'echo no "
    assert any(one.startswith(told) for one in desk.told()) is is_broken
    assert desk.is_tidy()


MENDED = "grep -q mended hello.txt"


@pytest.mark.parametrize(
    ("setup", "checks", "first", "told"),
    [
        pytest.param(PREPARE, MENDED, "open('tools.txt').read()", [], id="it is set up"),
        pytest.param(
            MENDED,
            "true",
            "pass",
            ["fixer 1 starts without the set-up: the set-up of the project failed: "],
            id="it mends the set-up",
        ),
    ],
)
def test_a_fixer_starts_in_a_worktree_that_was_set_up_as_far_as_that_worked(
    real: RealWorld, setup: str, checks: str, first: str, told: list[str]
) -> None:
    desk = Desk(real, checks, setup=setup, fix_attempts=1)
    agent(desk, f"{first}\n{MENDS}")
    desk.accept("7", {"a.txt": "x"})
    row = desk.mended(desk.validate())
    assert row.state == ValidationState.PASSED, row.reason
    found = [one for one in desk.told() if "without the set-up" in one]
    assert [one[: len(told[0])] for one in found] == told if told else not found


def _finish(real: RealWorld, run: Run) -> None:
    """The worker runs what the project wants after a run; the next look settles it."""
    while real.queue.after_runs:
        after_run.carry_out(real.lab, real.queue.after_runs.pop(0))
    look(real)
    run.refresh_from_db()


def test_commands_after_a_run_see_its_files_and_leave_no_process(real: RealWorld) -> None:
    project = real.project()
    told = real.folder / "told.txt"
    line = (
        f"(setsid sleep 600 &); cat work.txt >{told}; echo $LAB_OUTCOME >>{told}; echo bye; exit 4"
    )
    Project.objects.update(setup_after=f"sh -c '{line}'")
    run = start(real, project)
    (Path(run.worktree) / "work.txt").write_text("unsaved\n")
    stop.stop(real.lab, Run.objects.get(), "anna")
    assert not told.exists()
    _finish(real, run)
    assert run.settled_at is not None
    assert told.read_text() == "unsaved\nstopped\n"
    (entry,) = run.setup_after["results"]
    assert (entry["status"], entry["tail"]) == (4, "bye\n")
    assert not processes.marked(after_run._mark(real.lab, run))
    assert Notice.objects.filter(kind="run.warned", text__contains="exit status 4").count() == 1


def test_commands_before_removal_run_in_the_worktree_that_is_discarded(real: RealWorld) -> None:
    project = real.project()
    told = real.folder / "told.txt"
    Project.objects.update(setup_removal=f"sh -c 'pwd >>{told}'")
    project.refresh_from_db()
    run = start(real, project)
    stop.stop(real.lab, run, "anna")
    row = discard.begin(real.lab, project, run.branch, "anna")
    assert isinstance(row, Discarding)
    _finish(real, run)
    discard.carry_out(real.lab, row.pk)
    assert told.read_text() == f"{run.worktree}\n"
    assert not Path(run.worktree).exists()


def test_commands_before_a_further_run_find_the_work_of_the_one_before(real: RealWorld) -> None:
    project = real.project()
    Project.objects.update(setup="touch new.txt", setup_again="mv work.txt seen.txt")
    run = start(real, project)
    tree = Path(run.worktree)
    (tree / "work.txt").write_text("unsaved\n")
    stop.stop(real.lab, run, "anna")
    look(real)
    (tree / "new.txt").unlink()
    acts.resume(real.lab, Run.objects.get(), "Go on.", by="anna")
    look(real)
    real.work()
    again = Run.objects.get(continues=run)
    assert (again.state, again.worktree) == (RunState.WORKING, str(tree))
    assert (tree / "seen.txt").read_text() == "unsaved\n"
    assert not (tree / "new.txt").exists()
