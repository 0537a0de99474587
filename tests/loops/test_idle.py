"""A loop that stays and has nothing to do: what it asks, whom it waits for, and that no turn is spent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from runs.loops import acts, taking
from runs.loops.taking import State
from runs.models import LoopIssue, StartRequest
from tests.fakes import World
from tests.loops.desk import Desk, desk_of, project_of, topic
from tests.world.stories import look, ready

pytestmark = pytest.mark.django_db(transaction=True)
DONE = topic("LOOP_COMPLETE")


def staying(world: World, **terms: Any) -> Desk:
    """A loop that stays, on issue 7, whose first turn has begun."""
    desk = desk_of(world, project_of(world, is_persistent=True, **terms))
    desk.begin()
    return desk


@pytest.mark.row("RALPH-64", "RALPH-52", level="contract")
def test_an_issue_that_is_done_without_a_commit_is_followed_by_the_next_one_at_once(world):
    desk = staying(world)
    ready(world, "8")
    asking = desk.finish(DONE)
    assert (asking.do, asking.content["seconds"]) == ("wait", 2.0)
    look(world)
    begun = desk.step(1, 1)
    assert (begun.do, begun.content["seconds"]) == ("wait", 0.0)
    order = desk.step(1, 1)
    assert (order.do, order.content["number"]) == ("turn", 2)
    assert "> # Implement: Issue 8 (#8)" in order.content["prompt"]
    assert list(LoopIssue.objects.values_list("issue_key", "end")) == [
        ("7", "completed"),
        ("8", ""),
    ]


@pytest.mark.row("RALPH-52", "RALPH-70", level="contract")
def test_where_there_is_no_next_one_it_idles_without_a_turn_and_asks_once_an_interval(world):
    desk = staying(world, idle_seconds=300)
    desk.finish(DONE)
    for _ in range(6):
        look(world)
        idle = desk.step(1, 1)
        assert (idle.do, idle.content["seconds"]) == ("wait", 300.0)
        assert not StartRequest.objects.filter(takes_for=desk.run).exists()
        world.clock.forward(seconds=300)
        assert desk.step(1, 1).content["seconds"] == 2.0
    assert desk.loop.turns.count() == 1


@pytest.mark.row("RALPH-52", "RALPH-63", "RALPH-81", level="contract")
def test_a_loop_with_a_prompt_of_its_own_idles_until_a_person_writes(world):
    """It takes no issue, so nobody but a person has anything for it."""
    desk = staying(world)
    desk.loop.issues.all().delete()
    asked = world.tracker.calls
    idle = desk.finish(DONE)
    for _ in range(12):
        assert idle.do == "wait"
        world.clock.forward(seconds=idle.content["seconds"])
        idle = desk.step(1, 1)
    assert desk.loop.turns.count() == 1
    assert world.tracker.calls == asked
    assert "until somebody writes" in idle.content["why"]
    acts.guide(world.lab, desk.run, "one more thing", by="anna")
    assert "one more thing" in desk.step(1, 1).content["prompt"]


@pytest.mark.postgres
@pytest.mark.row("C-50", level="contract")
def test_whoever_asks_while_another_one_is_answered_is_told_of_the_issue_that_was_taken(world):
    """The first question is answered, and its issue begun, while the second is on its way."""
    desk = staying(world)
    ready(world, "8")
    ready(world, "9")
    desk.finish(topic("task.note"), DONE)
    bell = world.lab.bell

    class Bell:
        def look(self, slug: str) -> None:
            now = world.clock()
            more = {"taken_at": now, "moved_at": now, "branch": "afk/8"}
            desk.loop.issues.create(position=2, issue_key="8", title="Issue 8", **more)
            world.lab = replace(world.lab, bell=bell)
            look(world)

    world.lab = replace(world.lab, bell=Bell())
    found = taking.next_issue(world.lab, desk.run, "agent", 1)
    assert (found.state, found.issue and found.issue.issue_key) == (State.OPEN, "8")
    assert desk.loop.issues.count() == 2
