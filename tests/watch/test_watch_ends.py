"""Watch sessions: validations, drain, abort, kill, and days on which something is broken (MALA-W)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.db import OperationalError

from runs import tick
from runs.core.effects import ValidationEnd
from runs.core.ports import SeamError
from runs.core.states import Outcome
from runs.forges import cadence
from runs.models import Project, Run, Validation, WatchSession
from runs.validation import acts as validations
from runs.watch import acts as watches
from runs.watch.session import Request, Terms
from tests import make
from tests.fakes import World
from tests.watch.watch_day import BATCH, WATCH, Day
from trackers.base import NotUnderstood

pytestmark = pytest.mark.django_db(transaction=True)

CHECKED = {"checks": "make test"}
EVERY_2 = Terms(is_watching=True, every=2)


# Validations.


@pytest.mark.long
@pytest.mark.row("MALA-W-29", "MALA-W-30", "MALA-W-33", "MALA-W-63", level="contract")
def test_the_tenth_completion_is_validated_and_not_the_ninth(world: World) -> None:
    keys = [str(number) for number in range(1, 13)]
    day = Day(world, *keys, parallel=1, **CHECKED).opens(WATCH)
    assert day.session.threshold == 10
    for key in keys[:9]:
        day.ends(key)
    assert day.validations == []
    day.ends("10")
    assert (day.validations, day.session.phase) == ([(10, "running")], "validating")
    day.validation_ends()
    assert (day.session.threshold, day.session.validated, day.active) == (20, 10, ["11"])
    stop_and_drain(day, "11")
    assert (day.end, len(day.validations)) == ((130, "interrupted"), 1)


def stop_and_drain(day: Day, key: str) -> None:
    watches.drain(day.lab, day.session, "anna")
    day.ends(key, outcome=Outcome.STOPPED)


@pytest.mark.long
@pytest.mark.row("MALA-W-31", "MALA-W-32", level="contract")
def test_a_validation_waits_for_active_runs_and_nothing_starts_meanwhile(world: World) -> None:
    day = Day(world, *"123456", parallel=3, **CHECKED).opens(EVERY_2)
    day.ends("1")
    assert day.active == ["2", "3", "4"]
    asked = day.polls
    day.ends("2").wait(300, every=10)
    assert (day.session.phase, day.active) == ("waiting for active runs", ["3", "4"])
    assert (day.validations, day.polls) == ([], asked)
    day.ends("3").ends("4")
    assert (day.session.phase, day.session.completed) == ("validating", 4)
    day.wait(300, every=10)
    assert (day.validations, day.active, day.polls) == ([(4, "running")], [], asked)
    day.validation_ends()
    assert (day.session.phase, day.active, day.session.threshold) == ("working", ["5", "6"], 6)
    began, ended = Validation.objects.values_list("began_at", "ended_at").get()
    assert not Run.objects.filter(started_at__gte=began, started_at__lt=ended).exists()


@pytest.mark.row("MALA-W-34", "C-26", level="contract")
def test_a_jump_over_several_thresholds_is_one_validation(world: World) -> None:
    day = Day(world, *"1234567", parallel=7, **CHECKED).opens(EVERY_2)
    day.ends(*"1234567").validation_ends()
    assert (len(day.validations), day.session.threshold, day.session.is_open) == (1, 8, True)


@pytest.mark.row("MALA-W-35", "MALA-W-64", "MALA-W-68", level="contract")
def test_a_failed_validation_ends_it_with_one_and_is_not_repeated(world: World) -> None:
    day = Day(world, *"1234", parallel=2, **CHECKED).opens(EVERY_2).ends("1", "2")
    day.validation_ends(passed=False).wait(130, every=10)
    assert (day.end, day.validations) == ((1, "validation failed"), [(2, "failed")])
    assert day.started == ["1", "2"]


@pytest.mark.row("MALA-W-36", level="contract")
def test_a_validation_that_passes_in_the_end_lets_it_go_on(world: World) -> None:
    """What fixers did in between is the validation's own business: to the session it ran."""
    day = Day(world, *"1234", parallel=2, **CHECKED).opens(EVERY_2).ends("1", "2")
    Validation.objects.update(step="fixing", attempt=1, runner="")
    day.wait(600, every=30)
    assert (day.session.phase, day.active) == ("validating", [])
    assert day.validation_ends().active == ["3", "4"]


@pytest.mark.row("MALA-W-38", "MALA-W-62", "MALA-W-66", level="contract")
def test_what_was_not_validated_yet_is_validated_at_the_end(world: World) -> None:
    day = Day(world, *"12345", parallel=2, **CHECKED)
    day.opens(Terms(is_watching=True, limit=3, every=2)).ends("1", "2").validation_ends()
    assert day.active == ["3"]
    day.ends("3")
    assert (day.session.phase, day.validations[1]) == ("validating", (3, "running"))
    assert day.validation_ends().end == (0, "limit reached")


@pytest.mark.every_case
@pytest.mark.row("MALA-W-66", level="contract")
@pytest.mark.parametrize("way", ["queue empty", "limit reached", "interrupted", "poll failed"])
def test_every_way_out_validates_what_was_completed(world: World, way: str) -> None:
    day = Day(world, "1", **CHECKED)
    terms = {"queue empty": BATCH, "limit reached": Terms(is_watching=True, limit=1)}
    day.opens(terms.get(way, WATCH)).ends("1")
    if way == "interrupted":
        day.asks(Request.DRAIN)
    if way == "poll failed":
        day.fails().wait(180)
    assert (day.session.phase, day.validations) == ("validating", [(1, "running")])
    day.validation_ends()
    assert day.session.reason == way


@pytest.mark.row("MALA-W-47", "MALA-W-49", level="contract")
@pytest.mark.parametrize(
    ("passed", "end"), [(True, (130, "interrupted")), (False, (1, "validation failed"))]
)
def test_drain_waits_for_a_validation_that_runs(world: World, passed: bool, end: Any) -> None:
    day = Day(world, *"12", parallel=1, **CHECKED).opens(Terms(is_watching=True, every=1))
    day.ends("1").asks(Request.DRAIN).wait(600, every=10)
    assert (day.session.phase, day.session.is_open) == ("validating", True)
    assert world.checks.ended == []
    day.validation_ends(passed)
    assert (day.end, len(day.validations), day.started) == (end, 1, ["1"])


@pytest.mark.row("MALA-W-49", "MALA-W-61", level="contract")
@pytest.mark.parametrize("way", ["drained", "polls failed"])
def test_a_final_validation_that_fails_is_code_one(world: World, way: str) -> None:
    day = Day(world, "1", **CHECKED).opens()
    if way == "drained":
        day.asks(Request.DRAIN)
    else:
        day.fails().wait(240, every=2)
    assert day.ends("1").validation_ends(passed=False).end == (1, "validation failed")


@pytest.mark.row("MALA-W-72", "C-44", "MALA-W-67", level="contract")
@pytest.mark.parametrize(
    ("outcome", "end"),
    [(Outcome.DIED, (1, "issues failed")), (Outcome.NO_CHANGE, (0, "queue empty"))],
)
def test_nought_is_only_for_sessions_in_which_nothing_failed(
    world: World, outcome: Outcome, end: Any
) -> None:
    day = Day(world, "1", "2", **CHECKED).opens(BATCH)
    day.ends("1").ends("2", outcome=outcome).validation_ends()
    assert day.end == end


@pytest.mark.row("MALA-W-13", level="contract")
def test_a_validation_that_ended_while_no_worker_lived_is_heard_and_not_repeated(
    world: World,
) -> None:
    day = Day(world, *"123", parallel=2, **CHECKED).opens(EVERY_2).ends("1", "2")
    row = Validation.objects.get()
    queued = list(world.queue.validations)
    with_tick = day.tick
    day.tick = lambda: day  # type: ignore[method-assign]  # no worker
    day.validation_ends()
    day.tick = with_tick  # type: ignore[method-assign]
    assert day.session.validation == "passed"
    day.tick()
    assert (day.active, day.session.validated, queued) == (["3"], 2, [row.pk])
    assert (Validation.objects.count(), world.queue.validations) == (1, queued)


# Abort and kill.


@pytest.mark.row("MALA-W-50", level="contract")
def test_abort_interrupts_what_runs_once_and_ends_it_after_ten_seconds(world: World) -> None:
    day = Day(world, "1", "2").opens().asks(Request.DRAIN).asks(Request.ABORT)
    names = sorted(world.sessions.all)
    assert world.sessions.interrupted == names
    for _ in range(9):
        day.wait(1)
        tick.tick(day.lab, project="demo")
    assert (day.active, sorted(world.sessions.all)) == (["1", "2"], names)
    assert day.session.is_open
    day.wait(2)
    assert (day.end, world.sessions.all, day.validations) == ((130, "interrupted"), {}, [])
    assert world.sessions.interrupted == names
    runs = Run.objects.order_by("pk")
    assert {(run.outcome, run.worktree_fate) for run in runs} == {("interrupted", "kept")}
    assert "aborted by anna" in runs[0].reason
    assert (day.session.completed, Project.objects.get().streak) == (0, 0)


@pytest.mark.row("MALA-W-50", level="contract")
def test_a_run_that_gives_way_ends_as_interrupted_and_the_session_at_once(world: World) -> None:
    day = Day(world, "1").opens().asks(Request.ABORT)
    for name in list(world.sessions.all):
        world.sessions.end(name, status=130)
    tick.tick(day.lab, project="demo")
    assert (Run.objects.get().outcome, day.end) == ("interrupted", (130, "interrupted"))
    assert (day.seconds, day.session.completed, Project.objects.get().streak) == (0, 0, 0)


@pytest.mark.row("MALA-W-50", level="contract")
def test_a_run_that_had_delivered_when_it_was_aborted_is_a_success(world: World) -> None:
    day = Day(world, "1").opens().asks(Request.ABORT)
    world.tracker.add_pull("demo", "afk/1", created_at=world.clock.now)
    for name in list(world.sessions.all):
        world.sessions.end(name, status=130)
    tick.tick(day.lab, project="demo")
    assert (Run.objects.get().outcome, day.end) == ("succeeded", (130, "interrupted"))


@pytest.mark.row("MALA-W-50", level="contract")
def test_abort_ends_what_is_only_starting(world: World) -> None:
    day = Day(world, "1")
    watches.open(day.lab, day.project, WATCH, "anna")
    tick.tick(day.lab)
    assert Run.objects.get().state == "starting"
    day.asks(Request.ABORT)
    assert (Run.objects.get().outcome, day.end) == ("interrupted", (130, "interrupted"))
    assert world.sessions.all == {}


@pytest.mark.row("MALA-W-50", "MALA-W-47", level="contract")
def test_abort_calls_a_validation_off(world: World) -> None:
    day = Day(world, "1", **CHECKED).opens(Terms(is_watching=True, every=1)).ends("1")
    day.asks(Request.DRAIN).asks(Request.ABORT)
    assert (day.end, day.validations) == ((130, "interrupted"), [(1, "cancelled")])


@pytest.mark.row("MALA-W-51", level="contract")
@pytest.mark.parametrize("validates", [False, True])
def test_kill_ends_everything_at_once(world: World, validates: bool) -> None:
    day = Day(world, "1", "2", **CHECKED).opens(Terms(is_watching=True, every=1))
    if validates:
        day.ends("1", "2")
    day.asks(Request.KILL)
    assert (day.end, day.seconds, world.sessions.all) == ((130, "interrupted"), 0, {})
    if validates:
        assert day.validations == [(2, "cancelled")]
    else:
        assert set(Run.objects.values_list("outcome", flat=True)) == {"interrupted"}
        assert "killed by anna" in Run.objects.all()[0].reason


@pytest.mark.row("MALA-W-50", "C-13", level="contract")
def test_a_request_only_ever_outranks_an_earlier_one(world: World) -> None:
    day = Day(world, "1").opens().asks(Request.ABORT)
    assert not watches.drain(day.lab, day.session, "ben")
    assert not watches.abort(day.lab, day.session, "ben")
    assert watches.kill(day.lab, day.session, "ben")
    assert (day.tick().end, day.session.asked_by) == ((130, "interrupted"), "ben")
    assert not watches.kill(day.lab, day.session, "ben")
    assert len(day.told("watch.asked")) == 2


# Bad days.


def test_a_tmux_that_does_not_answer_keeps_no_killed_session_open(world: World) -> None:
    day = Day(world, "1").opens()
    world.sessions.broken_kill = "tmux hangs"
    day.asks(Request.KILL)
    assert day.end == (130, "interrupted")
    run = Run.objects.get()
    assert (run.outcome, run.settled_at) == ("interrupted", None)
    world.sessions.broken_kill = ""
    day.wait(31, every=31)
    assert world.sessions.all == {}


@pytest.mark.row("MALA-W-56", "MALA-W-57", level="contract")
def test_an_hour_of_garbage_is_three_polls_and_code_three(world: World) -> None:
    day = Day(world, "1").fails(NotUnderstood("It is not JSON."))
    day.opens().wait(300, every=5).wait(3300, every=60)
    assert (day.end, day.polls, day.validations) == ((3, "poll failed"), 3, [])
    assert (len(day.told("watch.poll_failed")), day.told("watch.idle")) == (3, [])
    world.tracker.heal()
    assert day.wait(120, every=10).started == []


@pytest.mark.row("MALA-W-74", level="contract")
@pytest.mark.parametrize("hours", [8, -8])
def test_eight_hours_of_sleep_are_one_poll(world: World, hours: int) -> None:
    day = Day(world).opens().wait(10)
    asked = day.polls
    (world.clock.forward if hours > 0 else world.clock.jump)(hours=hours)
    day.tick().tick().tick()
    assert (day.polls, day.session.phase) == (asked + 1, "idle")
    assert day.wait(59).polls == asked + 1
    assert day.wait(1).polls == asked + 2


@pytest.mark.parametrize("fails", [False, True], ids=["it answered", "it failed"])
def test_a_project_that_is_deleted_under_an_open_session_disturbs_nobody(
    world: World, fails: bool
) -> None:
    day = Day(world, "1", "2", **CHECKED).opens()
    other = make.a_project("other", agent=make.an_agent("second"))
    world.tracker.add_root("other")
    world.tracker.add_issue("other", "One", "1", labels=["ready-for-agent"])
    watches.open(day.lab, other, WATCH, "anna")

    class Deleted:
        """Somebody deletes the project while the queues are asked."""

        def queues(self, labels: Any) -> Any:
            Project.objects.filter(name="demo").delete()
            if fails:
                world.tracker.fail("demo")
            return world.tracker.queues(labels)

        def __getattr__(self, name: str) -> Any:
            return getattr(world.tracker, name)

    day.lab = replace(world.lab, tracker_for={"memory": Deleted()}.get)
    cadence.wake(world.lab, day.project.pk)
    day.tick()
    assert not [error for error in day.report.errors if "labsite" in error]
    assert list(WatchSession.objects.values_list("project__name", "phase")) == [
        ("other", "working")
    ]
    assert Run.objects.filter(project=other).count() == 1
    before = list(WatchSession.objects.values_list("pk", "version", "validation"))
    watches.validation_ended(day.lab, ValidationEnd(9, 999, passed=True))
    assert list(WatchSession.objects.values_list("pk", "version", "validation")) == before


def test_a_worker_that_dies_between_the_step_and_its_act_validates_once(world: World) -> None:
    """The step and the validation's row are one transaction: both are there, or neither."""
    day = Day(world, *"12", parallel=2, **CHECKED).opens(EVERY_2)

    class Dead(BaseException):
        pass

    def dies(*_: object) -> None:
        raise Dead

    day.lab = replace(world.lab, queue=replace_validate(world, dies))
    with pytest.raises(Dead):
        day.ends("1", "2")
    day.lab = world.lab
    assert (day.session.phase, len(day.validations)) == ("validating", 1)
    world.lab = day.lab = replace(world.lab, process="boot:2:2")
    world.dead_processes.add("boot:1:1")
    day.tick()
    validations.tend(day.lab)
    assert world.queue.validations == [Validation.objects.get().pk]
    day.validation_ends()
    assert (day.session.validated, len(day.validations)) == (2, 1)


def replace_validate(world: World, act: Any) -> Any:
    class Queue:
        validate = staticmethod(act)

        def on(self, host: str) -> Queue:
            return self

        def __getattr__(self, name: str) -> Any:
            return getattr(world.queue, name)

    return Queue()


def test_a_step_that_cannot_be_stored_is_taken_again(world: World) -> None:
    day = Day(world, "1", "2").opens(BATCH)
    broken = replace(world.lab, now=failing_after(world, 3))
    day.ends("1")
    report = tick.tick(broken, force=True)
    assert report.errors or report.was_blind
    assert day.ends("2").end == (0, "queue empty")


def failing_after(world: World, calls: int) -> Any:
    left = [calls]

    def now() -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise OperationalError("database is locked")
        return world.clock()

    return now


def test_git_that_does_not_answer_is_no_failed_poll_and_ends_no_batch(world: World) -> None:
    day = Day(world, "1")
    world.repos.broken_claims = "git hangs"
    day.opens(BATCH)
    assert (day.session.poll_failures, day.session.is_open, day.started) == (0, True, [])
    asked = day.polls
    world.clock.forward(seconds=61)
    day.tick()
    assert not WatchSession.objects.due(world.clock.now).exists()
    assert day.polls == asked
    world.repos.broken_claims = ""
    assert day.wait(190, every=10).started == ["1"]


@pytest.mark.row("MALA-W-76", level="contract")
def test_two_workers_of_two_hosts_ask_a_queue_once(world: World) -> None:
    day = Day(world)
    there = replace(world.lab, host="other", process="boot:7:7")
    day.opens()
    for _ in range(10):
        world.clock.forward(seconds=60)
        tick.tick(there)
        tick.tick(world.lab)
    assert day.polls == 11


def test_an_interrupt_that_tmux_refuses_is_followed_by_the_kill(world: World) -> None:
    day = Day(world, "1").opens()

    class Deaf:
        def interrupt(self, name: str, marker: str) -> None:
            raise SeamError("tmux hangs")

        def __getattr__(self, name: str) -> Any:
            return getattr(world.sessions, name)

    day.lab = replace(world.lab, sessions=Deaf())
    day.asks(Request.ABORT).wait(11)
    assert (day.end, world.sessions.all) == ((130, "interrupted"), {})


@pytest.mark.every_case
@pytest.mark.parametrize("size", [1, 40])
def test_open_sessions_cost_a_tick_the_same_whatever_their_number(
    world: World, size: int, django_assert_max_num_queries: Any
) -> None:
    day = Day(world).opens()
    for number in range(1, size):
        made = make.a_project(f"p{number}", tracker_root="demo")
        watches.open(day.lab, made, WATCH, "anna")
    day.tick().wait(31, every=31)
    world.clock.forward(seconds=2)
    with django_assert_max_num_queries(4):
        assert not tick.tick(day.lab).did
    world.clock.forward(seconds=26)
    assert WatchSession.objects.due(world.clock.now).count() == 0
    asked = day.polls
    with django_assert_max_num_queries(15):
        assert tick.tick(day.lab, project="demo").errors == []
    assert day.polls == asked
    world.clock.forward(seconds=2)
    with django_assert_max_num_queries(32):
        assert tick.tick(day.lab).did
    assert day.polls == asked + 1
