"""Check-ins: how a loop stands, told at an interval."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from runs.core.states import NoticeKind
from runs.loops import rules
from runs.loops.rules import CheckIn
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


@pytest.mark.row("RALPH-78", level="pure")
def test_a_check_in_says_where_the_loop_stands():
    found = CheckIn(4, timedelta(minutes=21), "builder", 2, 5, Decimal("1.204"))
    assert found.words == "turn 4 after 21 min (builder); 2 tasks open, 5 closed; $1.20 so far"
    assert not rules.is_check_in_due(datetime(2026, 1, 1, tzinfo=UTC), None, timedelta(seconds=1))
