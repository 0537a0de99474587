"""A runner that a signal ends between two turns ends its loop, and no further turn is begun for it."""

from __future__ import annotations

import pytest

from runs.core.states import Outcome
from runs.models import Loop
from tests.fakes import World
from tests.loops.desk import desk_of, project_of, topic

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.row("RALPH-22", level="contract")
@pytest.mark.parametrize("cooldown", [0, 60], ids=["a turn was ordered", "in a pause"])
def test_an_interrupt_between_turns_ends_the_loop_with_130(world: World, cooldown: int) -> None:
    desk = desk_of(world, project_of(world))
    desk.begin()
    Loop.objects.update(terms={**desk.loop.terms, "cooldown_seconds": cooldown})
    before = desk.finish(topic("build.done"))
    assert before.do == ("wait" if cooldown else "turn")

    last = desk.step(1 if cooldown else 2, asks="interrupted")

    assert (last.do, last.content["code"]) == ("end", 130)
    desk.run.refresh_from_db()
    assert desk.run.outcome == Outcome.INTERRUPTED
    assert (desk.loop.end, desk.loop.exit_code) == ("interrupted", 130)
    assert desk.loop.turns.count() == (1 if cooldown else 2)
    assert not desk.loop.turns.filter(ended_at=None).exists()
