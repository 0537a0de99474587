"""The fast path inside ticks: a look at one path every five seconds, and all of a pass beside it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runs import tick
from runs.core.states import NoticeKind
from runs.groups import monitor_stepper, monitors, signal_folders
from runs.groups.fast_path import Unreadable
from runs.groups.terms import MonitorState, Result, TaskStatus
from runs.models import Checkpoint, Host, Monitor, Task
from tests.fakes import START, World
from tests.groups.monitor_house import (
    OFFER,
    a_watched,
    claim,
    complete,
    listings,
    offer,
    passes,
    random_moments,
    signal,
    told,
    watched,
)
from tests.world.stories import passing

pytestmark = pytest.mark.django_db(transaction=True)
ENTERED = "Work: Signal directory detected — event-driven monitoring (5s interval)"


@pytest.mark.row("RUNE-61", "RUNE-62", "RUNE-63", "RUNE-71", level="contract")
def test_it_looks_every_five_seconds_tells_every_third_and_lists_nothing(world: World) -> None:
    a_watched(world, 3, fast=True, poll_seconds=60)
    tick.tick(world.lab)
    moments = {0: 1}
    with watched() as seen:
        for second in range(5, 45, 5):
            offer(world)
            count = len(told(NoticeKind.MONITOR_PROGRESS))
            moments |= {second: count} if count > max(moments.values()) else {}
    assert listings(seen) == 0
    assert list(moments) == [0, 10, 25, 40]
    assert told()[:2] == [ENTERED, "Work: Progress: 0/3 tasks signaled"]
    assert world.signals.asked == 9


def _lists_all(sql: str) -> bool:
    return 'FROM "runs_task" WHERE "runs_task"."group_id"' in sql and "ORDER BY" in sql


@pytest.mark.row("RUNE-68", "RUNE-84", level="contract")
def test_the_sentinel_ends_it_after_one_listing(world: World) -> None:
    monitor = a_watched(world, 3, fast=True)
    tick.tick(world.lab)
    signal(world, monitor, "1", "2", "3")
    with watched() as seen:
        offer(world)
    assert len([q for q in seen.captured_queries if _lists_all(q["sql"])]) == 1
    monitor.refresh_from_db()
    assert monitor.state == MonitorState.COMPLETE
    assert monitor.result == Result(("1", "2", "3"), (), timed_out=False)
    at = START.isoformat()
    assert f"Work: All 3 signals received at {at}" in told(NoticeKind.MONITOR_PROGRESS)
    assert [p.percentage for p in Checkpoint.objects.all()] == [100]
    assert not Task.objects.exclude(status=TaskStatus.COMPLETED).exists()


@pytest.mark.row("RUNE-69", "RUNE-68", level="contract")
def test_a_sentinel_that_the_list_of_tasks_contradicts_ends_nothing(world: World) -> None:
    monitor = a_watched(world, 3, fast=True)
    Task.objects.filter(key="3").update(issue_key="7")
    folder = world.signals.folders[signal_folders.folder(world.lab, monitor.group)]
    signal(world, monitor, "1", "2", "3")
    assert folder.sentinel is not None
    tick.tick(world.lab)
    monitor.refresh_from_db()
    assert (monitor.state, monitor.is_fast) == (MonitorState.RUNNING, False)
    said = "Work: .all-done file corrupted, falling back to TaskList polling"
    assert told(NoticeKind.MONITOR_WARNED) == [said]
    assert not told(NoticeKind.MONITOR_ENDED)
    complete(monitor, "3")
    passes(world, 1)
    monitor.refresh_from_db()
    assert monitor.state == MonitorState.COMPLETE
    assert monitor.result == Result(("1", "2", "3"), (), timed_out=False)


@pytest.mark.row("RUNE-69", level="contract")
def test_a_sentinel_that_cannot_be_read_is_told_and_the_tasks_are_listed(world: World) -> None:
    monitor = a_watched(world, 2, fast=True)
    tick.tick(world.lab)
    folder = world.signals.folders[signal_folders.folder(world.lab, monitor.group)]
    folder.sentinel = Unreadable.CORRUPTED
    offer(world)
    monitor.refresh_from_db()
    assert (monitor.is_fast, monitor.check_at) == (False, None)
    said = "Work: .all-done file corrupted, falling back to TaskList polling"
    assert told(NoticeKind.MONITOR_WARNED) == [said]
    assert told()[-1] == "Work progress: 0/2 tasks"
    asked = world.signals.asked
    complete(monitor, "1", "2")
    passes(world, 1)
    monitor.refresh_from_db()
    assert monitor.result == Result(("1", "2"), (), timed_out=False)
    assert world.signals.asked == asked


@pytest.mark.row("RUNE-70", "C-23", level="contract")
def test_the_timeout_counts_signals_and_lists_once(world: World) -> None:
    monitor = a_watched(world, 3, fast=True, timeout_seconds=60, poll_seconds=600)
    tick.tick(world.lab)
    signal(world, monitor, "1", "2")
    passes(world, 12, seconds=5)
    monitor.refresh_from_db()
    assert monitor.is_running
    offer(world)
    monitor.refresh_from_db()
    assert monitor.state == MonitorState.TIMED_OUT
    assert monitor.result == Result(("1", "2"), ("3",), timed_out=True)
    assert told(NoticeKind.MONITOR_WARNED) == ["Work: Timeout after 1 min. 2/3 signals received."]


@pytest.mark.long
@pytest.mark.row("RUNE-82", "C-22", level="contract")
def test_stalls_releases_and_checkpoints_are_told_on_the_fast_path_too(world: World) -> None:
    monitor = a_watched(world, 4, fast=True)
    claim(monitor, "1")
    signal(world, monitor, "2")
    tick.tick(world.lab)
    assert not Checkpoint.objects.exists(), "the first pass is an interval later"
    passes(world, 6, seconds=5)
    assert Checkpoint.objects.get().percentage == 25
    passes(world, 6 * 10, seconds=5)
    assert not told(NoticeKind.MONITOR_INVESTIGATE)
    passes(world, 6, seconds=5)
    assert len(told(NoticeKind.MONITOR_INVESTIGATE)) == 1
    passes(world, 6 * 10, seconds=5)
    assert told(NoticeKind.TASK_RELEASED) == ["Work: task #1 stalled (>10min) — auto-releasing"]
    assert Task.objects.get(key="1").owner == ""
    monitor.refresh_from_db()
    assert monitor.is_fast
    assert monitor.is_running


@pytest.mark.row("RUNE-63", level="contract")
def test_a_wake_up_checks_at_once_and_leaves_the_rhythm_alone(world: World) -> None:
    monitor = a_watched(world, 2, fast=True)
    other = a_watched(world, 2, fast=True, project="other")
    tick.tick(world.lab)
    before = Monitor.objects.get(pk=other.pk).version
    world.clock.forward(seconds=2)
    signal(world, monitor, "1")
    tick.tick(world.lab, project="demo")
    assert Task.objects.get(group=monitor.group, key="1").status == TaskStatus.COMPLETED
    monitor.refresh_from_db()
    assert (monitor.checks, monitor.is_running) == (1, True)
    signal(world, monitor, "2")
    tick.tick(world.lab, project="demo")
    monitor.refresh_from_db()
    assert monitor.state == MonitorState.COMPLETE
    assert Monitor.objects.get(pk=other.pk).version == before


def test_what_is_signalled_with_no_monitor_is_taken_over_at_the_wake_up(world: World) -> None:
    monitor = a_watched(world, 2, fast=True)
    Monitor.objects.all().delete()
    signal(world, monitor, "2")
    tick.tick(world.lab, project="demo")
    assert Task.objects.get(key="2").status == TaskStatus.COMPLETED


def test_a_folder_that_cannot_be_read_ends_nothing(world: World) -> None:
    monitor = a_watched(world, 2, fast=True)
    tick.tick(world.lab)
    signal(world, monitor, "1")
    world.signals.broken = "the disk does not answer"
    passes(world, 12, seconds=5)
    monitor.refresh_from_db()
    assert monitor.is_running
    assert monitor.is_fast
    complete(monitor, "1", "2")
    passes(world, 6, seconds=5)
    monitor.refresh_from_db()
    assert monitor.state == MonitorState.COMPLETE


@pytest.mark.row("RUNE-85", level="contract")
def test_a_check_is_the_same_work_for_ten_tasks_and_for_a_thousand(world: World) -> None:
    work = []
    for size, name in ((10, "small"), (1000, "large")):
        monitor = a_watched(world, size, fast=True, name=name, poll_seconds=600)
        tick.tick(world.lab)
        asked, listed = world.signals.asked, world.signals.listed
        under_way = passing(world, Host.objects.get().lease_number)
        with watched() as seen:
            for _ in range(5):
                world.clock.forward(seconds=5)
                monitor_stepper.look(under_way)
        work.append((world.signals.asked - asked, world.signals.listed - listed, len(seen)))
        assert listings(seen) == 0
        monitor.delete()
    assert work[0] == work[1]
    assert work[0][:2] == (5, 2)


def test_checks_of_many_groups_cost_as_many_statements_as_those_of_one(world: World) -> None:
    for number in range(12):
        a_watched(world, 2, fast=True, project=f"p{number}")
    tick.tick(world.lab)
    under_way = passing(world, Host.objects.get().lease_number)
    costs = []
    for _ in range(4):
        world.clock.forward(seconds=5)
        with watched() as seen:
            monitor_stepper.look(under_way)
        costs.append(len(seen))
    assert costs == [4, 6, 4, 4]
    assert set(Monitor.objects.values_list("checks", flat=True)) == {5}
    progress = told(NoticeKind.MONITOR_PROGRESS)
    assert len(progress) == 24
    with watched() as seen:
        monitor_stepper.look(under_way)
    assert len(seen) == 1


def test_checks_that_nobody_made_are_not_made_up_for(world: World) -> None:
    monitor = a_watched(world, 2, fast=True, poll_seconds=600)
    tick.tick(world.lab)
    under_way = passing(world, Host.objects.get().lease_number)
    world.clock.forward(seconds=62)
    for _ in range(2):
        monitor_stepper.look(under_way)
    monitor.refresh_from_db()
    assert (monitor.checks, monitor.check_at) == (2, world.clock() + timedelta(seconds=5))


def test_a_check_that_another_tick_counted_or_that_ended_is_told_once(world: World) -> None:
    monitors_of = [a_watched(world, 2, fast=True, name=name) for name in ("a", "b")]
    tick.tick(world.lab)
    passes(world, 1, seconds=5)
    number = Host.objects.get().lease_number
    world.clock.forward(seconds=5)
    rows = Monitor.objects.select_related("group__project").order_by("pk")
    looks = [
        [
            (row, turn)
            for row in rows
            if (turn := monitor_stepper.look_at(world.lab, row, world.clock()))
        ]
        for _ in range(2)
    ]
    before = len(told(NoticeKind.MONITOR_PROGRESS))
    monitors.stop(world.lab, monitors_of[1], by="anna")
    for checks in looks:
        assert all(turn.events for _, turn in checks)
        monitor_stepper.store_checks(world.lab, checks, number, world.clock())
    assert len(told(NoticeKind.MONITOR_PROGRESS)) == before + 1
    assert list(rows.values_list("checks", flat=True)) == [3, 2]


@pytest.mark.long
@pytest.mark.any_database
@pytest.mark.row("RUNE-63", "RUNE-83", level="contract")
def test_without_events_signals_detect_within_one_check(world: World) -> None:
    """Fifty groups of one task, each done at a moment of its own, and no wake-up arrives."""
    moments = {
        a_watched(world, 1, fast=True, name=f"wave-{n}"): world.clock() + at
        for n, at in enumerate(random_moments(50, 100))
    }
    tick.tick(world.lab)
    for _ in range(105 // OFFER):
        world.clock.forward(seconds=OFFER)
        for monitor, at in moments.items():
            if world.clock() - timedelta(seconds=OFFER) < at <= world.clock():
                signal(world, monitor, "1")
        tick.tick(world.lab)
    ended = dict(Monitor.objects.values_list("pk", "ended_at"))
    delays = [(ended[monitor.pk] - at).total_seconds() for monitor, at in moments.items()]
    assert 2 < sum(delays) / 50 < 3
    assert max(delays) <= 5
