"""A tracker with a status of its own has a word in the claim: a start that it does not let pass
gives the branch back, and nothing is counted (C-02)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from runs import sweep, tick
from runs.core.states import Mirror
from runs.dispatch import start_requests
from runs.forges import mirror
from runs.lifecycle import stop
from runs.models import Notice, Project, Run, Settings, StartRequest
from tests import make
from tests.fakes import World
from tests.world.memory_tracker import MemoryTracker
from tests.world.stories import press_start, work
from trackers.base import NotFound, Refused, Unreachable

pytestmark = pytest.mark.django_db(transaction=True)

TAKEN = Refused("7 is in_progress in bd, so it was not claimed.")
LOCKED = Unreachable("bd update failed: database is locked")
BOUNDARIES = ("before the mark", "after the mark")


class Willed(MemoryTracker):
    """Does what a test says when an issue is claimed, before or after it is marked."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None

    def claim(self, root: str, key: str) -> None:
        self.before()
        super().claim(root, key)
        self.after()

    @property
    def marked(self) -> set[str]:
        return self.shelves["demo"].working


@pytest.fixture
def tracker(world: World) -> Willed:
    tracker = world.tracker = Willed()
    world.lab = replace(world.lab, tracker_for={"memory": tracker}.get)
    return tracker


@pytest.fixture
def project(world: World, tracker: Willed) -> Project:
    Settings.current()
    made = make.a_project(mirror=Mirror.COMMENTS, agent=make.an_agent())
    tracker.add_root("demo")
    tracker.add_issue("demo", "Add retries", "7", labels=[made.ready_label])
    return made


def fails(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def die() -> None:
    raise KeyboardInterrupt


def written(world: World) -> None:
    """What was asked of the mirror is done, twice."""
    for run_id in 2 * world.queue.mirrors:
        mirror.carry_out(world.lab, run_id)
    world.queue.mirrors.clear()


def claims(world: World, project: Project) -> frozenset[str]:
    return world.repos.claims(project.repo(world.lab.paths))


def told() -> list[str]:
    return list(
        Notice.objects.filter(text__contains="tracker was not told").values_list("text", flat=True)
    )


@pytest.mark.row("C-02", level="contract")
def test_the_mark_is_there_before_the_agent_and_is_written_once(
    world: World, tracker: Willed, project: Project
) -> None:
    tracker.after = lambda: seen.append(sorted(world.sessions.all))
    seen: list[list[str]] = []

    run = press_start(world, project).run
    written(world)

    assert run is not None and run.state == "working"
    assert (seen, tracker.marked) == ([[]], {"7"})
    assert (tracker.calls["claim"], tracker.calls["set_status"]) == (1, 0)
    assert [one.body for one in tracker.issue("demo", "7").comments] == [
        f"labsite works on this: run {run.pk}, branch `afk/7`."
    ]


@pytest.mark.row("C-02", "MALA-W-28", level="contract")
@pytest.mark.parametrize(
    "error", [TAKEN, NotFound("There is no issue 7."), LOCKED], ids=["taken", "gone", "locked"]
)
def test_a_claim_that_the_tracker_does_not_let_pass_gives_the_branch_back(
    world: World, tracker: Willed, project: Project, error: Exception
) -> None:
    tracker.before = fails(error)

    asked = press_start(world, project)
    written(world)

    assert (asked.answer, str(error) in asked.text) == ("start_failed", True)
    assert claims(world, project) == frozenset()
    assert (world.repos.trees, world.sessions.all) == ({}, {})
    run = Run.objects.get()
    assert (run.outcome, run.worktree, run.claimed_at) == ("failed", "", None)
    project.refresh_from_db()
    assert project.streak == 0
    assert tracker.marked == set() and tracker.issue("demo", "7").comments == ()
    assert "needs-followup" not in tracker.issue("demo", "7").labels

    tracker.before = lambda: None
    assert press_start(world, project).answer == "started"


@pytest.mark.row("C-02", level="contract")
def test_somebody_elses_mark_is_never_taken_off(
    world: World, tracker: Willed, project: Project
) -> None:
    tracker.before = lambda: tracker.marked.add("7")
    assert press_start(world, project).answer == "start_failed"
    written(world)
    assert (tracker.marked, told()) == ({"7"}, [])


@pytest.mark.row("C-02", level="contract")
def test_a_mark_of_ours_goes_when_the_start_fails_later(
    world: World, tracker: Willed, project: Project
) -> None:
    world.trust.broken = "the agent's file is not there"
    assert press_start(world, project).answer == "start_failed"
    assert tracker.marked == {"7"}
    written(world)
    assert (tracker.marked, tracker.issue("demo", "7").comments) == (set(), ())
    assert claims(world, project) == frozenset()


@pytest.mark.row("C-02", level="contract")
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_a_launcher_that_dies_over_the_mark_leaves_no_branch(
    world: World, tracker: Willed, project: Project, boundary: str
) -> None:
    """What was written there is not known then, so it is told and not guessed."""
    setattr(tracker, boundary.split()[0], die)
    start_requests.request(world.lab, project, "anna")
    tick.tick(world.lab, project="demo")
    with pytest.raises(KeyboardInterrupt):
        work(world)
    assert claims(world, project) == {"7"}
    world.dead_processes.add(world.lab.process)

    for _ in range(2):
        tick.tick(world.lab, force=True)
    written(world)

    run = Run.objects.get()
    assert (run.outcome, run.claimed_at) == ("failed", None)
    assert claims(world, project) == frozenset()
    assert tracker.marked == ({"7"} if boundary == BOUNDARIES[1] else set())
    (text,) = told()
    assert "7 may be marked as in progress" in text


@pytest.mark.row("C-02", level="contract")
def test_an_answer_that_is_not_clear_is_told_too(
    world: World, tracker: Willed, project: Project
) -> None:
    tracker.after = fails(Unreachable("bd gave no answer within 30 s."))
    assert press_start(world, project).answer == "start_failed"
    written(world)
    assert claims(world, project) == frozenset()
    assert len(told()) == 1


@pytest.mark.row("C-02", level="contract")
def test_a_stop_while_the_mark_is_made_takes_it_off_and_keeps_the_branch(
    world: World, tracker: Willed, project: Project
) -> None:
    tracker.after = lambda: stop.stop(world.lab, Run.objects.get(), "anna") and None
    press_start(world, project)
    written(world)
    assert Run.objects.get().outcome == "stopped"
    assert claims(world, project) == {"7"}
    assert (tracker.marked, world.sessions.all) == (set(), {})


@pytest.mark.row("C-02", "C-33", level="contract")
def test_what_was_not_written_at_the_end_is_written_by_the_sweep(
    world: World, tracker: Willed, project: Project
) -> None:
    world.trust.broken = "the agent's file is not there"
    press_start(world, project)
    world.queue.mirrors.clear()  # the worker died before it could ask

    sweep.carry_out(world.lab, project.pk)

    written(world)
    assert tracker.marked == set()
    world.clock.forward(seconds=60)
    sweep.carry_out(world.lab, project.pk)
    assert world.queue.mirrors == []


@pytest.mark.row("C-02", "C-33", level="contract")
def test_without_the_setting_the_tracker_has_no_word_in_it(
    world: World, tracker: Willed, project: Project
) -> None:
    Project.objects.update(mirror=Mirror.OFF)
    tracker.before = fails(TAKEN)
    assert press_start(world, project).answer == "started"
    assert StartRequest.objects.get().run.state == "working"
