"""What is written on a tracker about runs: where it is wanted, once, and nothing depends on it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from runs.core.states import Outcome, RunState
from runs.forges import mirror, mirror_rules
from runs.forges.mirror_rules import Mirrored
from runs.lifecycle import outcomes
from runs.models import Notice, Project, Run
from tests import make
from tests.fakes import World
from tests.world.memory_tracker import MemoryTracker
from trackers.base import Ability, Unreachable

pytestmark = pytest.mark.django_db(transaction=True)

ON = "labsite works on this: run {run}, branch `afk/7`."


def _world(world: World, *without: Ability) -> MemoryTracker:
    world.tracker = MemoryTracker(frozenset(Ability) - {Ability.LOCAL, *without})
    world.lab = replace(world.lab, tracker_for={"memory": world.tracker}.get)
    world.tracker.add_root("demo")
    world.tracker.add_issue("demo", "Add retries", key="7")
    return world.tracker


def _run(**more: Any) -> Run:
    project = make.a_project(**{"mirror": "comments", "working_label": "in-progress", **more})
    return make.a_run(project)


def _labels(tracker: MemoryTracker) -> set[str]:
    return set(tracker.issue("demo", "7").labels)


def _said(tracker: MemoryTracker) -> list[str]:
    return [one.body for one in tracker.issue("demo", "7").comments]


def _end(world: World, run: Run, outcome: Outcome, **more: Any) -> None:
    assert outcomes.record(world.lab, run, outcome, "at /home/anna/secret", seen=more)
    assert world.queue.mirrors == [run.pk]
    mirror.carry_out(world.lab, run.pk)


@pytest.mark.row("C-33", "C-16", "C-02", level="contract")
def test_a_run_is_marked_while_it_works_and_told_of_once(world: World) -> None:
    tracker = _world(world, Ability.STATUS)
    run = _run()
    for _ in range(2):
        mirror.carry_out(world.lab, run.pk)
    assert (_labels(tracker), _said(tracker)) == ({"in-progress"}, [ON.format(run=run.pk)])
    _end(world, run, Outcome.SUCCEEDED, pull_number=9)
    mirror.carry_out(world.lab, run.pk)
    assert (_labels(tracker), len(_said(tracker))) == (set(), 2)
    assert _said(tracker)[1] == f"Run {run.pk} of labsite succeeded: pull request #9."


@pytest.mark.parametrize("is_at_work", [True, False])
def test_a_late_word_of_an_old_run_does_not_undo_that_of_the_one_that_goes_on(
    world: World, is_at_work: bool
) -> None:
    tracker = _world(world, Ability.STATUS)
    before = _run()
    mirror.carry_out(world.lab, before.pk)
    outcomes.record(world.lab, before, Outcome.DIED, "")
    state = RunState.WORKING if is_at_work else RunState.STARTING
    run = make.a_run(before.project, continues=before, state=state)
    mirror.carry_out(world.lab, run.pk)
    mirror.carry_out(world.lab, before.pk)
    assert _labels(tracker) == ({"in-progress"} if is_at_work else {"needs-followup"})


def test_a_success_of_a_run_that_went_on_takes_the_call_for_a_follow_up_away(world: World) -> None:
    tracker = _world(world, Ability.STATUS)
    before = _run()
    _end(world, before, Outcome.DIED)
    assert _labels(tracker) == {"needs-followup"}
    run = make.a_run(before.project, continues=before)
    mirror.carry_out(world.lab, run.pk)
    assert outcomes.record(world.lab, run, Outcome.SUCCEEDED, "", seen={"pull_number": 9})
    mirror.carry_out(world.lab, run.pk)
    assert _labels(tracker) == set()


@pytest.mark.row("C-16", level="contract")
def test_a_failed_run_asks_for_a_follow_up_and_names_no_place_of_this_machine(world: World) -> None:
    tracker = _world(world, Ability.STATUS)
    run = _run()
    mirror.carry_out(world.lab, run.pk)
    _end(world, run, Outcome.DIED, exit_status=3)
    assert _labels(tracker) == {"needs-followup"}
    assert "/home" not in _said(tracker)[1] and "exit status 3" in _said(tracker)[1]


@pytest.mark.row("C-33", level="contract")
@pytest.mark.parametrize(
    ("wanted", "labels", "comments"),
    [
        pytest.param("off", set(), 0, id="off"),
        pytest.param("status", {"in-progress"}, 0, id="status"),
        pytest.param("comments", {"in-progress"}, 1, id="comments"),
    ],
)
def test_each_setting_writes_what_it_says(
    world: World, wanted: str, labels: set[str], comments: int
) -> None:
    tracker = _world(world, Ability.STATUS)
    run = _run(mirror=wanted)
    mirror.carry_out(world.lab, run.pk)
    assert (_labels(tracker), len(_said(tracker))) == (labels, comments)


@pytest.mark.row("C-02", level="contract")
def test_a_tracker_with_a_status_of_its_own_gets_that_in_place_of_a_label(world: World) -> None:
    tracker = _world(world)
    run = _run(mirror="status")
    mirror.carry_out(world.lab, run.pk)
    assert tracker.shelves["demo"].working == {"7"}
    _end(world, run, Outcome.STOPPED)
    assert (tracker.shelves["demo"].working, _labels(tracker)) == (set(), set())


@pytest.mark.row("C-33", level="contract")
def test_a_tracker_that_fails_is_told_of_once_and_holds_nothing_up(world: World) -> None:
    tracker = _world(world, Ability.STATUS)
    run = _run()
    tracker.fail("demo", Unreachable("It answered 500."))
    for _ in range(3):
        mirror.carry_out(world.lab, run.pk)
    assert Notice.objects.filter(text__contains="not told").count() == 1
    tracker.heal()
    _end(world, run, Outcome.TIMED_OUT)
    assert len(_said(tracker)) == 1


def test_a_run_whose_agent_never_started_is_not_told_of(world: World) -> None:
    tracker = _world(world, Ability.STATUS)
    run = _run()
    Run.objects.update(state=RunState.STARTING, started_at=None)
    mirror.carry_out(world.lab, run.pk)
    run.refresh_from_db()
    _end(world, run, Outcome.FAILED)
    assert (_labels(tracker), _said(tracker)) == (set(), [])


def test_without_the_setting_nobody_is_asked(world: World) -> None:
    _world(world)
    run = _run(mirror="off")
    assert outcomes.record(world.lab, run, Outcome.DIED, "gone")
    assert world.queue.mirrors == []
    assert Project.objects.get().mirror == "off"


@pytest.mark.row("C-33", level="pure")
@pytest.mark.parametrize(
    ("outcome", "says", "follows_up"),
    [
        pytest.param("", "works on this", False, id="works"),
        pytest.param(Outcome.SUCCEEDED, "succeeded: commits on `afk/7`", False, id="by commits"),
        pytest.param(Outcome.DIED, "died: its session is gone", True, id="died"),
        pytest.param(Outcome.TIMED_OUT, "timed out", True, id="timed out"),
        pytest.param(Outcome.STOPPED, "was stopped by a person", False, id="stopped"),
        pytest.param(Outcome.LIMIT_REACHED, "ended: limit reached", True, id="limit"),
        pytest.param(Outcome.NO_CHANGE, "ended: no change", False, id="no change"),
    ],
)
def test_the_words_of_each_outcome(outcome: str, says: str, follows_up: bool) -> None:
    assert says in mirror_rules.words(Mirrored(12, "afk/7", outcome))
    assert mirror_rules.needs_follow_up(outcome) is follows_up
