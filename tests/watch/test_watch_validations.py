"""A watch session and its validations together: when they come, what they hold up, how they end it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from runs.core.states import Outcome, ValidationState
from runs.models import Fixer, Notice, Project, Run, Validation, WatchSession
from runs.stop_project import stop_project
from runs.validation import acts as validations
from runs.validation import fixers, runner
from runs.validation.command_rules import Checked
from runs.watch import acts as watches
from runs.watch.session import Phase, Request, Terms
from tests import make
from tests.fakes import World
from tests.watch.watch_day import BATCH, Day

pytestmark = pytest.mark.django_db(transaction=True)

EVERY_TWO = Terms(is_watching=True, every=2)
BAD = Checked(1, 2.0, "E  assert 1 == 2\n")


class CheckedDay(Day):
    """Validations run one command, and only when the test says so or with `at_once`."""

    def __init__(self, world: World, *keys: str, at_once: bool = True, **fields: Any) -> None:
        fields = {"checks": "make check", "fix_attempts": 0, **fields}
        super().__init__(world, *keys, **fields)
        self.at_once = at_once

    def tick(self) -> CheckedDay:
        super().tick()
        if self.at_once and self.world.queue.validations:
            self.validates()
        return self

    def validates(self) -> CheckedDay:
        """The worker carries out what it was asked for; then there is a tick."""
        queue = self.world.queue
        assert queue.validations, "no validation was asked for"
        while queue.validations:
            runner.carry_out(self.lab, queue.validations.pop(0))
        super().tick()
        return self

    @property
    def rows(self) -> list[tuple[int, int, str]]:
        rows = Validation.objects.order_by("pk")
        return list(rows.values_list("number", "count", "state"))


@pytest.mark.row("MALA-W-30", "MALA-W-31", "MALA-W-32", level="contract")
def test_a_validation_waits_for_what_runs_and_holds_up_what_is_new(world: World) -> None:
    day = CheckedDay(world, *"1234567", at_once=False)
    day.opens(EVERY_TWO)
    assert day.active == ["1", "2", "3"]
    day.ends("1")
    assert day.rows == []
    day.ends("2").wait(5)
    assert (day.session.phase, day.rows) == (Phase.WAITING, [])
    still = list(day.active)
    assert still
    assert not {"6", "7"} & set(day.started)
    day.ends(*still).wait(5)
    count = day.session.completed
    assert (day.session.phase, day.active) == (Phase.VALIDATING, [])
    assert day.rows == [(1, count, "running")]
    started = list(day.started)
    day.wait(120)
    assert day.started == started
    day.validates().wait(3)
    assert day.rows == [(1, count, "passed")]
    assert day.session.threshold == (count // 2 + 1) * 2
    assert set(day.started) > set(started)
    row = Validation.objects.get()
    last = Run.objects.order_by("-ended_at").exclude(ended_at=None)[0]
    assert last.ended_at and row.ended_at
    assert last.ended_at <= row.began_at < row.ended_at
    assert min(run.requested_at for run in Run.objects.active()) >= row.ended_at


@pytest.mark.row("MALA-W-35", "MALA-W-64", "MALA-W-68", level="contract")
def test_a_validation_that_fails_ends_the_session_with_one(world: World) -> None:
    day = CheckedDay(world, *"12345", parallel=2)
    world.checks.answers["make check"] = BAD
    day.opens(EVERY_TWO).ends("1", "2")
    day.wait(60)
    assert day.end == (1, "validation failed")
    assert day.rows == [(1, 2, "failed")]
    assert day.started == ["1", "2"]


@pytest.mark.row("MALA-W-37", "MALA-W-38", "MALA-W-62", "MALA-W-67", level="contract")
def test_without_a_period_it_validates_once_at_the_end(world: World) -> None:
    day = CheckedDay(world, *"123")
    day.opens(BATCH).ends("1", "2", "3").wait(60)
    assert day.end == (0, "queue empty")
    assert day.rows == [(1, 3, "passed")]


@pytest.mark.row("MALA-W-63", level="contract")
def test_nothing_is_validated_twice(world: World) -> None:
    day = CheckedDay(world, *"12")
    day.opens(Terms(every=2)).ends("1", "2").wait(60)
    assert day.end == (0, "queue empty")
    assert day.rows == [(1, 2, "passed")]


@pytest.mark.row("MALA-W-65", level="contract")
def test_a_session_in_which_nothing_completed_validates_nothing(world: World) -> None:
    day = CheckedDay(world)
    day.opens(EVERY_TWO).wait(5)
    watches.drain(day.lab, day.session, "anna")
    day.wait(3)
    assert (day.end, day.rows) == ((130, "interrupted"), [])


@pytest.mark.every_case
@pytest.mark.row("MALA-W-66", level="contract")
@pytest.mark.parametrize(
    ("terms", "end"),
    [
        pytest.param(Terms(), (0, "queue empty"), id="queue empty"),
        pytest.param(Terms(is_watching=True, limit=1), (0, "limit reached"), id="limit"),
        pytest.param(Terms(is_watching=True), (130, "interrupted"), id="drained"),
        pytest.param(Terms(is_watching=True), (3, "poll failed"), id="poll failure"),
    ],
)
def test_every_way_out_validates_what_was_completed(
    world: World, terms: Terms, end: tuple[int, str]
) -> None:
    day = CheckedDay(world, "1")
    day.opens(terms).ends("1").wait(2)
    if end[0] == 3:
        day.fails().wait(400, every=2)
    if end[0] == 130:
        watches.drain(day.lab, day.session, "anna")
    day.wait(60)
    assert day.end == end
    assert day.rows == [(1, 1, "passed")]


@pytest.mark.every_case
@pytest.mark.parametrize("way", ["queue empty", "drained", "poll failure"])
def test_a_failed_final_validation_outranks_every_other_end(world: World, way: str) -> None:
    day = CheckedDay(world, "1")
    world.checks.answers["make check"] = BAD
    day.opens(Terms(is_watching=way != "queue empty")).ends("1").wait(2)
    if way == "drained":
        watches.drain(day.lab, day.session, "anna")
    if way == "poll failure":
        day.fails().wait(400, every=2)
    day.wait(60)
    assert day.end == (1, "validation failed")


@pytest.mark.row("MALA-W-72", level="contract")
def test_failed_issues_with_a_passing_validation_are_told_apart(world: World) -> None:
    day = CheckedDay(world, *"12")
    day.opens(BATCH).ends("1").ends("2", outcome=Outcome.DIED).wait(60)
    assert day.end == (1, "issues failed")
    assert day.rows == [(1, 2, "passed")]


def test_without_commands_nothing_is_checked_and_the_session_goes_on(world: World) -> None:
    day = CheckedDay(world, *"123", checks="", parallel=1)
    day.opens(Terms(every=1)).ends("1").wait(2)
    assert day.active == ["2"]
    day.ends("2").ends("3").wait(60)
    assert day.end == (0, "queue empty")
    assert {state for _, _, state in day.rows} == {"nothing to check"}
    assert not day.told("validation.began")


@pytest.mark.row("MALA-W-50", "MALA-W-51", level="contract")
@pytest.mark.parametrize("ask", [watches.abort, watches.kill])
def test_a_session_that_is_aborted_while_it_validates_ends_at_once(world: World, ask: Any) -> None:
    day = CheckedDay(world, "1", at_once=False)
    day.opens(BATCH).ends("1").wait(2)
    assert day.session.phase == Phase.VALIDATING
    ask(day.lab, day.session, "anna")
    day.tick()
    assert day.end == (130, "interrupted")
    row = Validation.objects.get()
    assert (row.state, row.reason) == (ValidationState.CANCELLED, "interrupted by anna")
    assert row.mark in world.checks.ended
    world.queue.validations.clear()
    runner.carry_out(day.lab, row.pk)
    assert world.checks.ran == []


@pytest.mark.row("MALA-W-45", level="contract")
def test_a_drain_lets_the_validation_come_to_its_end(world: World) -> None:
    day = CheckedDay(world, "1", at_once=False)
    day.opens(Terms(is_watching=True, every=1)).ends("1").wait(2)
    watches.drain(day.lab, day.session, "anna")
    day.wait(60)
    assert day.session.phase == Phase.VALIDATING
    day.validates().wait(3)
    assert (day.end, day.rows) == ((130, "interrupted"), [(1, 1, "passed")])


@pytest.mark.row("MALA-W-13", level="contract")
def test_a_worker_that_dies_while_validating_repeats_no_validation(world: World) -> None:
    day = CheckedDay(world, *"12", at_once=False)
    day.opens(BATCH).ends("1", "2").wait(2)
    row = Validation.objects.get()
    world.queue.validations.clear()
    Validation.objects.filter(pk=row.pk).update(runner="boot:9:9")
    world.dead_processes.add("boot:9:9")
    validations.tend(day.lab)
    day.validates().wait(60)
    assert day.end == (0, "queue empty")
    assert day.rows == [(1, 2, "passed")]
    assert day.session.completed == 2


def test_ten_idle_minutes_cost_a_validation_nothing(world: World) -> None:
    day = CheckedDay(world, "1")
    day.opens(Terms(is_watching=True, every=1)).ends("1").wait(3)
    told = Notice.objects.filter(kind__startswith="validation.").count()
    day.wait(600, every=2)
    assert day.rows == [(1, 1, "passed")]
    assert Notice.objects.filter(kind__startswith="validation.").count() == told


def fixing(world: World) -> CheckedDay:
    """A session whose validation failed and is being mended by an agent."""
    world.checks.answers["make check"] = BAD
    day = CheckedDay(world, "1", fix_attempts=2).opens(BATCH).ends("1").tick()
    fixers.carry_out(world.lab, world.queue.fixes.pop())
    assert Fixer.objects.get().session in world.sessions.all
    return day


@pytest.mark.row("LAB-51", level="contract")
def test_stop_all_ends_the_agent_that_mends_a_validation_and_no_other_is_started(
    world: World,
) -> None:
    day = fixing(world)
    other = make.a_project("other")
    assert stop_project(day.lab, other, "anna") == 0
    assert stop_project(day.lab, day.project, "anna") == 1
    assert stop_project(day.lab, day.project, "ben") == 0
    fixer = Fixer.objects.get()
    assert fixer.session not in world.sessions.all
    assert (fixer.end, fixer.settled_at) == ("was interrupted", day.lab.now())
    assert "was stopped by anna" in Validation.objects.get().reason
    assert Notice.objects.filter(kind="validation.failed", by="anna").count() == 1
    day.wait(30, every=10)
    assert (day.end, world.queue.fixes) == ((1, "validation failed"), [])
    assert Fixer.objects.count() == 1


@pytest.mark.row("MALA-W-50", "MALA-W-51", level="contract")
@pytest.mark.parametrize("request_", [Request.ABORT, Request.KILL])
def test_ending_a_session_ends_the_agent_that_mends_its_validation(
    world: World, request_: Request
) -> None:
    day = fixing(world).asks(request_)
    fixer = Fixer.objects.get()
    assert fixer.session not in world.sessions.all
    assert fixer.settled_at is not None
    assert day.rows == [(1, 1, "cancelled")]
    assert day.end == (130, "interrupted")
    validations.tend(day.lab)
    assert world.queue.fixes == []


def gone(day: CheckedDay) -> None:
    """Somebody deletes the project."""
    Project.objects.filter(pk=day.project.pk).delete()


def test_a_project_deleted_under_a_validation_ends_its_command(world: World) -> None:
    day = CheckedDay(world, "1", at_once=False).opens(BATCH).ends("1")
    world.checks.meanwhile = lambda check: gone(day)
    before = set(world.repos.trees)
    runner.carry_out(day.lab, world.queue.validations.pop())
    assert [list(check.argv) for check in world.checks.ran] == [["make", "check"]]
    assert set(world.repos.trees) == before  # the worktree of the commands is gone with them
    validations.tend(day.lab)
    assert day.tick().report.errors == []
    assert not WatchSession.objects.exists()


def test_a_project_deleted_while_a_fixer_starts_leaves_no_session(world: World) -> None:
    world.checks.answers["make check"] = BAD
    day = CheckedDay(world, "1", fix_attempts=1).opens(BATCH).ends("1").tick()
    real_start = world.sessions.start

    def start(order: Any) -> None:
        real_start(order)
        gone(day)

    sessions = replace(world.lab, sessions=Starting(world.sessions, start))
    fixers.carry_out(sessions, world.queue.fixes.pop())
    assert not [name for name in world.sessions.all if "fix" in name]
    validations.tend(day.lab)
    assert day.tick().report.errors == []


class Starting:
    """Sessions whose start is this."""

    def __init__(self, inner: Any, start: Any) -> None:
        self._inner, self.start = inner, start

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def test_a_project_deleted_under_a_fixer_disturbs_nobody(world: World) -> None:
    day = fixing(world)
    gone(day)
    validations.tend(day.lab)
    assert day.tick().report.errors == []
    assert not Fixer.objects.exists()
