"""Composite workflows on fakes: phases in order, nets, the ceiling, holds (RUNE-57, RUNE-58, C-25)."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, transaction

from runs import clock, tick
from runs.core import lease
from runs.groups import monitors
from runs.groups.terms import MonitorState, TaskStatus
from runs.models import Monitor, Notice, Task, TaskGroup, Workflow, WorkflowPhase
from runs.workflows import acts as workflows
from runs.workflows import stepper as composing
from runs.workflows.acts import NewPhase, WorkflowRefused
from tests import make
from tests.fakes import World
from tests.world.stories import passing

pytestmark = pytest.mark.django_db


class Arc:
    """A workflow over one group a phase, of two tasks each, whose monitors end when told."""

    def __init__(self, world: World, *presets: str, **more: Any) -> None:
        self.world = world
        self.project = make.a_project()
        self.groups = [
            make.a_group(self.project, f"{name}-{n}", tasks=2, preset=name)
            for n, name in enumerate(presets)
        ]
        names = [
            name if presets.count(name) == 1 else f"{name} {n}" for n, name in enumerate(presets)
        ]
        phases = [
            NewPhase(name, group.name) for name, group in zip(names, self.groups, strict=True)
        ]
        self.row = workflows.start(world.lab, self.project, "release", phases, by="anna", **more)
        self.tick()

    def tick(self) -> Arc:
        under_way = passing(self.world)
        composing.look(under_way)
        lease.release(self.world.lab, under_way.number)
        assert under_way.errors == []
        self.row.refresh_from_db()
        return self

    def wait(self, minutes: float) -> Arc:
        self.world.clock.forward(minutes=minutes)
        return self.tick()

    @property
    def monitor(self) -> Monitor:
        return Monitor.objects.running().get()

    @property
    def states(self) -> list[str]:
        return list(self.row.phases.order_by("number").values_list("state", flat=True))

    def phase(self, number: int) -> WorkflowPhase:
        return self.row.phases.get(number=number)

    def ends(self, state: MonitorState = MonitorState.COMPLETE, **more: Any) -> Arc:
        """The monitor comes to its end, as a pass would store it."""
        gone = {"look_at": None, "pass_at": None, "ended_at": self.world.clock.now}
        if state is MonitorState.COMPLETE:
            more = {"completed": ["1", "2"], **more}
        Monitor.objects.filter(pk=self.monitor.pk).update(state=state, **gone, **more)
        return self.tick()

    def told(self) -> list[str]:
        rows = Notice.objects.filter(kind__startswith="workflow.").order_by("pk")
        return [
            text.removeprefix(f"workflow {self.row.pk} (release)")
            for text in rows.values_list("text", flat=True)
        ]


@pytest.mark.row("RUNE-57", level="contract")
def test_each_phase_has_one_monitor_with_its_label_and_its_own_timeout(world: World) -> None:
    arc = Arc(world, "work", "review", "plan")
    seen = []
    for _ in range(3):
        one = arc.monitor
        options = one.options
        seen.append((one.label, one.timeout_seconds))
        assert (one.preset, one.poll_seconds, one.stale_seconds) == ("arc", 30, 300)
        assert options.release is None
        assert not options.has_checkpoints
        arc.ends()
    assert seen == [("Arc: work", 1800), ("Arc: review", 600), ("Arc: plan", None)]
    assert [phase.net_seconds for phase in arc.row.phases.all()] == [2100, 900, 900]


@pytest.mark.row("RUNE-58", level="contract")
def test_phases_follow_each_other_to_the_end(world: World) -> None:
    arc = Arc(world, "work", "mend")
    assert arc.states == ["running", "waiting"]
    assert arc.tick().states == ["running", "waiting"]
    assert arc.ends().states == ["complete", "running"]
    assert arc.monitor.group == arc.groups[1]
    arc.ends()
    assert (arc.row.state, arc.row.note, arc.states) == (
        "complete",
        "every phase is complete",
        ["complete", "complete"],
    )
    assert arc.row.ended_at == world.clock.now
    assert arc.told() == [
        " was started: work, mend",
        ": phase work began",
        ": phase work is complete, 2/2",
        ": phase mend began",
        ": phase mend is complete, 2/2",
        " ended complete: every phase is complete",
    ]


def test_starting_one_wakes_the_worker(
    world: World, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        Arc(world, "work")
    assert "demo" in world.bell.looks


@pytest.mark.row("RUNE-58", level="contract")
def test_a_phase_that_timed_out_gives_partial_results_and_the_next_begins(world: World) -> None:
    arc = Arc(world, "work", "mend").wait(31)
    late = {"completed": ["1"], "incomplete": ["2"], "timed_out": True}
    arc.ends(MonitorState.TIMED_OUT, **late)
    first = arc.phase(1)
    assert (first.state, first.completed, first.incomplete) == ("timed out", ["1"], ["2"])
    assert arc.states == ["timed out", "running"]
    arc.ends()
    assert (arc.row.state, arc.row.note) == ("complete", "with partial results of work")
    assert ": phase work gave partial results, 1/2" in arc.told()


@pytest.mark.row("RUNE-58", level="contract")
def test_at_the_net_its_monitor_is_stopped_and_what_there_is_is_taken(world: World) -> None:
    arc = Arc(world, "work", "mend")
    Task.objects.filter(group=arc.groups[0], key="1").update(
        status=TaskStatus.COMPLETED, completed_at=world.clock.now
    )
    assert arc.wait(34.9).states == ["running", "waiting"]
    assert arc.wait(0.1).states == ["timed out", "running"]
    first = arc.phase(1)
    assert (first.completed, first.incomplete) == (["1"], ["2"])
    assert first.note == "its safety net of 35 min was reached"
    assert first.monitor.state == "stopped"


@pytest.mark.row("RUNE-58", level="contract")
def test_phases_that_end_in_time_but_sum_to_91_minutes_are_stopped_at_90(world: World) -> None:
    arc = Arc(world, "work", "work", "work", "mend")
    for _ in range(2):
        arc.wait(30).ends()
    assert arc.wait(29.9).row.state == "running"
    arc.wait(0.1)
    assert (arc.row.state, arc.row.note) == ("timed out", "the ceiling of 90 min was reached")
    assert arc.states == ["complete", "complete", "timed out", "waiting"]
    assert arc.phase(3).incomplete == ["1", "2"]
    assert not Monitor.objects.running().exists()
    assert arc.wait(60).row.state == "timed out"


@pytest.mark.row("C-25", level="contract")
def test_an_error_holds_it_until_a_person_restarts_that_phase(world: World) -> None:
    arc = Arc(world, "work", "mend").wait(10)
    arc.ends(MonitorState.ERROR, error="the disk is gone")
    assert (arc.row.state, arc.row.note) == ("held", "phase work failed: the disk is gone")
    assert arc.wait(300).states == ["error", "waiting"]
    assert not Monitor.objects.running().exists()

    assert workflows.restart(world.lab, arc.row, arc.phase(1), by="bert")
    assert not workflows.restart(world.lab, arc.row, arc.phase(1), by="bert")
    assert arc.tick().states == ["running", "waiting"]
    # It was held for five hours, which used up none of its 90 minutes.
    assert arc.wait(30).ends().states == ["complete", "running"]
    assert arc.wait(14).row.state == "running"
    assert Notice.objects.filter(kind="workflow.held").count() == 1
    assert Notice.objects.get(by="bert").text.endswith("goes on: phase work begins again")


@pytest.mark.row("C-25", level="contract")
def test_a_stopped_monitor_a_deleted_and_a_closed_group_hold_it(world: World) -> None:
    arc = Arc(world, "work", "mend", "mend")
    monitors.stop(world.lab, arc.monitor, by="bert")
    arc.tick()
    said = "phase work was stopped: its monitor was stopped by bert"
    assert (arc.row.state, arc.row.note) == ("held", said)

    workflows.restart(world.lab, arc.row, arc.phase(1), by="anna")
    arc.tick().ends()
    arc.groups[1].delete()
    arc.tick()
    assert arc.row.note == "phase mend 1 failed: the group mend-1 is gone, and its monitor with it"
    with pytest.raises(WorkflowRefused, match="mend-1 is closed or gone"):
        workflows.restart(world.lab, arc.row, arc.phase(2), by="anna")
    assert arc.tick().states == ["complete", "error", "waiting"]


@pytest.mark.row("C-25", level="contract")
def test_a_group_that_cannot_be_watched_holds_it_and_starts_nothing(world: World) -> None:
    arc = Arc(world, "work", "mend")
    TaskGroup.objects.filter(pk=arc.groups[1].pk).update(closed_at=world.clock.now)
    arc.ends()
    assert (arc.row.state, arc.states) == ("held", ["complete", "error"])
    assert "closed or gone" in arc.row.note
    assert Monitor.objects.count() == 1


def test_a_person_stops_it_and_the_monitor_of_its_phase(world: World) -> None:
    arc = Arc(world, "work", "mend")
    assert workflows.stop(world.lab, arc.row, by="bert")
    assert not workflows.stop(world.lab, arc.row, by="bert")
    assert (arc.row.state, arc.states) == ("stopped", ["stopped", "waiting"])
    assert not Monitor.objects.running().exists()
    assert arc.wait(1).row.state == "stopped"


def test_of_two_that_read_the_same_workflow_one_begins_the_phase(world: World) -> None:
    arc = Arc(world, "work", "mend")
    gone = {"look_at": None, "pass_at": None, "ended_at": world.clock.now}
    Monitor.objects.update(state="complete", completed=["1", "2"], **gone)
    number = lease.acquire(world.lab)
    assert number is not None
    first, second = (next(iter(composing._read(Workflow.objects.all()))) for _ in range(2))
    assert [len(one.phases.all()) for one in (first, second)] == [2, 2]
    composing.advance(world.lab, first, number)
    composing.advance(world.lab, second, number)
    assert Monitor.objects.running().count() == 1
    assert arc.told().count(": phase mend began") == 1
    assert arc.told().count(": phase work is complete, 2/2") == 1


def test_who_is_second_to_begin_a_phase_does_not_hold_the_workflow(world: World) -> None:
    project = make.a_project()
    make.a_group(project, "wave", tasks=1)
    workflows.start(world.lab, project, "release", [NewPhase("work", "wave")], by="anna")
    number = lease.acquire(world.lab)
    assert number is not None
    first, second = (next(iter(composing._read(Workflow.objects.all()))) for _ in range(2))
    assert [len(one.phases.all()) for one in (first, second)] == [1, 1]
    composing.advance(world.lab, first, number)
    composing.advance(world.lab, second, number)
    row = Workflow.objects.get()
    assert (row.state, row.phases.get().state) == ("running", "running")
    assert Monitor.objects.count() == 1


def test_a_tick_that_lost_its_lease_steps_nothing(world: World) -> None:
    arc = Arc(world, "work")
    Monitor.objects.update(
        state="complete", look_at=None, pass_at=None, ended_at=world.clock.now, completed=["1"]
    )
    with pytest.raises(lease.Lost):
        composing.look(passing(world, 999))
    composing.advance(world.lab, Workflow.objects.get(), 999)
    assert arc.states == ["running"]


def test_what_was_read_is_asked_again_when_the_monitor_ended_meanwhile(world: World) -> None:
    arc = Arc(world, "work", "mend")
    world.clock.forward(minutes=36)
    number = lease.acquire(world.lab)
    assert number is not None
    row = next(iter(composing._read(Workflow.objects.all())))
    gone = {"look_at": None, "pass_at": None, "ended_at": world.clock.now}
    Monitor.objects.update(state="complete", completed=["1", "2"], **gone)
    composing.advance(world.lab, row, number)
    assert arc.states == ["complete", "running"]


@pytest.mark.row("X-15", level="contract")
def test_setting_the_clock_ends_no_workflow(world: World) -> None:
    arc = Arc(world, "work")
    heed(world)
    world.clock.jump(hours=5)
    heed(world)
    assert arc.tick().row.state == "running"
    assert arc.wait(34).states == ["running"]
    assert arc.wait(1).states == ["timed out"]


@pytest.mark.row("X-15", level="contract")
def test_what_was_read_before_the_clock_was_set_ends_nothing(world: World) -> None:
    arc = Arc(world, "work")
    heed(world)
    stale = next(iter(composing._read(Workflow.objects.all())))
    assert len(stale.phases.all()) == 1
    world.clock.jump(hours=5)
    heed(world)
    number = lease.acquire(world.lab)
    assert number is not None
    composing.advance(world.lab, stale, number)
    arc.row.refresh_from_db()
    assert (arc.row.state, arc.states) == ("running", ["running"])


def heed(world: World) -> None:
    host = lease.take(world.lab)
    assert host is not None
    clock.heed(world.lab, host)
    lease.release(world.lab, host.lease_number)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param({"name": " "}, "name", id="no name"),
        pytest.param({"name": "x" * 81}, "name", id="a long name"),
        pytest.param({"phases": []}, "phases", id="no phases"),
        pytest.param({"ceiling_seconds": 0}, "ceiling_seconds", id="no ceiling"),
        pytest.param({"phase": {"name": ""}}, "phases.1.name", id="a phase without a name"),
        pytest.param({"twice": True}, "phases.2.name", id="one name twice"),
        pytest.param(
            {"phase": {"timeout_seconds": 0}}, "phases.1.timeout_seconds", id="no timeout"
        ),
        pytest.param(
            {"phase": {"net_seconds": 1799}}, "phases.1.net_seconds", id="net below the timeout"
        ),
        pytest.param({"closed": True}, "phases.1.group", id="a closed group"),
        pytest.param({"elsewhere": True}, "phases.1.group", id="a group of another project"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_field(world: World, change, field) -> None:
    project = make.a_project()
    home = make.a_project("other") if change.get("elsewhere") else project
    group = make.a_group(home, tasks=1)
    if change.get("closed"):
        TaskGroup.objects.update(closed_at=world.clock.now)
    phase = NewPhase(**{"name": "work", "group": group.name, **change.get("phase", {})})
    phases = change.get("phases", [phase] * (2 if change.get("twice") else 1))
    more = {k: v for k, v in change.items() if k == "ceiling_seconds"}
    with pytest.raises(WorkflowRefused) as refused:
        workflows.start(
            world.lab, project, change.get("name", "release"), phases, by="anna", **more
        )
    assert list(refused.value.fields) == [field]
    assert not Workflow.objects.exists()
    assert not Notice.objects.exists()


@pytest.mark.postgres
@pytest.mark.every_case
@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"state": "complete"}, id="ended without a time"),
        pytest.param({"state": "held"}, id="held without a time"),
        pytest.param({"look_at": None}, id="running and never looked at"),
        pytest.param({"ceiling_seconds": 0}, id="no ceiling"),
    ],
)
def test_the_database_refuses_nonsense(world: World, change: dict[str, object]) -> None:
    Arc(world, "work")
    with pytest.raises(IntegrityError), transaction.atomic():
        Workflow.objects.update(**change)


def test_looking_for_workflows_is_one_query_while_there_is_none(
    world: World, django_assert_num_queries: Any
) -> None:
    under_way = passing(world, 1)
    with django_assert_num_queries(1):
        composing.look(under_way)


@pytest.mark.row("RUNE-57", "RUNE-58", "RUNE-59", level="contract")
def test_ticks_alone_lead_a_workflow_through_its_phases(world: World) -> None:
    project = make.a_project()
    work, review = (make.a_group(project, name, tasks=2) for name in ("wave", "findings"))
    phases = [NewPhase("work", "wave"), NewPhase("review", "findings", timeout_seconds=60)]
    row = workflows.start(world.lab, project, "release", phases, by="anna")
    done = {"status": TaskStatus.COMPLETED, "completed_at": world.clock.now}
    tick.tick(world.lab)
    world.clock.forward(seconds=1)
    tick.tick(world.lab)
    assert Notice.objects.filter(text="Arc: work progress: 0/2 tasks").exists()
    Task.objects.filter(group=work).update(**done)
    Task.objects.filter(group=review, key="1").update(**done)
    for _ in range(5):
        world.clock.forward(seconds=30)
        tick.tick(world.lab)
        world.clock.forward(seconds=1)
        tick.tick(world.lab)
    row.refresh_from_db()
    assert (row.state, row.note) == ("complete", "with partial results of review")
    ends = Notice.objects.filter(kind="monitor.ended").order_by("pk").values_list("text", flat=True)
    assert list(ends) == [
        "Arc: work completed: 2/2",
        "Arc: review completed with partial results: 1/2",
    ]
