"""Passes of monitors inside ticks, on a clock that is moved: what is listed, told and stored (RUNE)."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, connection

from runs import tick
from runs.core.states import NoticeKind
from runs.groups import monitor_stepper, monitors
from runs.groups.terms import MonitorState, Result, TaskStatus
from runs.models import Checkpoint, Host, Monitor, Notice, Task, Tick
from tests.fakes import World
from tests.groups.monitor_house import (
    OFFER,
    a_watched,
    claim,
    complete,
    listings,
    passes,
    random_moments,
    told,
    watched,
)
from tests.world.stories import passing

pytestmark = pytest.mark.django_db(transaction=True)
CHECKPOINTS = (NoticeKind.MONITOR_CHECKPOINT, NoticeKind.MONITOR_INVESTIGATE)


@pytest.mark.row("RUNE-06", "RUNE-12", "RUNE-13", "RUNE-62", level="contract")
def test_the_first_pass_is_at_once_and_the_next_an_interval_later(world: World) -> None:
    a_watched(world)
    looks = []
    for second in range(0, 95, 5):
        tick.tick(world.lab)
        count = Notice.objects.filter(kind=NoticeKind.MONITOR_PROGRESS).count()
        looks += [second] if count > len(looks) else []
        world.clock.forward(seconds=5)
    assert looks == [0, 30, 60, 90]
    assert told()[:2] == [
        "Work: No signal directory — falling back to TaskList polling (30s interval)",
        "Work progress: 0/4 tasks",
    ]


@pytest.mark.row("RUNE-60", level="contract")
def test_the_spacing_is_the_poll_interval_on_average_however_late_ticks_come(world: World) -> None:
    a_watched(world, poll_seconds=20)
    looks = []
    for second in range(0, 125, 15):
        tick.tick(world.lab)
        count = Notice.objects.filter(kind=NoticeKind.MONITOR_PROGRESS).count()
        looks += [second] if count > len(looks) else []
        world.clock.forward(seconds=15)
    assert looks == [0, 30, 45, 60, 90, 105, 120]


@pytest.mark.row("RUNE-02", "RUNE-18", "RUNE-21", "RUNE-24", "RUNE-33", level="contract")
def test_four_tasks_done_one_a_pass_make_four_checkpoints(world: World) -> None:
    monitor = a_watched(world)
    tick.tick(world.lab)
    for key in "1234":
        claim(monitor, key)
        complete(monitor, key)
        passes(world, 1)
    passes(world, 3)
    monitor.refresh_from_db()
    assert monitor.state == MonitorState.COMPLETE
    assert monitor.result == Result(("1", "2", "3", "4"), (), timed_out=False)
    rows = Checkpoint.objects.order_by("n").values_list("n", "percentage", "decision")
    assert list(rows) == [
        (1, 25, "CONTINUE"),
        (2, 50, "CONTINUE"),
        (3, 75, "CONTINUE"),
        (4, 100, "COMPLETE"),
    ]
    assert [text.splitlines()[1] for text in told(*CHECKPOINTS)] == [
        "Progress: 1/4 (25%)",
        "Progress: 2/4 (50%)",
        "Progress: 3/4 (75%)",
        "Progress: 4/4 (100%)",
    ]
    assert told(NoticeKind.MONITOR_ENDED) == ["Work completed: 4/4"]
    assert len(told(NoticeKind.MONITOR_PROGRESS)) == 5


@pytest.mark.row(
    *("RUNE-34", "RUNE-38", "RUNE-39", "RUNE-40", "RUNE-41", "RUNE-42", "RUNE-43", "C-20"),
    level="contract",
)
def test_a_stalled_task_is_told_given_back_and_done_by_another(world: World) -> None:
    monitor = a_watched(world, 2)
    claim(monitor, "1")
    tick.tick(world.lab)
    passes(world, 10)
    assert not told(*CHECKPOINTS)
    passes(world, 1)
    (point,) = Checkpoint.objects.all()
    assert point.blockers == ["#1 Part 1 (stale >5min)"]
    assert (point.active, point.decision, point.percentage) == (["Part 1"], "INVESTIGATE", 0)
    assert told(NoticeKind.MONITOR_INVESTIGATE)
    passes(world, 9)
    assert len(told(NoticeKind.MONITOR_WARNED)) == 10
    passes(world, 1)
    task = Task.objects.get(key="1")
    assert (task.status, task.owner, task.claimed_at) == (TaskStatus.PENDING, "", None)
    assert told(NoticeKind.TASK_RELEASED) == ["Work: task #1 stalled (>10min) — auto-releasing"]
    assert len(told(NoticeKind.MONITOR_WARNED)) == 10
    claim(monitor, "1", owner="fa-2")
    passes(world, 12)
    assert Checkpoint.objects.count() == 1
    complete(monitor, "1", "2")
    passes(world, 1)
    monitor.refresh_from_db()
    assert monitor.state == MonitorState.COMPLETE


@pytest.mark.row("C-21", level="contract")
def test_a_task_that_follows_a_run_is_warned_of_and_never_given_back(world: World) -> None:
    monitor = a_watched(world, 1)
    claim(monitor, "1", owner="run-7")
    Task.objects.update(issue_key="7")
    passes(world, 30)
    assert Task.objects.get().owner == "run-7"
    assert told(NoticeKind.MONITOR_WARNED)
    assert not told(NoticeKind.TASK_RELEASED)


@pytest.mark.row("RUNE-05", "RUNE-46", "RUNE-47", "RUNE-49", "RUNE-50", level="contract")
def test_a_timeout_brings_partial_results(world: World) -> None:
    monitor = a_watched(world, 3, label="Review", timeout_seconds=60)
    tick.tick(world.lab)
    claim(monitor, "2")
    complete(monitor, "1")
    passes(world, 2)
    monitor.refresh_from_db()
    assert monitor.is_running, "at the limit exactly"
    passes(world, 1)
    monitor.refresh_from_db()
    assert monitor.state == MonitorState.TIMED_OUT
    assert monitor.result == Result(("1",), ("2", "3"), timed_out=True)
    assert told()[-2:] == [
        "Review timeout reached (1 min). Collecting partial results.",
        "Review completed with partial results: 1/3",
    ]
    assert Checkpoint.objects.filter(percentage=100).count() == 0


@pytest.mark.row("RUNE-47", "RUNE-48", level="contract")
def test_what_is_done_before_the_final_listing_counts_and_it_is_timed_out_still(
    world: World,
) -> None:
    monitor = a_watched(world, 2, timeout_seconds=60)
    seen = []

    def meanwhile(execute, sql, params, many, context):  # type: ignore[no-untyped-def]
        answer = execute(sql, params, many, context)
        if sql.startswith("SELECT") and 'FROM "runs_task" ' in sql and not seen:
            seen.append(sql)
            complete(monitor, "1", "2")
        return answer

    world.clock.forward(seconds=61)
    with connection.execute_wrapper(meanwhile):
        tick.tick(world.lab)
    monitor.refresh_from_db()
    assert monitor.result == Result(("1", "2"), (), timed_out=True)


@pytest.mark.row("RUNE-19", level="contract")
def test_who_finishes_after_the_deadline_and_before_the_pass_is_complete(world: World) -> None:
    monitor = a_watched(world, 1, timeout_seconds=10)
    tick.tick(world.lab)
    world.clock.forward(seconds=20)
    complete(monitor, "1")
    passes(world, 1)
    monitor.refresh_from_db()
    assert monitor.state == MonitorState.COMPLETE


@pytest.mark.row("RUNE-17", level="contract")
@pytest.mark.parametrize(("expected", "done"), [(0, 0), (3, 4)], ids=["none at all", "more"])
def test_enough_is_enough(world: World, expected: int, done: int) -> None:
    monitor = a_watched(world, 5)
    Monitor.objects.update(expected=expected)
    complete(monitor, *"12345"[:done])
    tick.tick(world.lab)
    monitor.refresh_from_db()
    assert monitor.result == Result(tuple("12345"[:done]), (), timed_out=False)
    assert [p.n for p in Checkpoint.objects.all()] == [1]


@pytest.mark.row("RUNE-20", level="contract")
def test_an_empty_group_is_complete_at_the_first_pass(world: World) -> None:
    monitor = a_watched(world, 0)
    tick.tick(world.lab)
    monitor.refresh_from_db()
    assert (monitor.state, monitor.expected) == (MonitorState.COMPLETE, 0)
    assert monitor.result == Result((), (), timed_out=False)


@pytest.mark.row("RUNE-11", level="contract")
def test_without_checkpoints_the_result_is_the_same(world: World) -> None:
    results = []
    for name, has in (("with", True), ("without", False)):
        monitor = a_watched(world, 2, project=name, has_checkpoints=has)
        for key in "12":
            tick.tick(world.lab)
            complete(monitor, key)
            world.clock.forward(seconds=30)
        tick.tick(world.lab)
        monitor.refresh_from_db()
        results.append((monitor.result, monitor.all_checkpoints.count()))
    assert results[0][0] == results[1][0] is not None
    assert [count for _, count in results] == [2, 0]


@pytest.mark.any_database
@pytest.mark.row("RUNE-08", "RUNE-09", level="contract")
def test_without_timeout_and_release_it_watches_and_warns_for_two_days(world: World) -> None:
    monitor = a_watched(world, 1, timeout_seconds=None, release_seconds=None)
    claim(monitor, "1")
    passes(world, 48, seconds=3600)
    monitor.refresh_from_db()
    assert monitor.is_running
    task = Task.objects.get()
    assert (task.status, task.owner) == (TaskStatus.IN_PROGRESS, "fa-1")
    assert set(told(NoticeKind.MONITOR_WARNED)) == {"Work: task #1 may be stalled (>5min)"}
    assert len(told(NoticeKind.MONITOR_WARNED)) == 47


@pytest.mark.row("RUNE-12", "RUNE-59", "RUNE-84", level="contract")
@pytest.mark.parametrize("size", [10, 1000])
def test_a_pass_lists_the_tasks_once_and_asks_nothing_else(world: World, size: int) -> None:
    a_watched(world, size)
    for _ in range(3):
        tick.tick(world.lab)
        world.clock.forward(seconds=30)
    under_way = passing(world, Host.objects.get().lease_number)
    with watched() as seen:
        monitor_stepper.look(under_way)
    reads = [q["sql"] for q in seen.captured_queries if q["sql"].startswith("SELECT")]
    assert listings(seen) == 1
    assert len(reads) == 2, reads
    assert len(seen) == 6, "with the transaction's two words, the monitor and what is told"


def test_a_tick_for_monitors_alone_asks_neither_tmux_nor_a_forge_and_leaves_no_row(
    world: World,
) -> None:
    a_watched(world)
    tick.tick(world.lab)
    rows, calls = Tick.objects.count(), world.sessions.calls
    Monitor.objects.update(look_at=world.clock(), pass_at=world.clock())
    assert tick.tick(world.lab).did
    assert len(told(NoticeKind.MONITOR_PROGRESS)) == 2
    assert (Tick.objects.count(), world.sessions.calls) == (rows, calls)


def test_an_end_is_looked_at_no_more(world: World) -> None:
    monitor = a_watched(world)
    monitors.stop(world.lab, monitor, by="anna")
    before = told()
    passes(world, 5)
    assert told() == before


@pytest.mark.long
@pytest.mark.any_database
@pytest.mark.row("RUNE-83", level="contract")
def test_polling_detects_in_half_an_interval_on_average(world: World) -> None:
    """Fifty completions at moments of their own; ticks are offered every five seconds."""
    monitor = a_watched(world, 50, has_checkpoints=False)
    tick.tick(world.lab)
    moments = sorted(world.clock() + at for at in random_moments(50, 1500))
    delays: list[float] = []
    for _ in range(1560 // OFFER):
        world.clock.forward(seconds=OFFER)
        done = sum(at <= world.clock() for at in moments)
        complete(monitor, *map(str, range(1, done + 1)))
        tick.tick(world.lab)
        said = f"Work progress: {done}/50 tasks"
        if Notice.objects.filter(text=said).exists():
            delays += [(world.clock() - at).total_seconds() for at in moments[len(delays) : done]]
    assert len(delays) == 50
    assert 12 < sum(delays) / 50 < 18
    assert max(delays) <= 30 + OFFER


@pytest.mark.postgres
@pytest.mark.every_case
@pytest.mark.row("RUNE-32", level="contract")
@pytest.mark.parametrize("decision", ["ADJUST", "ESCALATE", ""])
def test_the_database_knows_three_decisions(world: World, decision: str) -> None:
    monitor = a_watched(world)
    fields = {"at": world.clock(), "label": "Work", "completed": 0, "total": 4, "percentage": 0}
    with pytest.raises(IntegrityError):
        Checkpoint.objects.create(monitor=monitor, n=1, decision=decision, **fields)
