"""Check-ins: how a loop stands, told at an interval."""

from __future__ import annotations

import pytest

from runs.core.states import NoticeKind
from runs.models import Notice
from tests.fakes import World
from tests.loops.desk import Desk, desk_of, project_of, topic

DONE = topic("LOOP_COMPLETE")


def desk(world: World, **terms: object) -> Desk:
    """A loop with these terms whose first turn was ordered."""
    made = desk_of(world, project_of(world, **terms))
    made.begin()
    return made


def told(kind: NoticeKind) -> list[str]:
    return list(Notice.objects.filter(kind=kind).order_by("pk").values_list("text", flat=True))


@pytest.mark.django_db(transaction=True)
@pytest.mark.row("RALPH-77", "RALPH-78", "RALPH-76", level="contract")
def test_a_check_in_is_told_at_the_first_end_of_a_turn_after_each_interval(world):
    loop = desk(world, check_in_seconds=300, max_turns=None)
    for number in range(10):
        world.clock.forward(seconds=130)
        loop.finish(topic("build.done", str(number)))
    said = told(NoticeKind.LOOP_CHECK_IN)
    assert len(said) == 3
    assert said[0] == "turn 3 after 6 min (coordinator); 0 tasks open, 0 closed; cost unknown"


@pytest.mark.django_db(transaction=True)
def test_without_an_interval_nobody_is_told(world):
    loop = desk(world)
    world.clock.forward(hours=1)
    loop.finish(topic("build.done"))
    assert told(NoticeKind.LOOP_CHECK_IN) == []
