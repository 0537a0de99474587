"""Trackers that have to be waited for: asked side by side, once a project and tick; errors end nothing."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta

import pytest

from runs import tick
from runs.core.states import Outcome
from runs.dispatch import facts
from runs.forges import cadence, fan_out, tracker_cache
from runs.forges.fan_out import Silence
from runs.lifecycle import stop
from runs.models import Notice, Project, Run, Settings, Tick
from runs.watch import auto_dispatch
from tests import make
from tests.fakes import World
from tests.patience import PATIENCE
from tests.world.memory_tracker import MemoryTracker
from trackers.base import Ability, NotUnderstood, RateLimited, Refused, TrackerError, Unreachable

pytestmark = pytest.mark.django_db(transaction=True)

REMOTE = frozenset(Ability) - {Ability.LOCAL}


@pytest.fixture
def far(world: World) -> MemoryTracker:
    """A tracker that is asked over the network."""
    world.tracker = MemoryTracker(REMOTE)
    world.lab = replace(world.lab, tracker_for={"memory": world.tracker}.get)
    return world.tracker


def _project(world: World, name: str) -> Project:
    world.tracker.add_root(name)
    return make.a_project(name)


def _live(world: World, project: Project, key: str = "7", slot: int = 1) -> Run:
    run = make.a_run(project, key, slot=slot)
    world.live(run)
    return run


@pytest.mark.row("LAB-12", level="contract")
def test_each_project_is_asked_once_per_tick_and_only_with_a_live_run(
    world: World, far: MemoryTracker
) -> None:
    one, two = _project(world, "one"), _project(world, "two")
    _project(world, "idle")
    for slot, project in enumerate((one, one, one, two), start=1):
        _live(world, project, str(slot), slot)
    tick.tick(world.lab, force=True)
    assert far.calls["pulls"] == 2
    for run in Run.objects.all():
        assert stop.stop(world.lab, run, "anna")
    tick.tick(world.lab, force=True)
    assert far.calls["pulls"] == 2


@pytest.mark.row("LAB-13", "LAB-35", level="contract")
def test_a_project_whose_tracker_fails_is_left_alone_and_the_others_go_on(
    world: World, far: MemoryTracker
) -> None:
    broken, fine = _project(world, "broken"), _project(world, "fine")
    runs = [_live(world, broken), _live(world, fine, slot=2)]
    for project in (broken, fine):
        far.add_pull(project.name, "afk/7")
    far.fail("broken")
    tick.tick(world.lab, force=True)
    for run in runs:
        run.refresh_from_db()
    assert [run.outcome for run in runs] == ["", Outcome.SUCCEEDED]
    assert "asked again" in Project.objects.get(name="broken").warning
    assert Project.objects.get(name="fine").warning == ""
    far.heal()
    tick.tick(world.lab, force=True)
    runs[0].refresh_from_db()
    assert runs[0].outcome == Outcome.SUCCEEDED
    told = [one.kind for one in Notice.objects.filter(project=broken, kind__startswith="project.")]
    assert sorted(told) == ["project.recovered", "project.warned"]


@pytest.mark.row("LAB-13", "LAB-15", "C-29", level="contract")
@pytest.mark.parametrize(
    "error",
    [
        pytest.param(Unreachable("500"), id="unreachable"),
        pytest.param(Refused("401"), id="refused"),
        pytest.param(NotUnderstood("half a list"), id="not understood"),
        pytest.param(RateLimited("429", make.START + timedelta(hours=1)), id="rate limited"),
        pytest.param(ZeroDivisionError("ours"), id="a mistake in the adapter"),
    ],
)
def test_no_error_of_a_tracker_ends_a_run(
    world: World, far: MemoryTracker, error: TrackerError
) -> None:
    run = _live(world, _project(world, "demo"))
    far.fail("demo", error)
    world.sessions.end(run.session, 1)
    world.clock.forward(hours=5)
    for _ in range(2):
        tick.tick(world.lab, force=True)
    run.refresh_from_db()
    assert run.outcome == ""
    assert Project.objects.get().warning
    assert Notice.objects.filter(kind="project.warned").count() == 1


def test_a_tracker_that_takes_no_more_questions_says_when_it_is_asked_again(
    world: World, far: MemoryTracker
) -> None:
    _live(world, _project(world, "demo"))
    far.fail("demo", RateLimited("limit", make.START + timedelta(hours=2, minutes=5)))
    tick.tick(world.lab, force=True)
    assert "asked again at 14:05 UTC" in Project.objects.get().warning


@pytest.mark.row("LAB-48", level="contract")
def test_a_stopped_run_is_never_asked_about_again(world: World, far: MemoryTracker) -> None:
    run = _live(world, _project(world, "demo"))
    assert stop.stop(world.lab, run, "anna")
    far.add_pull("demo", "afk/7")
    world.clock.forward(hours=2)
    tick.tick(world.lab, force=True)
    run.refresh_from_db()
    assert (run.outcome, far.calls["pulls"]) == (Outcome.STOPPED, 0)


def test_what_the_tracker_knows_counts_beside_the_words_of_the_text(
    world: World, far: MemoryTracker
) -> None:
    project = _project(world, "demo")
    ready = {"labels": {"ready-for-agent"}}
    far.add_issue("demo", "first", **ready)
    far.add_issue("demo", "second", body="## Blocked by\n- #1\n", **ready)
    far.add_issue("demo", "third")
    far.add_issue("demo", "fourth", **ready)
    far.block("demo", "2", "3")
    far.block("demo", "4", "1")
    far.block("demo", "1", "4")
    (queue,) = facts.gather(world.lab, Settings.current(), [project])
    assert [(one.key, one.block.by, one.block.cycle) for one in queue.ready or ()] == [
        ("1", ("4",), ("1", "4", "1")),
        ("2", ("1", "3"), ()),
        ("4", ("1",), ("4", "1", "4")),
    ]
    far.close("demo", "3")
    far.close("demo", "1")
    (queue,) = facts.gather(world.lab, Settings.current(), [project])
    assert [(one.key, one.block.is_free) for one in queue.ready or ()] == [("2", True), ("4", True)]


def test_a_tracker_that_does_not_say_what_issues_wait_for_starts_none(
    world: World, far: MemoryTracker
) -> None:
    class Silent(MemoryTracker):
        def blockers(self, keys):  # type: ignore[no-untyped-def]
            raise Unreachable("It answered 500.")

    world.tracker = Silent(REMOTE)
    world.lab = replace(world.lab, tracker_for={"memory": world.tracker}.get)
    project = _project(world, "demo")
    world.tracker.add_issue("demo", "first", labels={"ready-for-agent"})
    (queue,) = facts.gather(world.lab, Settings.current(), [project])
    assert [one.block.by for one in queue.ready or ()] == [None]


def test_what_comes_while_a_tracker_is_asked_wakes_once_more(
    world: World, far: MemoryTracker
) -> None:
    project = _project(world, "demo")
    (queue,) = facts.gather(world.lab, Settings.current(), [project])
    began = world.clock.now
    hooked = world.clock.forward(seconds=1)
    Project.objects.update(hooked_at=hooked)
    tracker_cache.keep_queues(world.lab, [project], [queue], began)
    assert auto_dispatch.waiting(world.clock.now, Settings.current()).woken == [project.pk]
    Project.objects.update(hooked_at=None)
    cadence.wake(world.lab, project.pk)
    tracker_cache.keep_queues(world.lab, [project], [queue], began)
    again = Project.objects.get()
    assert cadence.is_due(world.lab, Settings.current(), again, is_live=False)
    world.clock.forward(seconds=1)
    tracker_cache.keep_queues(world.lab, [again], [queue], world.clock.now)
    again = Project.objects.get()
    assert not cadence.is_due(world.lab, Settings.current(), again, is_live=False)


@pytest.mark.long
def test_roots_are_asked_side_by_side_and_the_slow_one_is_late_alone(
    world: World, far: MemoryTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    both, never = threading.Barrier(2, timeout=PATIENCE), threading.Event()

    def question(tracker: object, roots: dict[str, int]) -> dict[str, int]:
        (root,) = roots
        if root == "slow":
            never.wait(PATIENCE)
        else:
            both.wait()
        return roots

    monkeypatch.setattr(fan_out, "DEADLINE_SECONDS", 3.0)
    wanted = {("memory", root): 1 for root in ("slow", "one", "two")} | {("unknown", "x"): 1}
    found = fan_out.ask_roots(world.lab, wanted, question)  # type: ignore[arg-type]
    never.set()
    assert found == {
        ("memory", "one"): 1,
        ("memory", "two"): 1,
        ("memory", "slow"): Silence("it gave no answer in time", passes=True),
    }
    assert not Tick.objects.exists()
