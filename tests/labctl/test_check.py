"""`labctl check` against the real server, real git and real processes: what it prints, and its status."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from runs.gate_pages import check_run_rows
from runs.gates import evidence
from runs.models import CheckRun, Notice, Run
from runs.on_request import checks
from runs.validation.specs import Kind
from tests.labctl.session import Said, Session
from tests.on_request.check_desk import CheckDesk
from tests.patience import PATIENCE
from tests.real import RealWorld, git


@pytest.fixture
def desk(real: RealWorld) -> CheckDesk:
    return CheckDesk(real)


@pytest.fixture
def session(desk: CheckDesk, live_server: Any, tmp_path: Path) -> Session:
    made = Session(tmp_path / "session", token=desk.token, cwd=desk.tree)
    made.address.write_text(live_server.url)
    return made


def checked(desk: CheckDesk, session: Session, *arguments: str) -> Said:
    thread = desk.worker()
    said = session.run("check", *arguments)
    thread.join(PATIENCE)
    return said


@pytest.mark.row("MALA-V-25", level="real")
def test_all_commands_run_in_the_agents_own_worktree_and_are_kept_as_proof(
    session: Session, desk: CheckDesk
) -> None:
    desk.command("tests", "pwd; echo grüße >&2; cat hello.txt")
    desk.command("lint", "echo fine", Kind.LINT)
    (desk.tree / "hello.txt").write_text("not committed yet\n")
    said = checked(desk, session)
    assert (said.code, said.err) == (0, "")
    assert said.out.index("== lint: sh -c 'echo fine'\nfine\n") < said.out.index("== tests: sh")
    lines = said.out.partition("== tests")[2].splitlines()
    assert {str(desk.tree), "grüße", "not committed yet"} == set(lines[1:4])
    assert lines[4].startswith("== passed after")
    row = CheckRun.objects.get()
    assert [(one["command"], one["status"]) for one in row.results] == [("lint", 0), ("tests", 0)]
    folder = row.folder(desk.real.paths)
    assert (folder / row.results[1]["stderr"]).read_text() == "grüße\n"
    tree = desk.real.lab.repos.worktree_tree(desk.tree)
    assert (row.tree, [one["tree"] for one in row.results]) == (tree, [tree, tree])
    git(desk.tree, "commit", "-qam", "feat: greet again (#7)")
    assert row.tree == git(desk.tree, "rev-parse", "HEAD^{tree}"), "of what is committed then"
    told = Notice.objects.filter(text__startswith="labctl check").order_by("pk")
    assert list(told.values_list("text", "by")) == [
        ("labctl check: lint, tests asked for", f"Test agent, run {desk.run.pk}"),
        ("labctl check: lint, tests passed", ""),
    ]


@pytest.mark.row("MALA-V-25", level="real")
def test_one_that_fails_is_status_1_and_the_others_run_all_the_same(
    session: Session, desk: CheckDesk
) -> None:
    desk.command("first", "exit 3")
    desk.command("killed", "kill -9 $$")
    desk.command("missing", "exit 0")
    desk.project.check_commands.filter(name="missing").update(argv=["no-such-program"])
    desk.command("last", "printf 'no end of line'")
    said = checked(desk, session)
    assert said.code == 1
    assert "  first: failed with exit status 3 after" in said.out
    assert "  killed: ended by signal 9" in said.out
    assert "  missing: could not be started: No such file or directory" in said.out
    assert "no end of line\n== passed" in said.out
    assert "  last: passed" in said.out


@pytest.mark.row("MALA-V-05", level="real")
def test_a_failure_that_is_allowed_is_told_and_fails_nothing(
    session: Session, desk: CheckDesk
) -> None:
    desk.command("style", "exit 1", Kind.LINT, allow_fail=True)
    said = checked(desk, session)
    assert said.code == 0
    assert "style: failed with exit status 1 after" in said.out
    assert "(allowed to fail)" in said.out


@pytest.mark.row("MALA-V-25", level="real")
def test_a_test_command_that_ran_no_test_has_failed(session: Session, desk: CheckDesk) -> None:
    """As the clean room would say: an agent hears it before it says that it is done."""
    desk.command("filtered", "echo 'no tests ran in 0.01s'")
    desk.command("skipped", "echo '3 skipped in 0.02s'", allow_fail=True)
    desk.command("fine", "echo '2 passed, 1 skipped in 0.02s'")
    desk.command("style", "echo 'no tests ran in 0.01s'", Kind.LINT)
    said = checked(desk, session)
    assert said.code == 1
    assert "  filtered: passed, but no test ran, so it counts as failed\n" in said.out
    skipped = "passed, but no test ran: 3 skipped, so it counts as failed (allowed to fail)"
    assert f"  skipped: {skipped}\n" in said.out
    assert "  fine: passed after" in said.out
    assert "  style: passed after" in said.out
    row = CheckRun.objects.get()
    text = "labctl check: filtered passed, but no test ran"
    assert Notice.objects.filter(text=text, run=desk.run).count() == 1
    commands = {
        one.name: (one.state, one.tone) for one in check_run_rows.of(desk.run.pk, "")[0].commands
    }
    assert commands["filtered"] == ("passed, but no test ran", "bad")
    assert commands["skipped"] == ("passed, but no test ran: 3 skipped (allowed)", "warn")
    proven = {one.command: one for one in evidence._checks(desk.run, 0)[0]}
    assert proven["filtered"].trouble == "no test ran"
    assert proven["fine"].trouble == ""
    # A row of a version that did not look has no word on it.
    row.results = [{k: v for k, v in one.items() if k != "no_tests"} for one in row.results]
    assert checks.told(row) == "style, filtered, skipped, fine passed"


def test_a_report_of_its_own_counts_before_what_was_printed(
    session: Session, desk: CheckDesk
) -> None:
    report = '<testsuite tests="1" failures="0" errors="0"><testcase name="a"/></testsuite>'
    desk.command("tests", "")
    script = f"echo 'no tests ran in 0.01s'; echo '{report}' > junit.xml"
    argv = ["sh", "-c", script, "--junitxml=junit.xml"]
    desk.project.check_commands.filter(name="tests").update(argv=argv)
    said = checked(desk, session)
    assert (said.code, CheckRun.objects.get().results[0]["tests"]["passed"]) == (0, 1)


def test_without_its_dependencies_nothing_else_is_run(session: Session, desk: CheckDesk) -> None:
    desk.command("tests", "echo ran > ran.txt")
    desk.command("sync", "exit 2", Kind.DEPS)
    said = checked(desk, session)
    assert said.code == 1
    assert "tests: not run: the dependencies failed" in said.out
    assert not (desk.tree / "ran.txt").exists()


def test_names_choose_and_json_tells_all(session: Session, desk: CheckDesk) -> None:
    desk.command("one", "echo 1")
    desk.command("two", "echo 2")
    said = checked(desk, session, "two", "--json")
    assert said.code == 0
    found = json.loads(said.out)
    assert [(one["command"], one["status"]) for one in found["results"]] == [("two", 0)]


def test_a_wrong_name_is_status_2_and_runs_nothing(session: Session, desk: CheckDesk) -> None:
    desk.command("one", "echo 1")
    said = session.run("check", "one", "tow")
    assert (said.code, said.out) == (2, "")
    assert "There is no command tow in this project. Its commands: one." in said.err
    assert session.run("check", "--frobnicate").code == 2
    assert not CheckRun.objects.exists()


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "This project has no commands"),
        ({"worktree": ""}, "no worktree that labsite made"),
        ({"state": "checking"}, "labsite checks your work (attempt 3). Nothing was run."),
    ],
)
def test_what_cannot_be_run_is_status_3(
    session: Session, desk: CheckDesk, fields: dict[str, Any], text: str
) -> None:
    now = desk.real.lab.now()
    Run.objects.filter(pk=desk.run.pk).update(attempts=2, checking_at=now, **fields)
    said = session.run("check")
    assert (said.code, said.out) == (3, "")
    assert text in said.err


def test_a_command_that_changes_files_proves_nothing_of_them(
    session: Session, desk: CheckDesk
) -> None:
    desk.command("format", "echo formatted > hello.txt", Kind.FORMAT)
    desk.command("tests", "true")
    assert checked(desk, session).code == 0
    row = CheckRun.objects.get()
    trees = [one["tree"] for one in row.results]
    assert (row.tree, trees[0]) == ("", "")
    assert trees[1] == desk.real.lab.repos.worktree_tree(desk.tree)


@pytest.mark.row("X-10", level="real")
def test_no_secret_is_shown_or_kept(session: Session, desk: CheckDesk) -> None:
    secret = "glpat-0123456789abcdefghij"
    desk.project.token = secret
    desk.project.save()
    desk.command("leak", "cat secret.txt; env", Kind.TEST)
    (desk.tree / "secret.txt").write_text(f"token {secret}\n")
    said = checked(desk, session)
    assert "token [hidden]" in said.out
    row = CheckRun.objects.get()
    files = sorted(row.folder(desk.real.paths).iterdir())
    assert [one.name for one in files] == ["1.err.txt", "1.out.txt", "1.txt"]
    kept = "".join(one.read_text() for one in files)
    assert secret not in said.out + kept + json.dumps(row.results)
    assert "LAB_RUN_FOLDER" not in kept, "a command is no agent"


def test_what_runs_is_shown_as_it_comes_and_goes_on_without_its_reader(
    session: Session, desk: CheckDesk
) -> None:
    desk.command("slow", "echo begun; while [ ! -e go ]; do sleep 0.05; done; echo over")
    thread = desk.worker()
    first = session.start("check")
    assert first.stdout is not None
    lines = [first.stdout.readline() for _ in range(3)]
    assert lines[2] == "begun\n", lines
    other = session.run("check", "--json", "nothing-of-the-kind")
    assert other.code == 2
    first.send_signal(signal.SIGINT)
    out, err = first.communicate(timeout=PATIENCE)
    assert (first.returncode, err) == (3, "labctl: it goes on; labctl check follows it again.\n")
    again = session.start("check")
    assert again.stdout is not None
    assert [again.stdout.readline() for _ in range(3)][2] == "begun\n"
    (desk.tree / "go").touch()
    out, err = again.communicate(timeout=PATIENCE)
    thread.join(PATIENCE)
    assert (again.returncode, err) == (0, "")
    assert out.startswith("over\n== passed")
    assert CheckRun.objects.count() == 1


def test_what_hangs_can_be_called_off_and_another_one_is_refused_until_then(
    session: Session, desk: CheckDesk
) -> None:
    desk.command("hang", "echo $$ > pid; sleep 600")
    desk.command("other", "true")
    thread = desk.worker()
    first = session.start("check", "hang")
    desk.real.until(lambda: (desk.tree / "pid").exists())
    said = session.run("check", "other")
    assert (said.code, "labctl check --stop" in said.err) == (3, True)
    assert session.run("check", "--stop").out == "Called off.\n"
    _, err = first.communicate(timeout=PATIENCE)
    thread.join(PATIENCE)
    assert first.returncode == 3
    assert "it was called off" in err
    pid = (desk.tree / "pid").read_text().strip()
    assert not Path(f"/proc/{pid}").exists()
    assert session.run("check", "--stop").out == "Nothing was running.\n"
