"""`./lab validate` with real git and real processes, called as the command calls it: what it says."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from runs.core.refusal import ActRefused
from runs.models import CheckTerms, Project
from runs.on_request import by_hand, command
from runs.on_request.by_hand import NotRun
from runs.validation.specs import Kind
from tests import make
from tests.on_request.check_desk import CheckDesk
from tests.real import RealWorld, git

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def desk(real: RealWorld) -> CheckDesk:
    made = CheckDesk(real)
    CheckTerms.objects.create(
        project=made.project, require_pytest_for_code_changes=False, disabled=["coverage"]
    )
    return made


def validated(desk: CheckDesk, *argv: str, goes_on: Any = lambda: True) -> tuple[int, str]:
    """The exit code, and what is printed on standard output."""
    typed = command.read([desk.project.name, *argv])
    out = io.StringIO()
    lines = type(typed.lines)(out)
    return by_hand.carry_out(desk.real.lab, typed.wish, lines, goes_on), out.getvalue()


def places(desk: CheckDesk) -> list[Path]:
    """What is left of clean worktrees."""
    root = desk.real.paths.clean_rooms
    return [path for path in root.rglob("*") if path.is_dir()] if root.exists() else []


@pytest.mark.row("MALA-V-38", "MALA-V-42", level="real")
def test_the_commit_of_an_issue_is_validated_in_a_clean_worktree_of_its_own(
    desk: CheckDesk,
) -> None:
    desk.commit("committed\n")
    (desk.tree / "hello.txt").write_text("not committed\n")
    desk.command("tests", f"cat hello.txt > {desk.real.folder}/seen")
    code, out = validated(desk, "--issue", "7")
    assert code == 0, out
    assert (desk.real.folder / "seen").read_text() == "committed\n"
    tip = git(desk.tree, "rev-parse", "HEAD")
    assert f"Validating demo at {tip[:12]} (afk/7), per issue" in out
    assert "\ntests: sh -c" in out
    assert "  passed after " in out
    assert out.splitlines()[-1].startswith("Passed after ")
    assert places(desk) == []


@pytest.mark.row("MALA-V-06", level="real")
def test_a_failure_is_shown_with_its_output_and_ends_it(desk: CheckDesk) -> None:
    desk.command("lint", "echo it is wrong >&2; exit 4", Kind.LINT)
    desk.command("tests", "true")
    code, out = validated(desk)
    assert code == 1
    assert "    it is wrong\n  failed with exit status 4 after" in out
    assert "\ntests: " not in out
    assert "failed     sh -c 'echo it is wrong >&2; exit 4' failed with exit status 4" in out
    assert out.splitlines()[-1].startswith("Failed after ")


@pytest.mark.row("MALA-V-05", "MALA-V-08", "MALA-V-09", "MALA-V-11", level="real")
def test_as_json_it_ends_with_what_an_export_has(desk: CheckDesk) -> None:
    desk.command("style", "echo out; echo err >&2; exit 1", Kind.LINT, allow_fail=True)
    code, out = validated(desk, "--json")
    assert code == 0
    events = [json.loads(line) for line in out.splitlines()]
    assert [one["event"] for one in events] == ["began", "command", "command", "ended"]
    assert [one["is_running"] for one in events[1:3]] == [True, False]
    assert (events[2]["command"], events[2]["status"], events[2]["allow_fail"]) == (
        "style",
        1,
        True,
    )
    ended = events[-1]
    assert (ended["passed"], ended["failures"], ended["code"]) == (True, [], 0)
    assert ended["artifacts"]["worktree_state"] == "removed"
    folder = Path(ended["artifacts"]["log_dir"])
    assert (folder / events[2]["stdout"]).read_text() == "out\n"
    assert (folder / events[2]["stderr"]).read_text() == "err\n"


@pytest.mark.row("MALA-V-70", level="real")
def test_a_worktree_that_failed_is_kept_if_wished_and_named(desk: CheckDesk) -> None:
    desk.command("tests", "echo broken > left.txt; false")
    code, out = validated(desk, "--keep-worktrees")
    assert code == 1
    path = Path(next(line.split()[1] for line in out.splitlines() if line.startswith("worktree")))
    assert (path / "left.txt").read_text() == "broken\n"
    validated(desk)
    assert path.is_dir(), "the next one leaves it alone"


@pytest.mark.row("MALA-V-60", "MALA-V-61", "MALA-V-62", level="real")
def test_what_is_turned_off_is_not_run(desk: CheckDesk) -> None:
    desk.command("lint", "true", Kind.LINT)
    desk.command("tests", "false")
    code, out = validated(desk, "--disable-validations", "post-validate")
    assert (code, "tests" in out) == (0, False)
    code, out = validated(desk, "--run-level", "--disable-validations", "run-level-validate")
    assert (code, out) == (0, "The run level is turned off for this project; nothing was run.\n")
    code, out = validated(desk, "--run-level", "--disable-validations", "e2e")
    assert code == 1
    assert "for a whole session" in out or "run level" in out or "per session" in out


def test_a_commit_is_named_as_git_names_it(desk: CheckDesk) -> None:
    desk.command("tests", "true")
    first = desk.commit("one\n")
    desk.commit("two\n")
    for name in (first, first[:9], "afk/7~1"):
        assert first[:12] in validated(desk, "--commit", name)[1]
    main = git(desk.repo, "rev-parse", "origin/main")
    for argv in ([], ["--commit", "main"], ["--commit", "origin/main"]):
        assert main[:12] in validated(desk, *argv)[1]
    Project.objects.update(url=str(desk.real.folder / "nowhere.git"))
    assert "Warning: origin was not fetched" in validated(desk)[1]


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["--commit", "no-such-rev"], "there is no commit no-such-rev in demo"),
        (["--commit", "--all"], "expected one argument"),
        (["--commit=-x"], "names none"),
        (["--commit", ""], "names none"),
        (["--issue", "99"], "there is no branch afk/99 in demo"),
        (["--issue", "7", "--run-level"], "exclude each other"),
    ],
)
def test_what_is_not_there_is_refused(
    desk: CheckDesk, argv: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.command("tests", "true")
    with pytest.raises((ActRefused, SystemExit)) as refused:
        validated(desk, *argv)
    assert text in f"{refused.value}{capsys.readouterr().err}"
    assert places(desk) == []


@pytest.mark.row("MALA-V-85", level="real")
def test_changed_code_without_a_command_that_tests_is_told_before_anything_runs(
    desk: CheckDesk,
) -> None:
    with pytest.raises(NotRun, match="no commands to run"):
        validated(desk)
    CheckTerms.objects.update(require_pytest_for_code_changes=True)
    desk.command("lint", "touch ../../../../ran", Kind.LINT)
    (desk.tree / "new.py").write_text("x = 1\n")
    git(desk.tree, "add", "-A")
    desk.commit()
    with pytest.raises(NotRun, match="No command of the kind test"):
        validated(desk, "--issue", "7")
    make.a_run(desk.project, "8", slot=2)
    git(desk.repo, "branch", "afk/8", "origin/main")
    tree = desk.real.folder / "docs"
    git(desk.repo, "worktree", "add", "-q", str(tree), "afk/8")
    (tree / "README.md").write_text("words\n")
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "docs: words")
    assert validated(desk, "--issue", "8")[0] == 0, "documentation needs no tests"


@pytest.mark.row("MALA-V-44", "MALA-V-103", level="real")
@pytest.mark.parametrize("place", ["by-hand", "kept"])
def test_what_a_killed_command_left_is_removed_by_the_next(desk: CheckDesk, place: str) -> None:
    """Worktree, end-to-end fixture with its own labsite, and what it started; another's stays."""
    desk.command("tests", "true")
    boot = desk.real.lab.process.partition(":")[0]
    paths = desk.real.paths
    gone = paths.clean_rooms / place / "demo" / f"20261123T070000_{boot}_1_0"
    here = gone.with_name(f"20261123T070001_{desk.real.lab.process.replace(':', '_')}")
    main = git(desk.repo, "rev-parse", "origin/main")
    fixtures = [paths.e2e_fixtures / f"{path.name}-0" for path in (gone, here)]
    for path, fixture in zip((gone, here), fixtures, strict=True):
        desk.real.repos.add_detached(desk.repo, path, main)
        (fixture / "tiny").mkdir(parents=True)
    assert validated(desk)[0] == 0
    assert [path.exists() for path in (gone, here)] == [False, True]
    assert [path.exists() for path in fixtures] == [False, True]
    assert gone.name not in git(desk.repo, "worktree", "list")


@pytest.mark.row("MALA-V-17", "MALA-V-44", level="real")
def test_a_worktree_that_is_kept_stays_as_long_as_its_output(desk: CheckDesk) -> None:
    desk.command("tests", "false")
    assert validated(desk, "--keep-worktrees")[0] == 1
    (kept,) = (desk.real.paths.clean_rooms / "kept" / "demo").iterdir()
    # As if by a process that has ended.
    name = f"20261123T070000_{desk.real.lab.process.partition(':')[0]}_1_0"
    kept.rename(kept.with_name(name))
    outputs = desk.real.paths.gates / "by-hand"
    (outputs / kept.name).rename(outputs / name)
    assert validated(desk)[0] == 1
    assert kept.with_name(name).exists()
    for number in range(by_hand.MOST_FOLDERS):
        (outputs / f"20991123T07{number:04}_x").mkdir()
    assert validated(desk)[0] == 1
    assert not kept.with_name(name).exists()
    assert not (outputs / name).exists()


@pytest.mark.row("MALA-V-42", level="real")
def test_an_interrupt_ends_the_command_and_leaves_nothing(desk: CheckDesk) -> None:
    desk.command(
        "tests",
        f"echo $$ > {desk.real.folder}/p; mv {desk.real.folder}/p {desk.real.folder}/pid; sleep 600",
    )
    pid = desk.real.folder / "pid"
    code, _ = validated(desk, goes_on=lambda: not pid.exists())
    assert code == 130
    assert not Path(f"/proc/{pid.read_text().strip()}").exists()
    assert places(desk) == []
