"""Numbers of the real programs while they stay open: from the records that they keep for themselves."""

from __future__ import annotations

import pytest

from tests.agents.house import CODEX, hold
from tests.agents.script import Say, Shell, Tool


def test_interactive_claude_code_shows_its_numbers_and_those_of_its_agent_while_it_works(house):
    give = {"description": "part", "prompt": "PARTWORK", "subagent_type": "general-purpose"}
    house.model.script(Tool("Agent", give), hold(), Say("Done."))
    house.model.script(Shell("echo part"), Say("The part is done."), word="PARTWORK")
    run = house.start(house.project(house.profile()))
    run = house.until(run, lambda run: (run.tokens_in or 0) >= 4 * 120)
    assert (run.outcome, run.turn_ended_at) == ("", None), house.told(run)
    assert (run.turns, run.tokens_in, run.tokens_cached, run.tokens_out) == (2, 480, 80, 40)
    assert (run.context_tokens, run.context_window, run.cost_usd) == (120, None, None)
    assert run.agent_model


@pytest.mark.parametrize("mode", ["interactive", "one_shot"])
def test_codex_shows_its_numbers_while_it_works(house, mode):
    house.model.script(Shell("echo 1"), Shell("echo 2"), hold(), Say("Done."))
    profile = house.profile(CODEX)
    project = house.project(profile)
    if mode == "interactive":
        house.trust_codex(project)
        profile.mode, profile.output = mode, ""
        profile.argv = ["codex", "--dangerously-bypass-approvals-and-sandbox", "{prompt}"]
        profile.save()
    run = house.start(project)
    run = house.until(run, lambda run: (run.tokens_in or 0) >= 2 * 120)
    assert run.outcome == "", house.told(run)
    assert (run.turns, run.tokens_in, run.tokens_cached, run.tokens_out) == (1, 240, 40, 20)
    assert run.context_tokens == 120
    assert run.context_window
    assert run.cost_usd is None
