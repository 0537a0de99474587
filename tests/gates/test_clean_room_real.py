"""The clean room with real git and real processes: what it proves, and its bad days."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from runs.core.ports import SeamError
from runs.core.states import AttemptState, Gate
from runs.gates import clean_room
from runs.gates.hold import Hold
from runs.gates.rules import Decision
from runs.jobs.runner import LostError
from runs.machine import processes
from runs.models import Attempt, Job, Notice, Run
from runs.validation import command_runner, specs
from runs.validation.rooms import NoWorktree
from runs.validation.specs import Command, Coverage, Kind, WorktreePlan
from tests.gates.rooms import Claimed, command, sh, take_over
from tests.house.product import is_gone
from tests.patience import PATIENCE
from tests.real import RealWorld, git

pytestmark = pytest.mark.django_db(transaction=True)


def judged(claimed: Claimed, key: str = "7", **more) -> tuple[Decision, Attempt]:  # type: ignore[no-untyped-def]
    hold = claimed.hold(key, **more)
    decision = clean_room.judge(claimed.lab, hold)
    return decision, Attempt.objects.get(pk=hold.attempt.pk)


def in_a_thread(act, *args) -> threading.Thread:  # type: ignore[no-untyped-def]
    def body() -> None:
        try:
            act(*args)
        finally:
            connections.close_all()

    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    return thread


def rooms(real: RealWorld) -> list[Path]:
    root = real.paths.clean_rooms
    return sorted(root.rglob("*")) if root.exists() else []


@pytest.mark.row("MALA-V-38", level="real")
def test_what_is_not_committed_does_not_count(real: RealWorld) -> None:
    claimed = Claimed(real, command("exists", "test", "-e", "fix.txt"))
    commit = claimed.commit("7", {"other.txt": "x"})
    (claimed.tree("7") / "fix.txt").write_text("not committed")
    decision, attempt = judged(claimed, commit=commit)
    assert not decision.passed
    assert decision.is_retryable
    assert decision.gate is Gate.CLEAN_ROOM
    assert decision.reasons == ("test -e fix.txt failed with exit status 1",)
    assert attempt.results[0]["status"] == 1
    assert (claimed.tree("7") / "fix.txt").exists()


@pytest.mark.row("MALA-V-08", "MALA-V-09", "MALA-V-18", "MALA-V-96", level="real")
@pytest.mark.row("MALA-V-11", "MALA-V-41", level="real")
def test_a_command_leaves_its_raw_output_in_two_files_and_one_of_both(real: RealWorld) -> None:
    line = "pwd; echo out; echo wrong >&2; cat new.txt"
    claimed = Claimed(real, sh("tests", line))
    decision, attempt = judged(claimed)
    assert decision == Decision(Gate.CLEAN_ROOM, True)
    path = real.paths.clean_rooms / str(attempt.run_id) / "7" / "1"
    folder = attempt.folder(real.paths)
    (entry,) = attempt.results
    assert (folder / entry["stdout"]).read_text() == f"{path}\nout\nnew\n"
    assert (folder / entry["stderr"]).read_text() == "wrong\n"
    assert sorted((folder / entry["name"]).read_text().splitlines()) == sorted(
        [str(path), "out", "new", "wrong"]
    )
    assert (entry["command"], entry["kind"], entry["status"]) == ("tests", "test", 0)
    assert not entry["is_running"]
    assert entry["seconds"] >= 0
    assert attempt.artifacts == {
        "log_dir": str(folder),
        "worktree_path": str(path),
        "worktree_state": "removed",
        "coverage_report": None,
        "e2e_fixture_path": None,
    }
    assert rooms(real) == []
    assert "clean-rooms" not in git(claimed.repo, "worktree", "list")


@pytest.mark.row("MALA-V-05", "MALA-V-06", "MALA-V-39", level="real")
def test_kinds_in_order_an_allowed_failure_and_the_first_other_one_ends_it(
    real: RealWorld,
) -> None:
    claimed = Claimed(
        real,
        sh("more", "true", Kind.TEST),
        sh("tests", "exit 3", Kind.TEST),
        sh("after", "true", Kind.TEST),
        sh("lint", "exit 1", Kind.LINT, allow_fail=True),
        sh("deps", "true", Kind.DEPS),
    )
    decision, attempt = judged(claimed)
    assert decision.reasons == ("sh -c 'exit 3' failed with exit status 3",)
    told = [(one["command"], one["status"], one["allow_fail"]) for one in attempt.results]
    assert told == [
        ("deps", 0, False),
        ("lint", 1, True),
        ("more", 0, False),
        ("tests", 3, False),
    ]


@pytest.mark.row("MALA-V-05", level="real")
def test_an_allowed_failure_alone_passes(real: RealWorld) -> None:
    claimed = Claimed(real, sh("lint", "exit 1", Kind.LINT, allow_fail=True))
    decision, attempt = judged(claimed)
    assert decision.passed
    assert attempt.results[0]["status"] == 1


@pytest.mark.parametrize(
    ("line", "kind", "said"),
    [
        pytest.param("echo 'collected 0 items'; echo 'no tests ran in 0.01s'", Kind.TEST, "passed, but no test ran", id="none"),
        pytest.param("echo '3 skipped in 0.01s'", Kind.TEST, "passed, but no test ran: 3 skipped", id="skipped"),
        pytest.param("echo '3 skipped in 0.01s'", Kind.LINT, "", id="no test command"),
        pytest.param("echo '1 passed, 3 skipped in 0.01s'", Kind.TEST, "", id="one ran"),
        pytest.param("head -c 1100000 /dev/zero | tr '\\0' x; echo; echo 'no tests ran in 0.01s'", Kind.TEST, "", id="of the end alone nobody can tell"),
    ],
)  # fmt: skip
def test_a_test_command_that_passes_without_a_test_proves_nothing(
    real: RealWorld, line: str, kind: Kind, said: str
) -> None:
    claimed = Claimed(real, sh("tests", line, kind), require_pytest_for_code_changes=False)
    decision, _ = judged(claimed)
    assert (decision.passed, decision.is_retryable) == (not said, True)
    assert [reason.partition("' ")[2] for reason in decision.reasons] == ([said] if said else [])


def test_a_report_tells_that_no_test_ran_whatever_was_printed(real: RealWorld) -> None:
    report = '<testsuite><testcase name="a"><skipped/></testcase></testsuite>'
    line = f"echo '{report}' > r.xml; echo '5 passed in 0.01s'"
    tests = Command("tests", ("sh", "-c", line, "--junitxml=r.xml"), Kind.TEST)
    decision, _ = judged(Claimed(real, tests))
    assert [
        reason.endswith("passed, but no test ran: 1 skipped") for reason in decision.reasons
    ] == [True]


@pytest.mark.row("MALA-V-38", level="real")
@pytest.mark.parametrize("kind", [Kind.LINT, Kind.FORMAT])
def test_what_mends_the_files_in_the_clean_worktree_has_not_proven_the_commit(
    real: RealWorld, kind: Kind
) -> None:
    """As `eslint --fix` and `ruff format .` do: the tests would run on what nobody committed."""
    mends = sh("mends", "echo mended >> new.txt; rm hello.txt", kind)
    claimed = Claimed(real, mends, sh("tests", "false"))
    decision, attempt = judged(claimed)
    assert (decision.passed, decision.is_retryable) == (False, True)
    (reason,) = decision.reasons
    assert "changed what is committed (hello.txt, new.txt): commit what it makes of it" in reason
    assert [one["command"] for one in attempt.results] == ["mends"]


@pytest.mark.parametrize(
    ("name", "line", "more"),
    [
        ("as it is", "touch new.txt; cat new.txt", {}),
        ("files of its own", "echo x > .cache", {}),
        ("a lock file", "echo x >> web/package-lock.json", {}),
        ("what dependencies changed before", "grep -q pinned new.txt", {"deps": True}),
        ("what may fail", "echo x >> new.txt", {"allow_fail": True}),
        ("what may fail and does", "echo x >> new.txt; false", {"allow_fail": True}),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value else "",
)
def test_what_only_reads_may_leave(real: RealWorld, name: str, line: str, more: Any) -> None:
    deps = [sh("deps", "echo pinned >> new.txt", Kind.DEPS)] if more.pop("deps", False) else []
    lint, other = sh("lint", line, Kind.LINT, **more), sh("format", "true", Kind.FORMAT)
    claimed = Claimed(real, *deps, lint, other, sh("tests", "true"))
    files = {"new.txt": "new\n", "web/package-lock.json": "{}"}
    decision, _ = judged(claimed, commit=claimed.commit("7", files))
    assert decision.passed, decision.reasons


@pytest.mark.row("MALA-V-83", level="real")
@pytest.mark.parametrize("label", ["docs", "code"])
def test_the_full_suite_runs_whatever_kind_of_file_has_changed(real: RealWorld, label: str) -> None:
    claimed = Claimed(real, sh("lint", "true", Kind.LINT), sh("tests", "true"))
    path = "README.md" if label == "docs" else "src/app.py"
    commit = claimed.commit("7", {path: "x"})
    context = {"changed_files": [{"path": path, "label": label}]}
    decision, attempt = judged(claimed, commit=commit, context=context)
    assert decision.passed
    ran = [(one["command"], one["status"], one["skipped"]) for one in attempt.results]
    assert ran == [("lint", 0, ""), ("tests", 0, "")]


@pytest.mark.row("MALA-V-40", level="real")
@pytest.mark.parametrize(
    ("name", "is_run"), [("src/a.py", False), ("uv.lock", True), ("pyproject.toml", True)]
)
def test_the_bootstrap_is_left_out_where_its_lock_files_are_as_they_were(
    real: RealWorld, name: str, is_run: bool
) -> None:
    locks = ("pyproject.toml", "uv.lock")
    claimed = Claimed(
        real, sh("deps", "echo synced", Kind.DEPS, lock_files=locks), sh("tests", "true")
    )
    decision, attempt = judged(claimed, commit=claimed.commit("7", {name: "x"}))
    assert decision.passed
    deps, tests = attempt.results
    assert bool(deps["skipped"]) is not is_run
    assert deps["status"] == (0 if is_run else None)
    assert deps["tail"] == ("synced\n" if is_run else "")
    assert tests["status"] == 0
    if not is_run:
        assert deps["skipped"] == "pyproject.toml, uv.lock are unchanged"


@pytest.mark.row("MALA-V-41", "MALA-V-46", level="real")
def test_each_attempt_of_each_issue_has_a_worktree_of_its_own(real: RealWorld) -> None:
    claimed = Claimed(real, sh("where", "pwd"))
    paths = []
    for key, number in (("7", 1), ("7", 2), ("8", 1)):
        hold = claimed.hold(key, number=number)
        clean_room.judge(real.lab, hold)
        paths.append(hold.attempt.artifacts["worktree_path"])
        Attempt.objects.filter(pk=hold.attempt.pk).update(
            state=AttemptState.PASSED, ended_at=real.lab.now()
        )
    assert [path.split("/")[-2:] for path in paths] == [["7", "1"], ["7", "2"], ["8", "1"]]
    assert len(set(paths)) == 3


@pytest.mark.row("MALA-V-42", "C-38", level="real")
@pytest.mark.parametrize(
    ("keep", "line", "state"),
    [
        (False, "true", "removed"),
        (False, "false", "removed"),
        (True, "true", "removed"),
        (True, "false", "kept"),
    ],
)
def test_a_worktree_is_kept_only_if_that_is_set_and_it_failed(
    real: RealWorld, keep: bool, line: str, state: str
) -> None:
    claimed = Claimed(real, command("it", line), worktrees=WorktreePlan(keep_on_failure=keep))
    _, attempt = judged(claimed)
    assert attempt.artifacts["worktree_state"] == state
    assert Path(attempt.artifacts["worktree_path"]).exists() is (state == "kept")
    assert bool(rooms(real)) is (state == "kept")


@pytest.mark.row("MALA-V-44", level="real")
def test_what_a_crashed_run_left_is_removed_first(real: RealWorld) -> None:
    claimed = Claimed(real, sh("tests", "ls -a"))
    hold = claimed.hold()
    path = real.paths.clean_rooms / str(hold.run.pk) / "7" / "1"
    path.mkdir(parents=True)
    (path / "stale.txt").write_text("x")
    decision = clean_room.judge(real.lab, hold)
    assert decision.passed
    assert "stale" not in hold.attempt.results[0]["tail"]
    assert rooms(real) == []
    assert real.repos.registered(claimed.repo) == [claimed.tree("7")]


@pytest.mark.row("MALA-V-43", level="real")
@pytest.mark.parametrize("key", ["../x", "..", ".x", "a/b", "a b", "", "é"])
def test_a_key_that_is_no_folder_name_is_refused_and_nothing_is_made(
    real: RealWorld, key: str
) -> None:
    claimed = Claimed(real, sh("tests", "true"))
    hold = claimed.hold("7")
    Run.objects.filter(pk=hold.run.pk).update(issue_key=key)
    hold.run.issue_key = key
    decision = clean_room.judge(real.lab, hold)
    assert not decision.passed
    assert not decision.is_retryable
    assert "no clean worktree can be made for this issue" in decision.reasons[0]
    assert not real.paths.clean_rooms.exists()
    assert not (real.paths.state / "x").exists()


@pytest.mark.row("MALA-V-43", level="real")
def test_a_link_that_leads_elsewhere_is_refused(real: RealWorld, tmp_path: Path) -> None:
    claimed = Claimed(real, sh("tests", "true"))
    hold = claimed.hold()
    (tmp_path / "elsewhere").mkdir()
    real.paths.clean_rooms.mkdir()
    (real.paths.clean_rooms / str(hold.run.pk)).symlink_to(tmp_path / "elsewhere")
    decision = clean_room.judge(real.lab, hold)
    assert "leads out of" in decision.reasons[0]
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.row("MALA-V-43", level="pure")
def test_attempts_count_from_one() -> None:
    with pytest.raises(clean_room.UnfitPlaceError):
        clean_room.build_path(Path("/nowhere"), 1, "7", 0)
    assert clean_room.build_path(Path("/nowhere"), 1, "bd-1.2", 1) == Path("/nowhere/1/bd-1.2/1")


def test_git_that_fails_for_a_moment_is_asked_again(real: RealWorld) -> None:
    """Also by the gate's runner, which asks again after a SeamError."""
    claimed = Claimed(real, sh("tests", "true"))
    hold = claimed.hold()
    good = (claimed.repo / "config").read_text()
    (claimed.repo / "config").write_text(good + "[core]\n\tlogAllRefUpdates = no bool\n")
    with pytest.raises(SeamError) as caught:
        clean_room.judge(real.lab, hold)
    assert not isinstance(caught.value, NoWorktree)
    (claimed.repo / "config").write_text(good)
    assert clean_room.judge(real.lab, hold).passed


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_place_that_cannot_be_written_is_not_tried_again(
    real: RealWorld, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    claimed = Claimed(real, sh("tests", "true"))
    hold = claimed.hold()

    def full(repo: Path, path: Path, commit: str, folders: Sequence[str] = ()) -> None:
        raise SeamError(f"git worktree failed: could not create it: {os.strerror(number)}")

    monkeypatch.setattr(real.lab.repos, "add_detached", full, raising=False)
    decision = clean_room.judge(real.lab, hold)
    assert (decision.passed, decision.is_retryable) == (False, False)
    assert os.strerror(number) in decision.reasons[0]


@pytest.mark.row("MALA-V-94", level="real")
def test_a_worktree_that_cannot_be_made_is_nothing_an_agent_can_mend(real: RealWorld) -> None:
    claimed = Claimed(real, sh("tests", "true"))
    real.paths.clean_rooms.write_text("a file stands here")
    decision, attempt = judged(claimed)
    assert not decision.passed
    assert not decision.is_retryable
    assert decision.reasons[0].startswith("the clean worktree could not be made: ")
    assert attempt.results == []


@pytest.mark.row("MALA-V-94", level="real")
def test_a_commit_that_is_gone_is_said(real: RealWorld) -> None:
    claimed = Claimed(real, sh("tests", "true"))
    decision, _ = judged(claimed, commit="1" * 40)
    assert not decision.is_retryable
    assert rooms(real) == []


@pytest.mark.row("MALA-V-45", level="real")
def test_the_reasons_name_failing_tests_and_the_end_of_the_output(real: RealWorld) -> None:
    report = "<testsuite>" + "".join(
        f"<testcase classname='tests.t' name='n{n}'><failure/></testcase>" for n in range(25)
    )
    code = (
        f"open('junit.xml','w').write({report + '</testsuite>'!r})\n"
        "print('\\x1b[31mE  assert 1 == 2\\x1b[0m\\x07\\n' * 400); raise SystemExit(1)"
    )
    argv = (sys.executable, "-c", code, "--junitxml=junit.xml")
    claimed = Claimed(real, command("tests", *argv))
    decision, attempt = judged(claimed)
    assert attempt.results[0]["tests"]["total"] == 25
    assert len(attempt.results[0]["tests"]["failed"]) == 25
    text = "\n".join(decision.reasons)
    assert len(text) <= clean_room.MOST_CHARACTERS
    assert "failed with exit status 1. Failing tests: tests.t::n0, tests.t::n1" in text
    assert "tests.t::n19 and 5 more. The end of its output:\n" in text
    assert text.endswith("E  assert 1 == 2")
    assert "\x1b" not in text
    assert "\x07" not in text


def test_names_of_tests_show_no_secret(real: RealWorld) -> None:
    """A name may hold what the test was given; reasons stand on trackers and are typed to agents."""
    case = '<testcase name="test_token[s3cret-of-ours]"><failure/></testcase>'
    code = f"open('junit.xml','w').write('<testsuite>{case}</testsuite>'); raise SystemExit(1)"
    claimed = Claimed(real, command("tests", sys.executable, "-c", code, "--junitxml=junit.xml"))
    claimed.lab = replace(real.lab, mask=lambda text: text.replace("s3cret-of-ours", "[hidden]"))
    decision, attempt = judged(claimed)
    assert "test_token[[hidden]]" in decision.reasons[0]
    assert "s3cret-of-ours" not in json.dumps([attempt.results[0]["tests"], decision.reasons[0]])


def test_a_committed_junit_report_is_no_report(real: RealWorld) -> None:
    claimed = Claimed(real, command("tests", "test", "--junitxml", "junit.xml", "-z", ""))
    commit = claimed.commit("7", {"junit.xml": "<testsuite/>"})
    _, attempt = judged(claimed, commit=commit)
    assert attempt.results[0]["tests"] is None
    assert "no command has written it" in attempt.results[0]["report"]


COVERED = '<coverage lines-valid="1000" lines-covered="{}"/>'


@pytest.mark.row("MALA-V-14", "MALA-V-79", "MALA-V-80", "MALA-V-81", level="real")
@pytest.mark.parametrize(
    ("line", "reason", "percent"),
    [
        pytest.param(f"echo '{COVERED.format(850)}' > coverage.xml", "", 85.0, id="equal"),
        pytest.param(
            f"echo '{COVERED.format(849)}' > coverage.xml",
            "coverage is 84.9 %, and 85 % is needed",
            84.9,
            id="below",
        ),
        pytest.param("true", "On the project's page Checks somebody can", None, id="missing"),
        pytest.param("mkdir coverage.xml", "no command has written", None, id="unreadable"),
        pytest.param("echo x > coverage.xml", "coverage.xml: it is neither", None, id="malformed"),
        pytest.param("mkfifo coverage.xml", "no command has written", None, id="a pipe"),
        pytest.param("ln -s /etc/passwd coverage.xml", "no command has", None, id="a link"),
        pytest.param(
            """echo '<!DOCTYPE c [<!ENTITY a "aa">]><coverage a="&a;"/>' > coverage.xml""",
            "it declares entities",
            None,
            id="a bomb of entities",
        ),
    ],
)
def test_coverage_is_judged_by_what_the_tests_wrote(
    real: RealWorld, line: str, reason: str, percent: float | None
) -> None:
    claimed = Claimed(real, sh("tests", line), coverage=Coverage())
    decision, attempt = judged(claimed)
    assert decision.passed is not bool(reason)
    assert reason in "".join(decision.reasons)
    assert attempt.coverage is not None
    assert attempt.coverage["percent"] == percent
    assert attempt.coverage["needed"] == 85.0
    assert attempt.coverage["passed"] is not bool(reason)
    if percent is not None:
        assert attempt.coverage["report_path"] == "coverage.xml"
        kept = Path(attempt.artifacts["coverage_report"])
        assert kept.is_relative_to(attempt.folder(real.paths))
        assert "<coverage" in kept.read_text()


@pytest.mark.row("MALA-V-81", level="real")
def test_a_committed_coverage_report_proves_nothing(real: RealWorld) -> None:
    claimed = Claimed(real, sh("tests", "true"), coverage=Coverage(report_path="coverage.xml"))
    commit = claimed.commit("7", {"coverage.xml": COVERED.format(1000)})
    decision, attempt = judged(claimed, commit=commit)
    assert not decision.passed
    assert "no command has written it" in attempt.coverage["reason"]


def test_coverage_of_the_changed_lines_stands_beside_it(real: RealWorld) -> None:
    report = (
        '<coverage lines-valid="10" lines-covered="10"><packages><class filename="a.py"><lines>'
        '<line number="1" hits="1"/><line number="2" hits="0"/></lines></class></packages></coverage>'
    )
    claimed = Claimed(real, sh("tests", f"echo '{report}' > coverage.xml"), coverage=Coverage())
    _, attempt = judged(claimed, commit=claimed.commit("7", {"a.py": "a = 1\nb = 2\n"}))
    assert attempt.coverage["changed_percent"] == 50.0


def test_where_nothing_tests_nothing_is_measured(real: RealWorld) -> None:
    claimed = Claimed(real, sh("lint", "true", Kind.LINT), coverage=Coverage())
    decision, attempt = judged(claimed)
    assert decision.passed
    assert attempt.coverage is None


@pytest.mark.row("MALA-V-04", level="real")
def test_marked_commands_of_one_project_never_run_at_the_same_time(
    real: RealWorld, tmp_path: Path
) -> None:
    """Two projects have a lock each, and a marked command of the one is not waited for by the other."""
    log = tmp_path / "log"
    line = f"echo in $0 >> {log}; sleep 0.4; echo out $0 >> {log}"
    claimed = Claimed(real, sh("tests", line, use_test_mutex=True))
    holds_ = [claimed.hold(key) for key in "78"]
    threads = [in_a_thread(clean_room.judge, real.lab, one) for one in holds_]
    for thread in threads:
        thread.join(PATIENCE)
    words = [one.split()[0] for one in log.read_text().splitlines()]
    assert words == ["in", "out", "in", "out"]
    assert real.paths.test_mutex(1) != real.paths.test_mutex(2)


@pytest.mark.row("MALA-V-04", level="real")
def test_who_waits_for_the_mutex_is_asked_whether_to_go_on(real: RealWorld) -> None:
    claimed = Claimed(real, sh("tests", "sleep 600", use_test_mutex=True))
    first = claimed.hold("7")
    one = in_a_thread(judge_until_lost, real, first)
    real.until(lambda: len(processes.marked(first.attempt.mark)) > 0)
    second = claimed.hold("8")
    two = in_a_thread(judge_until_lost, real, second)
    real.until(lambda: bool(Attempt.objects.get(pk=second.attempt.pk).results))
    Job.objects.filter(pk=second.job.pk).update(owner="", beat_at=None)
    two.join(PATIENCE)
    assert not two.is_alive()
    assert one.is_alive()
    Job.objects.filter(pk=first.job.pk).update(owner="", beat_at=None)
    one.join(PATIENCE)
    assert processes.marked(first.attempt.mark) == []
    assert rooms(real) == []


def judge_until_lost(real: RealWorld, hold: Hold) -> None:
    with pytest.raises(LostError):
        clean_room.judge(real.lab, hold)


# Bad days.


def test_a_daemon_that_a_command_leaves_behind_is_ended(real: RealWorld, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    line = f"setsid sh -c 'echo $$ > {pid}; exec sleep 670' & while [ ! -s {pid} ]; do sleep 0.05; done"
    claimed = Claimed(real, sh("tests", line))
    decision, attempt = judged(claimed)
    assert decision.passed
    assert processes.marked(attempt.mark) == []
    assert is_gone(int(pid.read_text()))
    assert rooms(real) == []


def test_endless_output_is_bounded_in_its_file_and_in_memory(real: RealWorld) -> None:
    count = 3 * command_runner.FULL // 1000
    line = f"yes $(printf %0999d 1) | head -n {count}; echo the end; exit 1"
    claimed = Claimed(real, sh("tests", line))
    decision, attempt = judged(claimed)
    folder = attempt.folder(real.paths)
    for name in ("name", "stdout"):
        size = (folder / attempt.results[0][name]).stat().st_size
        assert command_runner.FULL * 0.9 < size < command_runner.FULL + command_runner.LAST + 1000
    assert len(attempt.results[0]["tail"]) <= command_runner.TAIL_CHARACTERS
    assert decision.reasons[0].endswith("the end")
    assert len(decision.reasons[0]) <= clean_room.MOST_CHARACTERS


def test_a_command_that_ignores_term_is_killed_at_its_limit(
    real: RealWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = "trap '' TERM; while :; do sleep 0.1; done"
    claimed = Claimed(real, sh("tests", line, minutes=0.01))
    began = time.monotonic()
    decision, attempt = judged(claimed)
    assert time.monotonic() - began < PATIENCE
    assert attempt.results[0]["is_over_time"]
    assert "its time limit" in decision.reasons[0]
    assert processes.marked(attempt.mark) == []


def test_a_command_that_wants_a_terminal_gets_none_and_ends(real: RealWorld) -> None:
    claimed = Claimed(real, sh("tests", "read answer; exec 3</dev/tty"))
    decision, attempt = judged(claimed)
    assert not decision.passed
    assert attempt.results[0]["status"] not in (0, None)


def test_a_disk_that_is_full_costs_output_and_nothing_else(
    real: RealWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    claimed = Claimed(real, sh("tests", "echo out; echo err >&2"))
    hold = claimed.hold()
    folder = hold.attempt.folder(real.paths)
    full = os.open("/dev/full", os.O_WRONLY)
    opened = os.open

    def open_(path, flags, *more, **named):  # type: ignore[no-untyped-def]
        """Every file of output is on a disk that takes nothing."""
        is_ours = str(path).startswith(str(folder)) and flags & os.O_WRONLY
        return os.dup(full) if is_ours else opened(path, flags, *more, **named)

    monkeypatch.setattr(command_runner.os, "open", open_)
    try:
        decision = clean_room.judge(real.lab, hold)
    finally:
        monkeypatch.undo()
        os.close(full)
    assert decision.passed
    assert hold.attempt.results[0]["tail"] == "out\nerr\n"


@pytest.mark.parametrize("how", ["deleted", "amended"])
def test_a_branch_that_goes_or_moves_meanwhile_changes_nothing_here(
    real: RealWorld, tmp_path: Path, how: str
) -> None:
    there, go = tmp_path / "there", tmp_path / "go"
    line = f"touch {there}; while [ ! -e {go} ]; do sleep 0.05; done; git rev-parse HEAD"
    claimed = Claimed(real, sh("tests", line))
    hold = claimed.hold()
    commit = hold.attempt.commit
    said: list[Decision] = []
    thread = in_a_thread(lambda: said.append(clean_room.judge(real.lab, hold)))
    real.until(there.exists)
    tree = claimed.tree("7")
    if how == "amended":
        git(tree, "commit", "-q", "--amend", "-m", "other")
        git(tree, "reflog", "expire", "--expire=now", "--all")
    else:
        shutil.rmtree(tree)
        git(claimed.repo, "branch", "-D", "afk/7")
    git(claimed.repo, "gc", "-q", "--prune=now")
    go.touch()
    thread.join(PATIENCE)
    assert [one.passed for one in said] == [True]
    assert Attempt.objects.get().results[0]["tail"] == f"{commit}\n"


@pytest.mark.row("MALA-V-99", level="real")
def test_a_worker_that_was_killed_is_gone_on_with_from_the_first_command(
    real: RealWorld, tmp_path: Path
) -> None:
    """What it left: a running command with the mutex, a worktree, half of the results."""
    count, there = tmp_path / "count", tmp_path / "there"
    line = f"echo x >> {count}; if [ $(wc -l < {count}) = 1 ]; then touch {there}; sleep 671; fi"
    claimed = Claimed(real, sh("lint", "true", Kind.LINT), sh("t", line, use_test_mutex=True))
    hold = claimed.hold()
    connections.close_all()  # a server ends a connection for both who share it
    child = os.fork()
    if child == 0:
        # A worker that is killed while the second command runs.
        try:
            clean_room.judge(real.lab, hold)
        finally:
            os._exit(1)
    real.until(there.exists)
    os.kill(child, 9)
    os.waitpid(child, 0)
    kept = Attempt.objects.get()
    assert kept.state == AttemptState.RUNNING
    assert [one["is_running"] for one in kept.results] == [False, True]
    assert len(processes.marked(kept.mark)) > 0
    again = take_over(real.lab, Attempt.objects.select_related("run", "project").get())
    assert clean_room.judge(real.lab, again).passed
    assert [one["status"] for one in Attempt.objects.get().results] == [0, 0]
    assert processes.marked(kept.mark) == []
    assert rooms(real) == []
    assert Notice.objects.filter(text__contains="are run again from the first").count() == 1


def test_a_run_that_is_stopped_meanwhile_leaves_nothing(real: RealWorld, tmp_path: Path) -> None:
    claimed = Claimed(real, sh("tests", f"touch {tmp_path / 'there'}; sleep 672"))
    hold = claimed.hold()
    thread = in_a_thread(judge_until_lost, real, hold)
    real.until((tmp_path / "there").exists)
    Attempt.objects.update(state=AttemptState.ERROR, ended_at=real.lab.now())
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert processes.marked(hold.attempt.mark) == []
    assert rooms(real) == []


def test_the_spec_of_an_attempt_is_read_as_it_was_stored(real: RealWorld) -> None:
    claimed = Claimed(real, sh("tests", "true"))
    hold = claimed.hold()
    assert specs.from_json(hold.attempt.spec).commands[0].name == "tests"
