"""Bad days of monitors: no list, no database, no group, a set clock, two ticks, a death in between."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError, connection

from runs import tick
from runs.core.states import NoticeKind
from runs.groups import monitor_stepper, monitors
from runs.groups.terms import MonitorState, TaskStatus
from runs.models import Checkpoint, Host, Monitor, Notice, Task, TaskGroup
from tests import make
from tests.fakes import World
from tests.groups.monitor_house import a_watched, claim, complete, listings, passes, told, watched
from tests.groups.test_group_races import at_once
from tests.patience import PATIENCE
from tests.world.stories import passing

pytestmark = pytest.mark.django_db(transaction=True)
GONE = "server closed the connection unexpectedly"


def breaking(
    *, where: str, error: Exception, for_good: bool = False, of: int | None = None
) -> Callable[..., Any]:
    """A database that fails at statements with these words (and this number among what it is given).

    From then on at all, or at those only.
    """
    is_gone = False

    def execute(run: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal is_gone
        if is_gone or (where in sql and (of is None or of in params)):
            is_gone = for_good
            raise error
        return run(sql, params, many, context)

    return execute


# A pass's own; signals that are taken over ask for some of the tasks only.
LISTING = '"runs_task"."issue_key" AS "issue_key" FROM "runs_task" WHERE "runs_task"."group_id"'


@pytest.mark.row("RUNE-04", "C-25", level="contract")
@pytest.mark.parametrize("fast", [False, True], ids=["polling", "signals"])
def test_tasks_that_cannot_be_listed_are_an_error_and_not_tried_again(
    world: World, fast: bool
) -> None:
    broken = a_watched(world, 2, fast=fast)
    error = OperationalError("database disk image is malformed")
    for _ in range(8):
        with connection.execute_wrapper(breaking(where=LISTING, error=error)):
            tick.tick(world.lab)
        world.clock.forward(seconds=5)
    broken.refresh_from_db()
    assert broken.state == MonitorState.ERROR
    assert "malformed" in broken.error
    assert (broken.result, broken.completed, broken.incomplete) == (None, [], [])
    (text,) = told(NoticeKind.MONITOR_ENDED)
    assert "malformed" in text
    assert "Start it again" in text
    with watched() as seen:
        passes(world, 3)
    assert listings(seen) == 0


def test_one_that_cannot_be_listed_keeps_no_other_waiting(world: World) -> None:
    first, second = a_watched(world, 1, name="a"), a_watched(world, 1, name="b")
    error = OperationalError("no")
    with connection.execute_wrapper(breaking(where=LISTING, error=error, of=first.group_id)):
        tick.tick(world.lab)
    states = dict(Monitor.objects.values_list("pk", "state"))
    assert states == {first.pk: MonitorState.ERROR, second.pk: MonitorState.RUNNING}
    assert told(NoticeKind.MONITOR_PROGRESS) == ["Work progress: 0/1 tasks"]


@pytest.mark.row("C-25", level="contract")
def test_a_database_that_is_away_altogether_ends_no_monitor(world: World) -> None:
    monitor = a_watched(world, 1)
    before = told()
    gone = breaking(where=LISTING, for_good=True, error=OperationalError(GONE))
    with connection.execute_wrapper(gone):
        report = tick.tick(world.lab)
    assert report.errors
    monitor.refresh_from_db()
    assert monitor.is_running
    assert told() == before
    world.clock.forward(seconds=70)  # the lease that nobody could give back
    tick.tick(world.lab)
    assert told(NoticeKind.MONITOR_PROGRESS) == ["Work progress: 0/1 tasks"]


def test_what_cannot_be_stored_of_monitors_keeps_no_run_from_its_end(world: World) -> None:
    monitor = a_watched(world, 1)
    world.tracker.add_root("demo")
    run = make.a_run(monitor.group.project)
    world.clock.forward(minutes=5)
    full = breaking(where='INTO "runs_notice"', error=OperationalError("database or disk is full"))
    with connection.execute_wrapper(full):
        report = tick.tick(world.lab, force=True)
    assert "Make room" in report.errors[0]
    assert report.runs == 1
    monitor.refresh_from_db()
    assert monitor.is_running
    tick.tick(world.lab, force=True)
    run.refresh_from_db()
    assert run.outcome == "died"
    assert told(NoticeKind.MONITOR_PROGRESS) == ["Work progress: 0/1 tasks"]


def test_a_group_that_goes_while_it_is_listed_leaves_nothing_behind(world: World) -> None:
    monitor = a_watched(world, 2)
    complete(monitor, "1", "2")
    world.clock.forward(seconds=1)
    turn = monitor_stepper.look_at(world.lab, _read(monitor), world.clock())
    TaskGroup.objects.all().delete()
    assert turn is not None
    assert not monitor_stepper.store(world.lab, monitor, turn, _number())
    assert not Notice.objects.exists()
    assert not Checkpoint.objects.exists()
    passes(world, 2)


def test_of_two_ticks_that_looked_at_the_same_only_one_tells(world: World) -> None:
    monitor = a_watched(world, 4)
    tick.tick(world.lab)
    complete(monitor, "1")
    claim(monitor, "2")
    world.clock.forward(seconds=30)
    rows = [_read(monitor), _read(monitor)]
    turns = [monitor_stepper.look_at(world.lab, row, world.clock()) for row in rows]
    number = _number()
    won = [
        monitor_stepper.store(world.lab, row, turn, number)
        for row, turn in zip(rows, turns, strict=True)
        if turn is not None
    ]
    assert won == [True, False]
    assert [p.n for p in Checkpoint.objects.all()] == [1]
    assert len(told(NoticeKind.MONITOR_PROGRESS)) == 2


def test_a_tick_that_lost_its_lease_stores_nothing(world: World) -> None:
    monitor = a_watched(world, 1)
    tick.tick(world.lab)
    number = _number()
    Host.objects.update(lease_number=number + 1)
    world.clock.forward(seconds=30)
    before = told()
    monitor_stepper.look(passing(world, number))
    assert told() == before
    assert _read(monitor).version == Monitor.objects.get().version


def test_who_dies_while_storing_leaves_nothing_half_told(world: World) -> None:
    monitor = a_watched(world, 4)
    tick.tick(world.lab)
    complete(monitor, "1")
    world.clock.forward(seconds=30)
    before = told()
    dying = breaking(where='INTO "runs_checkpoint"', error=RuntimeError("killed"))
    under_way = passing(world, _number())
    with connection.execute_wrapper(dying):
        monitor_stepper.look(under_way)
    assert under_way.errors
    assert told() == before
    tick.tick(world.lab)
    assert [p.n for p in Checkpoint.objects.all()] == [1]
    assert len(told(NoticeKind.MONITOR_CHECKPOINT)) == 1


@pytest.mark.row("RUNE-39", level="contract")
@pytest.mark.parametrize("meanwhile", ["completed", "claimed anew"])
def test_a_task_that_changed_since_it_was_listed_is_not_given_back(
    world: World, meanwhile: str
) -> None:
    """Whoever took or finished it in that moment keeps it, and nothing is told of a release."""
    monitor = a_watched(world, 2)
    claim(monitor, "1")
    passes(world, 21)
    world.clock.forward(seconds=30)
    row = _read(monitor)
    turn = monitor_stepper.look_at(world.lab, row, world.clock())
    if meanwhile == "completed":
        complete(monitor, "1")
    else:
        claim(monitor, "1", owner="fa-2")
    stood = Task.objects.values("status", "owner").get(key="1")
    assert turn is not None
    assert monitor_stepper.store(world.lab, row, turn, _number())
    assert Task.objects.values("status", "owner").get(key="1") == stood
    assert not told(NoticeKind.TASK_RELEASED)
    passes(world, 1)
    assert _read(monitor).is_running


@pytest.mark.any_database
@pytest.mark.row("X-15", level="contract")
@pytest.mark.parametrize(
    ("hours", "fast"), [(1, True), (-1, False), (24 * 365, False)], ids=["1", "-1", "a year"]
)
def test_a_set_clock_makes_no_task_stale_and_no_monitor_late(
    world: World, hours: int, fast: bool
) -> None:
    monitor = a_watched(world, 2, fast=fast, timeout_seconds=700)
    claim(monitor, "1")
    passes(world, 9)
    world.clock.jump(hours=hours)
    tick.tick(world.lab)
    assert not told(NoticeKind.MONITOR_WARNED, NoticeKind.MONITOR_INVESTIGATE)
    passes(world, 4)
    assert len(told(NoticeKind.MONITOR_INVESTIGATE)) == 1, "stale when 300 seconds had passed"
    assert _read(monitor).is_running
    passes(world, 8)
    assert Task.objects.get(key="1").status == TaskStatus.IN_PROGRESS
    passes(world, 4)
    monitor.refresh_from_db()
    assert monitor.state == MonitorState.TIMED_OUT
    assert Checkpoint.objects.count() == 1


def test_a_clock_that_was_set_while_the_machine_was_off_holds_nothing_up(world: World) -> None:
    """After a boot nobody can say how far it was set: times that are too far ahead are wrong."""
    monitor = a_watched(world, 1, fast=True)
    tick.tick(world.lab)
    Host.objects.update(clock_boot="another")
    world.clock.jump(hours=-100)
    tick.tick(world.lab)
    passes(world, 2)
    assert len(told(NoticeKind.MONITOR_PROGRESS)) > 2
    assert _read(monitor).is_running


def _read(monitor: Monitor) -> Monitor:
    return Monitor.objects.select_related("group__project").get(pk=monitor.pk)


def _number() -> int:
    return Host.objects.get_or_create(name="local")[0].lease_number


@pytest.mark.postgres
def test_a_monitor_that_is_started_while_the_last_one_ends_waits_for_no_one_that_waits(
    world: World,
) -> None:
    """Its group may not be locked so that the end of the other could not be told of it."""
    monitor = a_watched(world, 1)
    complete(monitor, "1")
    world.clock.forward(seconds=1)
    row = _read(monitor)
    turn, number = monitor_stepper.look_at(world.lab, row, world.clock()), _number()
    assert turn is not None
    ending, starting = threading.Event(), threading.Event()

    def pause(run: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if 'INTO "runs_notice"' in sql:
            ending.set()
            starting.wait(0.5)
        return run(sql, params, many, context)

    def announce(run: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if 'INTO "runs_monitor"' in sql:
            starting.set()
        return run(sql, params, many, context)

    def end() -> bool:
        with connection.execute_wrapper(pause):
            return monitor_stepper.store(world.lab, row, turn, number)

    def start() -> Monitor:
        ending.wait(PATIENCE)
        with connection.execute_wrapper(announce):
            return monitors.start(world.lab, row.group, by="anna")

    won, started = at_once(end, start)
    assert won is True
    assert isinstance(started, Monitor)
