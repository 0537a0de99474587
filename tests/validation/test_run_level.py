"""The run level of projects with gates: everything delivered passes together, or nothing is closed."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from runs.core.states import CompletionPolicy, Outcome, ValidationState
from runs.gates import clean_room, levels
from runs.gates.level_rules import Standing
from runs.kept import retention
from runs.machine import processes
from runs.models import (
    CheckCommand,
    CheckRun,
    CheckTerms,
    Fixer,
    Host,
    Notice,
    Project,
    Run,
    Validation,
    WatchSession,
)
from runs.validation import acts as validations
from runs.validation import endings, run_level, runner
from runs.validation.rules import Verdict
from runs.validation.specs import Kind, Switch
from runs.watch import session as watch_session
from tests import make
from tests.patience import PATIENCE
from tests.real import RealWorld, git
from tests.repositories import a_checkout
from tests.validation.test_validations import Desk
from tests.world.memory_tracker import MemoryTracker
from trackers.base import Refused, Unreachable
from trackers.builtin import store

pytestmark = pytest.mark.django_db(transaction=True)


class Gated(Desk):
    """A project with gates, its commands and terms, and one open watch session."""

    def __init__(self, real: RealWorld, *lines: str, **terms: Any) -> None:
        super().__init__(real, commands="false", policy=CompletionPolicy.GATES, fix_attempts=0)
        for position, line in enumerate(lines):
            name, _, rest = line.partition(": ")
            kind = Kind.DEPS if name == "deps" else Kind.TEST
            CheckCommand.objects.create(
                project=self.project,
                position=position,
                name=name,
                argv=["sh", "-c", rest],
                kind=kind,
                lock_files=["uv.lock"] if kind is Kind.DEPS else [],
            )
        off = {"coverage", "e2e"} - set(terms.pop("on", ())) | set(terms.pop("disabled", ()))
        CheckTerms.objects.create(project=self.project, disabled=sorted(off), **terms)

    def proven(self, key: str, files: dict[str, str]) -> Run:
        """A run of the session whose commit its gates accepted."""
        run = self.accept(key, files)
        commit = git(self.checkout, "rev-parse", "HEAD")
        Run.objects.filter(pk=run.pk).update(accepted_commit=commit, attempts=1)
        return run

    def alone(self, key: str, files: dict[str, str]) -> tuple[Run, Validation]:
        """An accepted run without a session, and its run level."""
        run = self.accept(key, files)
        Run.objects.filter(pk=run.pk).update(watch=None)
        run.refresh_from_db()
        with transaction.atomic():
            row = validations.begin_for_run(self.lab, run)
        self.work()
        row.refresh_from_db()
        return run, row

    def issues(self) -> list[Any]:
        return list(self.real.memory.open_issues(self.project.tracker_root))


SECOND = timedelta(seconds=1)


def _away(self: MemoryTracker, root: str, new: Any) -> Any:
    raise Unreachable("the tracker is away")


COVERED = 'echo \'<coverage lines-valid="100" lines-covered="90"/>\' > coverage.xml'


@pytest.mark.row("MALA-V-53", "MALA-V-57", "C-54", level="real")
def test_the_full_suite_runs_on_everything_accepted_also_where_a_run_failed(
    real: RealWorld,
) -> None:
    """The bootstrap runs although no lock file has changed."""
    desk = Gated(real, "deps: echo synced", f"tests: ls; {COVERED}", on=["coverage"])
    desk.accept("7", {"a.txt": "x"})
    desk.accept("8", {"b.txt": "x"})
    Run.objects.filter(pk=desk.accept("9", {"c.txt": "x"}).pk).update(outcome=Outcome.FAILED)
    row = desk.validate()
    assert (row.state, row.reason) == (
        ValidationState.PASSED,
        "2 commands passed, coverage 90 %",
    )
    deps, tests = row.results
    assert (deps["tail"], deps["skipped"]) == ("synced\n", "")
    assert tests["tail"] == "a.txt\nb.txt\nhello.txt\n"
    assert (tests["command"], tests["kind"]) == ("tests", "test")
    assert row.coverage["passed"]
    assert row.artifacts["worktree_state"] == "removed"
    assert desk.session.validation == watch_session.Validation.PASSED
    assert row.spec["scope"] == "run_level"
    assert (
        validations.printed(real.lab, row, tests["stdout"], 0, 99).data
        == b"a.txt\nb.txt\nhello.txt\n"
    )
    assert not real.paths.clean_rooms.exists() or not list(real.paths.clean_rooms.iterdir())


@pytest.mark.row("MALA-V-54", "MALA-V-55", "MALA-V-93", level="real")
def test_a_failure_is_told_in_one_issue_that_starts_nothing(real: RealWorld) -> None:
    desk = Gated(real, "tests: echo E assert; exit 3")
    run = desk.proven("7", {"a.txt": "x"})
    row = desk.validate()
    assert row.state == ValidationState.FAILED
    assert desk.session.validation == watch_session.Validation.FAILED
    (issue,) = desk.issues()
    assert issue.key == row.follow_up_key
    assert issue.labels == ()
    place = f"validation 1 of watch session {desk.session.pk}"
    assert issue.title == f"Run-level validation failed: {place}"
    for part in (row.reason, "exit status 3", "issue 7 (", "    E assert", place):
        assert part in issue.body
    validations.tend(real.lab)
    desk.work()
    assert len(desk.issues()) == 1
    assert row.settled_at is not None
    run.refresh_from_db()
    assert (run.close_asked_at, run.closed_at) == (None, None)


@pytest.mark.row("MALA-V-22", "MALA-V-92", level="real")
@pytest.mark.parametrize("outcome", [Outcome.NO_CHANGE, Outcome.OBSOLETE])
def test_what_needed_no_commit_is_closed_after_the_run_level_and_not_before(
    real: RealWorld, outcome: Outcome
) -> None:
    desk = Gated(real, "tests: test -e ready")
    proven = desk.proven("7", {"a.txt": "x"})
    fields = {"outcome": outcome, "watch": desk.session, "attempts": 1}
    empty = make.a_run(desk.project, "8", slot=8, ended_at=real.lab.now(), **fields)
    WatchSession.objects.filter(pk=desk.session.pk).update(completed=2)
    desk.session.refresh_from_db()

    def asked() -> list[bool]:
        rows = Run.objects.filter(pk__in=[proven.pk, empty.pk]).order_by("pk")
        return [one.close_asked_at is not None for one in rows]

    assert desk.validate().state == ValidationState.FAILED
    assert asked() == [False, False]
    desk.push("main", {"ready": "x"})
    desk.proven("9", {"b.txt": "x"})
    row = desk.begin()
    assert asked() == [False, False]
    late = make.a_run(desk.project, "10", slot=10, ended_at=row.began_at + SECOND, **fields)
    desk.work()
    row.refresh_from_db()
    assert row.state == ValidationState.PASSED
    assert asked() == [True, True]
    late.refresh_from_db()
    assert late.close_asked_at is None  # it was accepted after that run level had begun


@pytest.mark.row("MALA-V-56", "MALA-V-67", level="real")
def test_with_that_turned_off_no_issue_is_written(real: RealWorld) -> None:
    desk = Gated(real, "tests: exit 3", disabled=[Switch.FOLLOW_UP])
    row = desk.validate()
    assert (row.state, row.follow_up_key) == (ValidationState.FAILED, "")
    assert desk.issues() == []
    assert row.settled_at is not None


def test_a_session_may_turn_it_off_for_itself(real: RealWorld) -> None:
    desk = Gated(real, "tests: exit 3")
    WatchSession.objects.update(switches={"disabled": [Switch.FOLLOW_UP]})
    desk.session.refresh_from_db()
    assert desk.validate().state == ValidationState.FAILED
    assert desk.issues() == []


def test_a_tracker_that_is_away_is_asked_again_and_gets_one_issue(
    real: RealWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Gated(real, "tests: exit 3")
    create = MemoryTracker.create_issue
    said: list[str] = []

    def away(self: MemoryTracker, root: str, new: Any) -> Any:
        said.append(new.title)
        if len(said) == 1:
            raise Unreachable("the tracker is away")
        found = create(self, root, new)
        if len(said) == 2:
            raise Unreachable("its answer was lost")
        return found

    monkeypatch.setattr(MemoryTracker, "create_issue", away)
    row = desk.validate()
    assert (row.state, row.follow_up_key, row.settled_at) == (ValidationState.FAILED, "", None)
    assert "is away" in row.warning
    validations.tend(real.lab)
    assert len(said) == 1
    for _ in range(3):
        real.offset += validations.run_level.AGAIN_AFTER * 2
        validations.tend(real.lab)
    row.refresh_from_db()
    assert len(said) == 2
    assert [one.key for one in desk.issues()] == [row.follow_up_key]
    assert (row.warning, row.settled_at is None) == ("", False)


def test_two_that_write_about_one_failure_write_one_issue(
    real: RealWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker that ran it and a tick both come to tidy up."""
    desk = Gated(real, "tests: exit 3")
    with monkeypatch.context() as away:
        away.setattr(MemoryTracker, "create_issue", _away)
        row = desk.validate()
    real.offset += run_level.AGAIN_AFTER * 2
    look = MemoryTracker.open_issues
    second: list[bool] = []

    def meanwhile(self: MemoryTracker, root: str) -> Any:
        found = list(look(self, root))
        if not second:
            second.append(True)
            second.append(run_level.follow_up(real.lab, Validation.objects.get(pk=row.pk)))
        return found

    monkeypatch.setattr(MemoryTracker, "open_issues", meanwhile)
    assert run_level.follow_up(real.lab, Validation.objects.get(pk=row.pk))
    assert second == [True, False]
    row.refresh_from_db()
    assert [one.key for one in desk.issues()] == [row.follow_up_key]
    assert row.not_before is None


def test_a_tracker_that_refuses_is_not_asked_for_ever(
    real: RealWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Gated(real, "tests: exit 3")

    def refuse(self: MemoryTracker, root: str, new: Any) -> Any:
        raise Refused("not allowed")

    monkeypatch.setattr(MemoryTracker, "create_issue", refuse)
    row = desk.validate()
    assert row.settled_at is not None
    assert row.artifacts["follow_up_trouble"] == "not allowed"
    assert Notice.objects.filter(text__contains="no issue could be written").count() == 1


def test_the_built_in_tracker_gets_it_too(real: RealWorld) -> None:
    desk = Gated(real, "tests: exit 3")
    Project.objects.filter(pk=desk.project.pk).update(
        tracker="builtin", tracker_root=store.create_root("demo")
    )
    desk.session.refresh_from_db()
    row = desk.validate()
    assert row.follow_up_key == "1"


@pytest.mark.row("MALA-V-58", "MALA-V-82", level="real")
@pytest.mark.parametrize("is_required", [True, False])
def test_a_reference_tree_that_is_not_clean_runs_no_command(
    real: RealWorld, tmp_path: Path, is_required: bool
) -> None:
    desk = Gated(real, "tests: true", require_clean_git=is_required)
    source = a_checkout(tmp_path / "checkout", tmp_path / "its-origin.git")
    Project.objects.filter(pk=desk.project.pk).update(is_hosted=True, source=str(source))
    desk.session.refresh_from_db()
    (source / "new.txt").write_text("not committed")
    row = desk.begin()
    desk.real.lab.repos.create_origin(desk.project.origin(real.paths), source)
    desk.work()
    row.refresh_from_db()
    if is_required:
        assert row.state == ValidationState.FAILED
        assert "holds files that are not committed" in row.reason
        assert row.results == []
        assert not Fixer.objects.exists()
    else:
        assert row.state == ValidationState.PASSED


@pytest.mark.row("MALA-V-24", "C-54", level="real")
def test_two_that_conflict_are_both_named(real: RealWorld) -> None:
    desk = Gated(real, "tests: true")
    desk.proven("7", {"hello.txt": "seven\n"})
    desk.proven("8", {"hello.txt": "eight\n"})
    row = desk.validate()
    assert row.state == ValidationState.FAILED
    assert row.reason == "the work of issue 8 and issue 7 conflict in hello.txt"
    assert not Run.objects.filter(close_asked_at__isnull=False).exists()
    assert row.results == []
    assert row.reason in desk.issues()[0].body


def test_what_was_accepted_counts_and_not_what_its_branch_got_since(real: RealWorld) -> None:
    desk = Gated(real, "tests: ls")
    run = desk.accept("7", {"a.txt": "x"})
    commit = git(desk.checkout, "rev-parse", "HEAD")
    Run.objects.filter(pk=run.pk).update(accepted_commit=commit)
    git(desk.repo, "fetch", "-q", "origin")
    desk.push("afk/7", {"a.txt": "x", "later.txt": "x"})
    row = desk.validate()
    assert row.merged[0]["tip"] == commit
    assert row.results[0]["tail"] == "a.txt\nhello.txt\n"


@pytest.mark.row("MALA-V-54", level="real")
@pytest.mark.parametrize("is_deleted", [False, True])
def test_accepted_work_that_is_merged_already_is_proven_with_the_base_and_closed(
    real: RealWorld, is_deleted: bool
) -> None:
    """Its pull request is merged, or its branch was deleted after the merge."""
    desk = Gated(real, "tests: ls")
    run = desk.accept("7", {"a.txt": "x"}, "open" if is_deleted else "merged")
    commit = git(desk.checkout, "rev-parse", "HEAD")
    Run.objects.filter(pk=run.pk).update(accepted_commit=commit, attempts=1)
    git(desk.checkout, "push", "-q", "origin", "HEAD:main")
    if is_deleted:
        git(desk.checkout, "push", "-q", "origin", ":afk/7")
    row = desk.validate()
    assert (row.state, row.left_out) == (ValidationState.PASSED, [])
    assert [one["tip"] for one in row.merged] == [commit]
    assert Run.objects.get(pk=run.pk).close_asked_at is not None


@pytest.mark.row("MALA-V-54", level="real")
def test_accepted_work_that_was_merged_as_another_commit_stays_open_and_says_why(
    real: RealWorld,
) -> None:
    desk = Gated(real, "tests: ls")
    run = desk.accept("7", {"a.txt": "x"}, "merged")
    commit = git(desk.checkout, "rev-parse", "HEAD")
    Run.objects.filter(pk=run.pk).update(accepted_commit=commit, attempts=1)
    desk.push("main", {"a.txt": "x"})
    row = desk.validate()
    why = "its pull request was merged, and main does not hold its accepted commit"
    assert row.left_out == [f"issue 7: {why}"]
    run.refresh_from_db()
    assert run.close_asked_at is None
    WatchSession.objects.update(
        phase="ended", code=0, reason="queue empty", ended_at=real.lab.now()
    )
    level = levels.read_levels([run])[run.pk]
    assert level.standing is Standing.LEFT_OUT
    assert level.reason == f"{why[0].upper()}{why[1:]}."


@pytest.mark.row("MALA-V-42", "C-38", level="real")
def test_a_worktree_that_is_to_be_kept_survives_the_tidying(real: RealWorld) -> None:
    desk = Gated(real, "tests: exit 3", keep_worktrees=True)
    row = desk.validate()
    assert row.settled_at is not None
    assert row.artifacts["worktree_state"] == "kept"
    assert (Path(row.artifacts["worktree_path"]) / "hello.txt").exists()


def test_a_run_without_a_session_has_a_run_level_of_its_own(real: RealWorld) -> None:
    desk = Gated(real, "tests: ls")
    desk.accept("7", {"a.txt": "x"})
    run, row = desk.alone("8", {"b.txt": "x"})
    assert (row.session_id, row.run_id, row.number) == (None, run.pk, 1)
    assert row.state == ValidationState.PASSED
    assert row.results[0]["tail"] == "b.txt\nhello.txt\n"
    with transaction.atomic():
        assert validations.begin_for_run(real.lab, run).pk == row.pk
    assert Validation.objects.count() == 1
    assert Notice.objects.filter(run=run, kind="validation.passed").count() == 1


def test_one_that_fails_is_mended_by_nobody(real: RealWorld) -> None:
    desk = Gated(real, "tests: exit 3")
    Project.objects.update(fix_attempts=3)
    run, row = desk.alone("8", {"b.txt": "x"})
    assert row.state == ValidationState.FAILED
    assert not Fixer.objects.exists()
    assert f"run {run.pk} (issue 8)" in desk.issues()[0].title


def test_one_whose_switch_is_off_proves_nothing_and_runs_nothing(real: RealWorld) -> None:
    desk = Gated(real, "tests: exit 3", disabled=[Switch.RUN_LEVEL])
    row = desk.validate()
    assert (row.state, row.reason) == (
        ValidationState.NOTHING,
        "run-level validation is turned off",
    )
    assert real.queue.validations == []


def test_a_project_without_gates_is_validated_as_ever(real: RealWorld) -> None:
    desk = Gated(real, "tests: exit 3")
    Project.objects.update(policy=CompletionPolicy.PULL_REQUEST, checks="true")
    desk.session.refresh_from_db()
    row = desk.validate()
    assert (row.state, row.spec) == (ValidationState.PASSED, None)
    assert set(row.results[0]) == {
        *("attempt", "name", "argv", "is_running", "status", "seconds", "tail", "signal"),
        *("is_over_time", "is_given_up", "trouble", "began_at"),
    }


def test_a_run_level_that_could_not_be_carried_out_has_not_passed(real: RealWorld) -> None:
    """Also where it has no command, and would only try a real run."""
    desk = Gated(real, on=["e2e"])
    (real.folder / "demo-origin.git").rename(real.folder / "away.git")
    row = desk.begin()
    Validation.objects.filter(pk=row.pk).update(troubles=runner.MOST_TROUBLES - 1)
    desk.work()
    row.refresh_from_db()
    assert row.state == ValidationState.FAILED
    assert row.reason.startswith("it could not be carried out: ")


def test_reasons_of_a_passed_room_are_none() -> None:
    assert clean_room.describe_failure(clean_room.Result()) == ()


@pytest.mark.parametrize("is_kept", [False, True])
def test_a_fixture_that_a_killed_worker_left_goes_with_its_validation(
    real: RealWorld, is_kept: bool
) -> None:
    """It holds the environment of the agent; what is kept on purpose stays."""
    desk = Gated(real, "tests: true", on=["e2e"], keep_e2e_fixture=is_kept)
    row = desk.begin()
    fixture = real.paths.e2e_fixtures / f"run-level-{row.pk}-0"
    (fixture / "tiny").mkdir(parents=True)
    (fixture / "state").mkdir()
    left = subprocess.Popen(["sleep", "677"], env={processes.MARKER: row.mark})
    endings.close(real.lab, row, Verdict(ValidationState.CANCELLED, "called off"))
    assert endings.settle(real.lab, row)
    assert left.wait(PATIENCE) < 0
    assert fixture.exists() is is_kept


def test_what_a_run_level_kept_goes_after_the_time_of_all_output(real: RealWorld) -> None:
    desk = Gated(real, "tests: exit 3", disabled=[Switch.FOLLOW_UP], keep_worktrees=True)
    row = desk.validate()
    kept = Path(row.artifacts["worktree_path"])
    run = Run.objects.first() or desk.accept("7", {"a.txt": "x"})
    check = CheckRun.objects.create(
        run=run,
        host=real.lab.host,
        is_running=False,
        mark="m",
        asked_at=real.lab.now(),
        ended_at=real.lab.now(),
    )
    check.folder(real.paths).mkdir(parents=True)
    retention.prune(real.lab, desk.project)
    assert kept.is_dir()
    assert Validation.objects.get(pk=row.pk).artifacts["worktree_state"] == "kept"
    assert check.folder(real.paths).is_dir()
    real.offset += timedelta(days=31)
    Host.objects.update_or_create(name=real.lab.host, defaults={"lived": 31 * retention.DAY})
    retention.prune(real.lab, desk.project)
    assert not kept.exists()
    row.refresh_from_db()
    assert row.artifacts["worktree_state"] == "removed"
    assert not check.folder(real.paths).exists()


class Away:
    """A database that answers nothing once something is there, until somebody has waited for it."""

    def __init__(self, real: RealWorld, there: Path, pauses: int = 1) -> None:
        self.real, self.there, self.pauses, self.refused = real, there, pauses, 0

    def wait(self, seconds: float) -> None:
        self.pauses -= 1
        self.real.offset += timedelta(minutes=1)

    def __call__(self, execute: Any, *args: Any) -> Any:
        if self.pauses > 0 and self.there.exists():
            self.refused += 1
            raise OperationalError("server closed the connection unexpectedly")
        return execute(*args)


@pytest.mark.row("X-09", level="contract")
@pytest.mark.parametrize("when", ["between two commands", "at the end"])
@pytest.mark.parametrize("minutes", [1, 30])
def test_a_database_that_goes_away_for_minutes_has_no_command_run_twice(
    real: RealWorld, tmp_path: Path, when: str, minutes: int
) -> None:
    """Hours of a run level waited for it to answer; away for longer, it begins anew."""
    ran, there = tmp_path / "ran", tmp_path / "there"
    lines = [f"first: echo >> {ran}", "second: true"]
    lines[when == "at the end"] += f"; touch {there}"
    desk = Gated(real, *lines)
    run = desk.proven("7", {"a.txt": "x"})
    row = desk.begin()
    away = Away(real, there, minutes)
    desk.lab = replace(real.lab, pause=away.wait)
    with connection.execute_wrapper(away):
        runner.carry_out(desk.lab, desk.real.queue.validations.pop(0))
        away.pauses = 0
    assert away.refused
    validations.tend(real.lab)
    desk.work()
    row.refresh_from_db()
    assert (row.state, row.reason) == (ValidationState.PASSED, "2 commands passed")
    assert len(ran.read_text()) == (1 if minutes == 1 else 2)
    run.refresh_from_db()
    assert run.close_asked_at is not None
