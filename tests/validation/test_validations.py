"""Validations with real git and real processes: put together, run, mended, called off, found again."""

from __future__ import annotations

import os
import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connections, transaction

from runs import sweep, tick
from runs.core import naming
from runs.core.states import Outcome, ValidationState, ValidationStep
from runs.guard import acts as guard
from runs.kept import merged, retention
from runs.machine import processes
from runs.models import Fixer, Forge, Notice, Project, Run, Validation, WatchSession
from runs.pulls import proofs
from runs.settings.acts import TuningRefused
from runs.validation import acts as validations
from runs.validation import command_settings, fixers, runner
from runs.validation.endings import worktree
from runs.validation.rules import DONE
from runs.watch import session as watch_session
from tests import make
from tests.fakes import World
from tests.patience import PATIENCE
from tests.real import RealWorld, git
from tests.world.stories import live, passing

pytestmark = pytest.mark.django_db(transaction=True)


class Desk:
    """A project with one open watch session that waits for a validation."""

    def __init__(self, real: RealWorld, commands: str = "true", **fields: object) -> None:
        self.real, self.lab = real, real.lab
        self.project = real.project()
        for name, value in {"checks": commands, **fields}.items():
            setattr(self.project, name, value)
        self.project.save()
        self.session = WatchSession.objects.create(project=self.project, opened_at=self.lab.now())
        self.repo = self.project.repo(real.paths)
        self.checkout = real.folder / "demo-checkout"

    def accept(self, key: str, files: dict[str, str], state: str = "open") -> Run:
        """A run of the session that delivered a branch, beginning at origin's default branch."""
        number = self.push(f"afk/{key}", files, state)
        run = make.a_run(
            self.project,
            key,
            slot=int(key),
            outcome=Outcome.SUCCEEDED,
            watch=self.session,
            branch=f"afk/{key}",
            pull_number=number,
            ended_at=self.lab.now(),
        )
        WatchSession.objects.filter(pk=self.session.pk).update(completed=self.session.completed + 1)
        self.session.refresh_from_db()
        return run

    def push(self, branch: str, files: dict[str, str], state: str = "open") -> int:
        """Origin gets a branch with these files on top of its main; the number of its pull request."""
        git(self.checkout, "fetch", "-q", "origin")
        git(self.checkout, "checkout", "-q", "-B", branch, "origin/main")
        for name, text in files.items():
            (self.checkout / name).write_text(text)
        git(self.checkout, "add", "-A")
        git(self.checkout, "commit", "-q", "-m", f"feat: {branch}")
        git(self.checkout, "push", "-q", "-f", "origin", branch)
        if branch == "main":
            return 0
        return self.real.memory.add_pull(self.project.tracker_root, branch, state)

    def begin(self) -> Validation:
        """The session's step asks for a validation."""
        with transaction.atomic():
            WatchSession.objects.filter(pk=self.session.pk).update(
                validation=watch_session.Validation.RUNNING
            )
            row = validations.begin(self.lab, self.session)
        self.session.refresh_from_db()
        return row

    def work(self) -> None:
        """Carry out everything that was asked of the queue."""
        queue = self.real.queue
        while queue.validations or queue.fixes:
            while queue.validations:
                runner.carry_out(self.lab, queue.validations.pop(0))
            while queue.fixes:
                fixers.carry_out(self.lab, queue.fixes.pop(0))

    def validate(self) -> Validation:
        row = self.begin()
        self.work()
        row.refresh_from_db()
        self.session.refresh_from_db()
        return row

    def mended(self, row: Validation) -> Validation:
        """Look again and again until the validation has ended."""

        def is_over() -> bool:
            validations.tend(self.lab)
            self.work()
            row.refresh_from_db()
            return not row.is_running

        self.real.until(is_over)
        self.session.refresh_from_db()
        return row

    def told(self) -> list[str]:
        rows = Notice.objects.filter(kind__startswith="validation.").order_by("pk")
        return list(rows.values_list("text", flat=True))


def argvs(row: Validation) -> list[tuple[str, int | None]]:
    return [(" ".join(one["argv"]), one["status"]) for one in row.results]


@pytest.mark.row("C-54", "MALA-V-24", level="real")
def test_everything_accepted_is_proved_together_in_a_clean_worktree(real: RealWorld) -> None:
    desk = Desk(real, "git status --porcelain\ncat a.txt b.txt hello.txt\npwd")
    desk.accept("7", {"a.txt": "seven\n"})
    desk.accept("8", {"b.txt": "eight\n"})
    desk.push("main", {"new.txt": "on main\n"})
    row = desk.validate()
    assert (row.state, row.reason) == (ValidationState.PASSED, "3 commands passed")
    assert desk.session.validation == watch_session.Validation.PASSED
    assert [one["tail"] for one in row.results][:2] == ["", "seven\neight\nhello\n"]
    assert row.results[2]["tail"].strip() == str(worktree(real.lab, row))
    assert [one["name"] for one in row.merged] == ["issue 7", "issue 8"]
    assert row.base == git(desk.checkout, "rev-parse", "origin/main")
    parents = git(desk.repo, "rev-list", "--parents", "-n1", row.commit).split()[1:]
    assert git(desk.repo, "rev-parse", "origin/afk/8") in parents
    assert not worktree(real.lab, row).exists()
    assert row.settled_at is not None
    assert "check-" not in git(desk.repo, "worktree", "list")
    assert (row.folder(real.paths) / "0-2.txt").read_text() == "seven\neight\nhello\n"
    assert real.bell.looks[-1] == "demo"


def test_what_commands_change_in_the_shared_repository_is_put_back_and_what_a_person_did_stays(
    real: RealWorld,
) -> None:
    desk = Desk(real)
    guard.check_shared(real.lab, desk.project)
    git(desk.repo, "config", "http.proxy", "http://proxy")
    desk.project.checks = f"git -C {desk.repo} config core.hooksPath /x"
    desk.project.save()
    row = desk.validate()
    assert row.state == ValidationState.PASSED
    assert row.settled_at is not None
    text = (desk.repo / "config").read_text()
    assert "hooksPath" not in text
    assert "http://proxy" in text
    told = Notice.objects.get(kind="project.warned").text
    assert told.startswith("While checks or a fixer worked")
    assert "core.hookspath" in told


@pytest.mark.row("C-54", level="real")
def test_with_nothing_to_merge_it_is_plain_head(real: RealWorld) -> None:
    desk = Desk(real)
    row = desk.validate()
    assert row.state == ValidationState.PASSED
    assert row.commit == row.base == git(desk.checkout, "rev-parse", "origin/main")
    assert row.merged == []


@pytest.mark.row("C-54", "MALA-V-24", level="real")
def test_a_conflict_names_the_two_issues_and_runs_no_command(real: RealWorld) -> None:
    desk = Desk(real, fix_attempts=0)
    for key, text in (("7", "seven\n"), ("8", "hello\n"), ("9", "nine\n")):
        desk.accept(key, {"hello.txt": text, f"{key}.txt": "x"})
    row = desk.validate()
    assert row.state == ValidationState.FAILED
    assert row.reason == "the work of issue 9 and issue 7 conflict in hello.txt"
    assert row.results == []
    assert desk.session.validation == watch_session.Validation.FAILED


def test_what_conflicts_with_origin_says_so(real: RealWorld) -> None:
    desk = Desk(real, fix_attempts=0)
    desk.accept("7", {"hello.txt": "seven\n"})
    desk.push("main", {"hello.txt": "changed\n"})
    assert "issue 7 and origin's default branch conflict in hello.txt" in desk.validate().reason


def test_what_was_merged_or_turned_down_meanwhile_is_left_out(real: RealWorld) -> None:
    desk = Desk(real, "ls")
    for key, state in (("7", "merged"), ("8", "closed"), ("9", "open")):
        desk.accept(key, {f"{key}.txt": "x"}, state)
    row = desk.validate()
    assert [one["name"] for one in row.merged] == ["issue 9"]
    assert row.left_out == [
        "issue 7: its pull request was merged",
        "issue 8: its pull request was closed without a merge",
    ]
    assert row.results[0]["tail"] == "9.txt\nhello.txt\n"


def test_only_accepted_work_of_this_session_counts(real: RealWorld) -> None:
    desk = Desk(real)
    own = desk.accept("7", {"a.txt": "x"})
    for key, change in (("8", {"watch": None}), ("9", {"outcome": Outcome.DIED})):
        Run.objects.filter(pk=desk.accept(key, {f"{key}.txt": "x"}).pk).update(**change)
    assert [one["branch"] for one in desk.validate().merged] == [own.branch]


@pytest.mark.row("MALA-W-30", "MALA-W-63", level="contract")
def test_a_session_never_validates_twice_at_one_count(real: RealWorld) -> None:
    desk = Desk(real)
    desk.accept("7", {"a.txt": "x"})
    row = desk.begin()
    assert desk.begin() == row
    desk.work()
    assert desk.begin() == row
    assert desk.session.validation == watch_session.Validation.PASSED
    desk.accept("8", {"b.txt": "x"})
    again = desk.validate()
    assert (again.number, again.count) == (2, 2)
    assert Validation.objects.count() == 2


def test_without_commands_there_is_nothing_to_check_and_it_counts_as_passed(
    real: RealWorld,
) -> None:
    desk = Desk(real, "# none yet\n")
    row = desk.begin()
    assert (row.state, row.reason) == (
        ValidationState.NOTHING,
        "no commands are set for this project",
    )
    assert desk.session.validation == watch_session.Validation.PASSED
    assert real.queue.validations == []
    assert row.settled_at is not None
    assert desk.told() == ["validation 1: no commands are set for this project"]


@pytest.mark.row("MALA-W-35", level="real")
def test_the_first_command_that_fails_ends_it(real: RealWorld) -> None:
    desk = Desk(real, "true\nsh -c 'echo boom; exit 4'\ntrue", fix_attempts=0)
    row = desk.validate()
    assert argvs(row) == [("true", 0), ("sh -c echo boom; exit 4", 4)]
    assert row.results[1]["tail"] == "boom\n"
    assert row.reason.endswith("failed with exit status 4")
    assert (row.state, desk.session.validation) == ("failed", "failed")
    assert not worktree(real.lab, row).exists()


@pytest.mark.parametrize(
    ("commands", "said", "suspects"),
    [
        ("sh -c 'test ! -e bad.txt'", "without issue 8 it passes", ["issue 8"]),
        (
            "sh -c 'test ! -e bad.txt || test ! -e a.txt'",
            "without issue 8 or without issue 7 it passes",
            ["issue 8", "issue 7"],
        ),
        ("sh -c 'test -e none.txt'", "it fails on main alone too, so none of them is", []),
    ],
    ids=["one breaks it", "two break it together", "the base is broken"],
)
def test_a_failure_names_the_deliveries_that_it_suspects(
    real: RealWorld, commands: str, said: str, suspects: list[str]
) -> None:
    desk = Desk(real, commands, fix_attempts=0)
    desk.accept("7", {"a.txt": "seven\n"})
    desk.accept("8", {"bad.txt": "eight\n"})
    row = desk.validate()
    assert (row.state, row.artifacts["suspects"]) == ("failed", suspects)
    assert said in row.reason
    assert len(row.results) == 1
    assert not worktree(real.lab, row).exists()
    states = proofs.load_proofs(desk.project, {one["branch"]: one["tip"] for one in row.merged})
    found = {branch for branch, proof in states.items() if proof.state == "failed"}
    assert found == ({f"afk/{name[-1]}" for name in suspects} or {"afk/7", "afk/8"})


def test_a_worker_that_ends_between_the_trials_leaves_nothing(real: RealWorld) -> None:
    desk = Desk(real, "sh -c 'test ! -e bad.txt'", fix_attempts=0)
    desk.accept("7", {"a.txt": "seven\n"})
    desk.accept("8", {"bad.txt": "eight\n"})
    row = desk.begin()
    is_stopping = lambda: any("without each delivery" in one for one in desk.told())  # noqa: E731
    runner.carry_out(real.lab, real.queue.validations.pop(0), is_stopping)
    row.refresh_from_db()
    assert (row.state, row.runner) == ("running", "")
    assert not worktree(real.lab, row).exists()
    desk.mended(row)
    assert row.artifacts["suspects"] == ["issue 8"]


def test_a_missing_program_fails_it_without_a_fixer(real: RealWorld) -> None:
    row = Desk(real, "no-such-program-anywhere").validate()
    assert row.state == ValidationState.FAILED
    assert "could not be started: No such file or directory" in row.reason
    assert not Fixer.objects.exists()


def test_the_commands_are_those_of_its_beginning(real: RealWorld) -> None:
    desk = Desk(real, "echo before")
    row = desk.begin()
    Project.objects.update(checks="echo after")
    desk.work()
    row.refresh_from_db()
    assert argvs(row) == [("echo before", 0)]


AGENT = """
import os, pathlib, subprocess, sys, time
prompt = sys.argv[1]
pathlib.Path({log!r}).open("a").write(prompt + "\\n=====\\n")
def run(*argv): subprocess.run(argv, check=True)
{work}
"""


def agent(desk: Desk, work: str) -> list[str]:
    """A fixer that does this in its worktree; what it was told is written down."""
    log = str(desk.real.folder / "prompts.txt")
    argv = [sys.executable, "-c", AGENT.format(log=log, work=work), "{prompt}"]
    profile = desk.project.agent
    assert profile is not None
    profile.argv = argv
    profile.save()
    return argv


COMMIT = "run('git', 'add', '-A'); run('git', 'commit', '-qm', 'fix: it\\n\\n{done}')"
MENDS = f"pathlib.Path('hello.txt').write_text('mended\\n'); {COMMIT.format(done=DONE)}"


@pytest.mark.row("MALA-W-36", level="real")
def test_a_fixer_mends_it_and_the_session_goes_on(real: RealWorld) -> None:
    """It stays open after its done word, as an interactive agent does."""
    desk = Desk(real, "grep -q mended hello.txt")
    agent(desk, f"{MENDS}\ntime.sleep(600)")
    desk.accept("7", {"a.txt": "x"})
    row = desk.validate()
    assert (row.state, row.step) == (ValidationState.RUNNING, ValidationStep.FIXING)
    row = desk.mended(row)
    fix = Fixer.objects.get()
    assert (row.state, row.attempt, row.reason) == ("passed", 1, "1 command passed")
    assert desk.session.validation == watch_session.Validation.PASSED
    assert [(one["attempt"], one["status"]) for one in row.results] == [(0, 1), (1, 0)]
    assert naming.is_fix(fix.branch)
    assert (fix.end, fix.commits) == ("delivered", 1)
    assert fix.accepted_at and fix.settled_at and fix.is_pushed
    assert row.commit == fix.head == git(desk.repo, "rev-parse", fix.branch)
    assert real.session_names() == []
    assert not Path(fix.worktree).exists()
    git(desk.checkout, "fetch", "-q")
    assert git(desk.checkout, "rev-parse", f"origin/{fix.branch}") == fix.head
    assert desk.told()[-1] == (
        f"validation 1 passes with a fix, which no pull request holds: branch {fix.branch} of "
        f"origin ({fix.head[:7]}). Merge it with the rest"
    )
    prompt = (real.folder / "prompts.txt").read_text()
    assert "grep -q mended hello.txt failed with exit status 1" in prompt
    assert fix.branch in prompt
    Project.objects.get().refresh_from_db()
    assert (Project.objects.get().streak, Run.objects.count()) == (0, 1)


@pytest.mark.row("MALA-W-36", level="real")
def test_an_accepted_fix_is_part_of_the_next_validation(real: RealWorld) -> None:
    desk = Desk(real, "grep -q mended hello.txt")
    agent(desk, MENDS)
    desk.accept("7", {"a.txt": "x"})
    first = desk.mended(desk.validate())
    desk.accept("8", {"b.txt": "x"})
    row = desk.validate()
    assert (first.state, row.state, row.attempt) == ("passed", "passed", 0)
    names = [one["name"] for one in row.merged]
    assert names == [f"the fix {Fixer.objects.get().branch}", "issue 7", "issue 8"]


@pytest.mark.row("MALA-W-35", level="real")
def test_after_two_fixers_that_mend_nothing_it_has_failed(real: RealWorld) -> None:
    desk = Desk(real, "grep -q mended hello.txt")
    agent(desk, f"pathlib.Path('x').write_text(prompt); {COMMIT.format(done='')}")
    desk.accept("7", {"a.txt": "x"})
    row = desk.mended(desk.validate())
    assert (row.state, row.attempt) == (ValidationState.FAILED, 2)
    assert desk.session.validation == watch_session.Validation.FAILED
    assert "grep -q mended hello.txt failed with exit status 1" in row.reason
    ends = Fixer.objects.order_by("number").values_list("number", "end", "accepted_at")
    assert list(ends) == [(1, "delivered", None), (2, "delivered", None)]
    forks = set(Fixer.objects.values_list("fork_point", flat=True))
    assert forks == {row.failure["commit"]}
    for branch in Fixer.objects.values_list("branch", flat=True):
        assert git(desk.repo, "rev-parse", branch)
    assert [one["attempt"] for one in row.results] == [0, 1, 2]
    assert real.session_names() == []


def test_a_fixer_that_ends_without_a_commit_leaves_nothing(real: RealWorld) -> None:
    desk = Desk(real, "false", fix_attempts=1)
    agent(desk, "pass")
    row = desk.mended(desk.validate())
    fix = Fixer.objects.get()
    assert (row.state, fix.end) == (ValidationState.FAILED, "ended without a commit")
    assert not Path(fix.worktree).exists()
    assert "lab/fix" not in git(desk.repo, "branch", "--list")


def test_what_a_fixer_did_not_commit_is_kept(real: RealWorld) -> None:
    desk = Desk(real, "false", fix_attempts=1)
    agent(desk, "pathlib.Path('note.txt').write_text('x')")
    desk.mended(desk.validate())
    fix = Fixer.objects.get()
    assert (Path(fix.worktree) / "note.txt").read_text() == "x"
    assert "was kept" in fix.warning
    merged.collect(real.lab, desk.project)
    assert Path(fix.worktree).exists()


@pytest.mark.row("C-54", level="real")
def test_a_fixer_settles_a_conflict(real: RealWorld) -> None:
    desk = Desk(real, "test -e 7.txt -a -e 9.txt")
    desk.accept("7", {"hello.txt": "seven\n", "7.txt": "x"})
    desk.accept("9", {"hello.txt": "nine\n", "9.txt": "x"})
    work = (
        "tip = prompt.split('losing the work of none: `')[1].split()[0]\n"
        "subprocess.run(['git', 'merge', '-q', tip])\n"
        f"pathlib.Path('hello.txt').write_text('both\\n'); {COMMIT.format(done=DONE)}"
    )
    agent(desk, work)
    row = desk.mended(desk.validate())
    assert (row.state, row.attempt) == (ValidationState.PASSED, 1)
    assert row.commit == Fixer.objects.get().head


def test_a_fix_that_cannot_be_pushed_is_told_all_the_same(real: RealWorld) -> None:
    desk = Desk(real, "grep -q mended hello.txt")
    agent(desk, MENDS)
    row = desk.validate()
    origin = real.folder / "demo-origin.git"
    origin.rename(real.folder / "away.git")
    row = desk.mended(row)
    fix = Fixer.objects.get()
    assert (row.state, fix.is_pushed) == (ValidationState.PASSED, False)
    assert f"branch {fix.branch} of labsite's own repository, not pushed" in desk.told()[-1]
    assert row.settled_at is not None


def test_a_fix_is_never_removed_by_itself(real: RealWorld) -> None:
    desk = Desk(real, "grep -q mended hello.txt")
    agent(desk, MENDS)
    desk.mended(desk.validate())
    branch = Fixer.objects.get().branch
    git(desk.checkout, "fetch", "-q")
    git(desk.checkout, "push", "-q", "-f", "origin", f"origin/{branch}:main")
    sweep.forget_reconciled(real.lab)
    sweep.carry_out(real.lab, desk.project.pk)
    sweep.reconcile(passing(real), {})
    assert git(desk.repo, "rev-parse", branch) == Fixer.objects.get().head


def test_no_fixer_starts_without_a_slot_and_it_holds_one(real: RealWorld) -> None:
    from runs.dispatch import reserve
    from runs.models import Settings

    desk = Desk(real, "false")
    agent(desk, "time.sleep(600)")
    Settings.objects.update(session_cap=1)
    real.by_hand("demo~by-hand")
    row = desk.validate()
    validations.tend(real.lab)
    assert row.step == ValidationStep.FIXING
    assert not Fixer.objects.exists()
    real.tmux("kill-session", "-t", "demo~by-hand")
    validations.tend(real.lab)
    fix = Fixer.objects.get()
    room = reserve.room(real.lab, Settings.current(), {})
    assert room.full_at == 1
    desk.work()
    assert real.session_names() == [fix.session]
    room = reserve.room(real.lab, Settings.current(), real.sessions.look())
    assert room.full_at == 1


def test_a_fixer_whose_time_is_up_is_ended(real: RealWorld) -> None:
    desk = Desk(real, "false", fix_attempts=1)
    agent(desk, "time.sleep(600)")
    row = desk.validate()
    desk.work()
    real.offset += timedelta(hours=2)
    row = desk.mended(row)
    assert Fixer.objects.get().end == "ran out of time without a commit"
    assert row.state == ValidationState.FAILED
    assert real.session_names() == []


def test_a_clock_that_is_set_ends_no_fixer_and_delays_no_validation(real: RealWorld) -> None:
    desk = Desk(real, "false", fix_attempts=1)
    agent(desk, "time.sleep(600)")
    row = desk.validate()
    desk.work()
    later = desk.real.lab.now() + timedelta(seconds=60)
    Validation.objects.filter(pk=row.pk).update(not_before=later)
    tick.tick(real.lab, force=True)
    real.jump = timedelta(hours=5)
    tick.tick(real.lab, force=True)
    validations.tend(real.lab)
    row.refresh_from_db()
    assert Fixer.objects.get().end == ""
    assert row.not_before is not None
    assert abs(row.not_before - later - timedelta(hours=5)) < timedelta(minutes=1)


def test_an_agent_that_is_logged_out_uses_up_its_attempts(real: RealWorld) -> None:
    desk = Desk(real, "false")
    profile = desk.project.agent
    assert profile is not None
    profile.login_command = ["false"]
    profile.save()
    row = desk.mended(desk.validate())
    assert row.state == ValidationState.FAILED
    assert set(Fixer.objects.values_list("end", flat=True)) == {"did not start"}
    assert "not logged in" in Fixer.objects.first().warning  # type: ignore[union-attr]


def in_a_thread(act, *given) -> threading.Thread:  # type: ignore[no-untyped-def]
    def run() -> None:
        try:
            act(*given)
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


SLEEPS = "sh -c 'setsid sleep 611 & touch ../{name}.there; sleep 612'"


@pytest.mark.row("MALA-W-50", "MALA-W-51", level="real")
@pytest.mark.parametrize("call_off", [validations.interrupt, validations.kill])
def test_a_running_command_is_ended_when_the_session_is(real: RealWorld, call_off) -> None:  # type: ignore[no-untyped-def]
    desk = Desk(real, f"true\n{SLEEPS.format(name='a')}\ntrue")
    row = desk.begin()
    real.queue.validations.clear()
    worker = in_a_thread(runner.carry_out, real.lab, row.pk)
    real.until((real.paths.worktrees / "a.there").exists)
    row.refresh_from_db()
    assert [(one["is_running"], one["status"]) for one in row.results] == [
        (False, 0),
        (True, None),
    ]
    assert desk.told()[-1].startswith("validation 1 runs sh -c")
    assert call_off(real.lab, desk.session)
    assert processes.marked(row.mark) == []
    worker.join(PATIENCE)
    assert not worker.is_alive()
    row.refresh_from_db()
    desk.session.refresh_from_db()
    assert row.state == ValidationState.CANCELLED
    assert desk.session.validation == watch_session.Validation.NONE
    assert row.settled_at is not None
    assert not worktree(real.lab, row).exists()
    assert not call_off(real.lab, desk.session)
    assert not Fixer.objects.exists()


def test_a_fixer_is_ended_when_the_session_is(real: RealWorld) -> None:
    desk = Desk(real, "false")
    agent(desk, "time.sleep(600)")
    row = desk.validate()
    assert len(real.session_names()) == 1
    assert validations.kill(real.lab, desk.session)
    assert real.session_names() == []
    row.refresh_from_db()
    assert (row.state, Fixer.objects.get().end) == ("cancelled", "was interrupted")
    assert row.settled_at is not None


@pytest.mark.row("MALA-W-13", level="real")
def test_a_validation_whose_worker_died_is_run_again_once(real: RealWorld) -> None:
    desk = Desk(real, "true\nsh -c 'echo x >> ../count'")
    desk.accept("7", {"a.txt": "x"})
    row = desk.begin()
    dead = "other-boot:1:1"
    left = worktree(real.lab, row)
    git(desk.repo, "worktree", "add", "-q", "--detach", str(left), "origin/main")
    (left / "half.txt").write_text("left by the dead one")
    rows = Validation.objects.filter(pk=row.pk)
    rows.update(runner=dead, results=[{"attempt": 0, "name": "0-1.txt", "is_running": True}])
    real.queue.validations.clear()
    validations.tend(real.lab)
    assert real.queue.validations == [row.pk]
    desk.work()
    row.refresh_from_db()
    assert (row.state, row.losses) == (ValidationState.PASSED, 1)
    assert len(row.results) == 2
    assert (real.paths.worktrees / "count").read_text() == "x\n"
    assert Validation.objects.count() == 1


@pytest.mark.row("MALA-W-13", level="real")
def test_a_validation_that_kills_its_worker_twice_has_failed(real: RealWorld) -> None:
    desk = Desk(real)
    row = desk.begin()
    for _ in range(2):
        real.queue.validations.clear()
        Validation.objects.filter(pk=row.pk).update(runner="other-boot:1:1")
        validations.tend(real.lab)
    row.refresh_from_db()
    assert row.state == ValidationState.FAILED
    assert "ended twice" in row.reason
    assert not Fixer.objects.exists()
    assert row.settled_at is not None


def test_a_worker_that_works_is_never_doubted(real: RealWorld) -> None:
    desk = Desk(real, "sh -c 'touch ../d.there; while [ ! -e ../go ]; do sleep 0.1; done'")
    row = desk.begin()
    real.queue.validations.clear()
    worker = in_a_thread(runner.carry_out, real.lab, row.pk)
    real.until((real.paths.worktrees / "d.there").exists)
    real.offset += timedelta(hours=8)  # the machine slept
    for _ in range(3):
        validations.tend(real.lab)
        runner.carry_out(real.lab, row.pk)
    (real.paths.worktrees / "go").touch()
    worker.join(PATIENCE)
    row.refresh_from_db()
    assert (row.state, row.losses, len(row.results)) == (ValidationState.PASSED, 0, 1)
    assert real.queue.validations == []


@pytest.mark.parametrize("whose", ["ours", "another's"])
def test_what_a_living_process_let_go_unsaid_is_run_again(real: RealWorld, whose: str) -> None:
    """Its database was away when it was to say so. That is no death, however often."""
    desk = Desk(real)
    row = desk.begin()
    name = real.lab.process if whose == "ours" else processes.name_of(os.getppid())
    for _ in range(3):
        real.queue.validations.clear()
        Validation.objects.filter(pk=row.pk).update(runner=name, beat_at=real.lab.now())
        if whose != "ours":
            validations.tend(real.lab)
            assert real.queue.validations == []
            real.offset += timedelta(minutes=11)
        validations.tend(real.lab)
        assert real.queue.validations == [row.pk]
    desk.work()
    row.refresh_from_db()
    assert row.state == ValidationState.PASSED


def test_a_message_that_was_lost_is_asked_again(real: RealWorld) -> None:
    desk = Desk(real)
    row = desk.begin()
    real.queue.validations.clear()
    validations.tend(real.lab)
    desk.work()
    row.refresh_from_db()
    assert row.state == ValidationState.PASSED
    runner.carry_out(real.lab, row.pk)
    row.refresh_from_db()
    assert len(row.results) == 1


def test_an_origin_that_is_away_is_asked_again_and_then_fails_it(real: RealWorld) -> None:
    desk = Desk(real)
    origin = real.folder / "demo-origin.git"
    origin.rename(real.folder / "away.git")
    row = desk.validate()
    assert (row.state, row.troubles) == (ValidationState.RUNNING, 1)
    assert "is tried again in a minute" in desk.told()[-1]
    validations.tend(real.lab)
    assert real.queue.validations == []
    for _ in range(4):
        real.offset += timedelta(minutes=2)
        validations.tend(real.lab)
        desk.work()
    row.refresh_from_db()
    assert row.state == ValidationState.FAILED
    assert row.reason.startswith("it could not be carried out: git")
    assert not Fixer.objects.exists()


def test_an_origin_that_comes_back_costs_a_minute(real: RealWorld) -> None:
    desk = Desk(real)
    origin = real.folder / "demo-origin.git"
    origin.rename(real.folder / "away.git")
    row = desk.validate()
    (real.folder / "away.git").rename(origin)
    real.offset += timedelta(minutes=2)
    validations.tend(real.lab)
    desk.work()
    row.refresh_from_db()
    assert row.state == ValidationState.PASSED


def test_a_project_that_goes_away_under_its_validation_leaves_nothing(real: RealWorld) -> None:
    desk = Desk(real, SLEEPS.format(name="b"))
    row = desk.begin()
    worker = in_a_thread(runner.carry_out, real.lab, row.pk)
    real.until((real.paths.worktrees / "b.there").exists)
    path = worktree(real.lab, row)
    Run.objects.all().delete()
    Project.objects.all().delete()
    worker.join(PATIENCE)
    assert not worker.is_alive()
    assert processes.marked(row.mark) == []
    assert not path.exists()


def test_a_worker_that_is_told_to_end_lets_go_and_it_costs_nothing(real: RealWorld) -> None:
    desk = Desk(real, SLEEPS.format(name="c"))
    row = desk.begin()
    real.queue.validations.clear()
    is_stopping = threading.Event()
    worker = in_a_thread(runner.carry_out, real.lab, row.pk, is_stopping.is_set)
    real.until((real.paths.worktrees / "c.there").exists)
    is_stopping.set()
    worker.join(PATIENCE)
    assert not worker.is_alive()
    assert processes.marked(row.mark) == []
    row.refresh_from_db()
    assert (row.state, row.runner, row.losses) == (ValidationState.RUNNING, "", 0)
    Validation.objects.filter(pk=row.pk).update(commands=[["true"]])
    validations.tend(real.lab)
    desk.work()
    row.refresh_from_db()
    assert row.state == ValidationState.PASSED


def test_what_is_printed_can_be_read_while_it_runs_and_nothing_else(real: RealWorld) -> None:
    desk = Desk(real, "sh -c 'echo hello; exit 1'", fix_attempts=0)
    row = desk.validate()
    found = validations.printed(real.lab, row, "0-1.txt", 0, 100)
    assert found is not None
    assert (found.data, found.size) == (b"hello\n", 6)
    (row.folder(real.paths) / "other.txt").write_text("x")
    for name in ("other.txt", "../other.txt", "0-2.txt", ""):
        assert validations.printed(real.lab, row, name, 0, 100) is None


def test_the_token_of_a_project_is_in_no_result(real: RealWorld) -> None:
    desk = Desk(real, "echo token-of-project", fix_attempts=0)
    Project.objects.filter(pk=desk.project.pk).update(token="token-of-project")
    row = desk.validate()
    assert row.results[0]["tail"] == "[hidden]\n"
    assert (row.folder(real.paths) / "0-1.txt").read_text() == "[hidden]\n"


def test_commands_and_limits_are_stored_and_told_once(world: World) -> None:
    project = make.a_project()
    kept = {"check_minutes": 10, "fix_attempts": 1, "by": "anna"}
    assert command_settings.store(world.lab, project, checks=" ruff check \r\npytest\r\n", **kept)
    assert project.commands == [["ruff", "check"], ["pytest"]]
    assert not command_settings.store(world.lab, project, checks="ruff check\npytest", **kept)
    notice = Notice.objects.get()
    assert (notice.by, notice.kind) == ("anna", "setting.changed")
    assert notice.text.startswith("validations run 2 commands, each for 10 min at most")


@pytest.mark.parametrize(
    ("given", "field", "why"),
    [
        pytest.param({"checks": "a\nb && c"}, "checks", "Line 2: no shell", id="a shell line"),
        pytest.param({"checks": "x " * 501}, "checks", "longer than 1000", id="too long"),
        pytest.param({"check_minutes": 0}, "check_minutes", "1", id="no time"),
        pytest.param({"fix_attempts": 11}, "fix_attempts", "10", id="too many fixers"),
    ],
)
def test_what_cannot_be_used_is_refused_at_its_field(
    world: World, given: dict[str, Any], field: str, why: str
) -> None:
    project = make.a_project(checks="true")
    wanted: dict[str, Any] = {"checks": "true", "check_minutes": 5, "fix_attempts": 2, **given}
    with pytest.raises(TuningRefused) as refused:
        command_settings.store(world.lab, project, by="anna", **wanted)
    assert list(refused.value.fields) == [field]
    assert why in refused.value.fields[field]
    assert Project.objects.get().checks == "true"
    assert not Notice.objects.exists()


def test_what_old_validations_printed_goes_and_their_rows_stay(real: RealWorld) -> None:
    desk = Desk(real, "sh -c 'echo hello; exit 1'", fix_attempts=1)
    agent(desk, "pass")
    row = desk.mended(desk.validate())
    folders = [row.folder(real.paths), real.paths.fixer_folder(Fixer.objects.get().pk)]
    retention.prune(real.lab, desk.project)
    assert all(folder.is_dir() for folder in folders)
    real.offset += timedelta(days=31)
    assert retention.prune(real.lab, desk.project) == 0
    live(31)
    assert retention.prune(real.lab, desk.project) == 2
    assert not any(folder.exists() for folder in folders)
    assert validations.printed(real.lab, row, "0-1.txt", 0, 9) is None
    assert Validation.objects.get().results[0]["tail"] == "hello\n"


def test_the_credential_of_a_forge_is_taken_out_of_what_is_printed(world: World) -> None:
    forge = Forge.objects.create(
        name="forge",
        kind="gitea",
        api="https://forge.example/api",
        web="https://forge.example",
        credential={"token": "token-of-the-forge"},
        created_at=world.clock.now,
    )
    project = make.a_project(checks="true", forge=forge)
    session = WatchSession.objects.create(project=project, opened_at=world.clock.now)
    with transaction.atomic():
        row = validations.begin(world.lab, session)
    runner.carry_out(world.lab, row.pk)
    assert "token-of-the-forge" in world.checks.ran[0].secrets
    assert "token-of-the-forge" not in repr(world.checks.ran[0])
