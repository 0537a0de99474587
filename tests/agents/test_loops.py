"""The real Claude Code and Codex as the agents of a loop's turns."""

from __future__ import annotations

import pytest

from runs.core.states import Outcome
from runs.models import Loop, LoopTerms
from tests.agents.house import CODEX, PRINT, AgentHouse
from tests.agents.script import Say, Shell


@pytest.mark.parametrize("name", [PRINT, CODEX])
@pytest.mark.row("RALPH-01", "RALPH-13", "C-46", "C-47", level="real")
def test_a_real_agent_works_turn_by_turn_until_it_says_that_it_is_done(
    house: AgentHouse, name: str
):
    """Each turn is a new session of the program, and what it tells of tokens and cost is counted."""
    house.model.script(
        Shell("echo one >> hello.txt && git commit -qam 'feat: one' && labctl emit build.done one"),
        Say("One is done."),
        Shell('echo "one is done" >> "$LAB_SCRATCHPAD" && labctl emit build.done two'),
        Say("Two is done."),
        Shell("labctl emit LOOP_COMPLETE"),
        Say("All is done."),
    )
    profile = house.profile(name)
    project = house.project(profile)
    LoopTerms.objects.create(project=project, is_on=True)
    run = house.until_over(house.start(project))
    loop = Loop.objects.get(run=run)
    turns = list(loop.turns.order_by("number"))
    said = [(one.number, one.exit_code, one.answer[-200:]) for one in turns]
    assert (run.outcome, loop.exit_code, len(turns)) == (Outcome.SUCCEEDED, 0, 3), (
        run.reason,
        said,
        house.told(run),
    )
    assert [one.commits for one in turns] == [1, 0, 0]
    assert [one.events[0]["payload"] for one in turns[:2]] == ["one", "two"]
    assert turns[2].facts["scratchpad"].strip() == "one is done"
    assert all(one.tokens_in and one.tokens_out for one in turns), said
    assert run.tokens_in == sum(one.tokens_in or 0 for one in turns)
    assert all((one.cost is not None) == (name == PRINT) for one in turns)
    assert "Two is done." in turns[1].answer
