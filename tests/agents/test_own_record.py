"""The real programs' own records are found where they keep them, those of their agents too."""

from __future__ import annotations

import pytest

from runs.transcript import own_record
from runs.transcript.record_rules import Form
from tests.agents.house import CLAUDE, CODEX, PRINT
from tests.agents.script import Say, Shell, Tool
from tests.house.product import until

PART = {"description": "part", "prompt": "PARTWORK", "subagent_type": "general-purpose"}


def _read(house, run):  # type: ignore[no-untyped-def]
    lab = house.real.lab
    found = own_record.find(lab, run)
    return [(one, lab.records.read(one, 0, 10**6).data) for one in found]


@pytest.mark.parametrize("name", [CLAUDE, PRINT])
def test_claude_code_keeps_one_record_and_one_of_its_agent(house, name):
    house.model.script(Tool("Agent", PART), Shell("echo whole"), Say("All is done."))
    house.model.script(Shell("echo part"), Say("The part is done."), word="PARTWORK")
    run = house.until(
        house.start(house.project(house.profile(name))),
        lambda run: run.turn_ended_at or run.outcome,
    )
    # It says that its turn has ended before it has written the last of it down.
    until(lambda: b"All is done." in _read(house, run)[0][1])
    (main, words), (agent, part) = _read(house, run)
    assert b"The part is done." in part
    assert main.session == agent.session == run.agent_session
    assert agent.call
    assert agent.call.encode() in words
    assert not main.is_printed


def test_codex_keeps_one_record(house):
    house.model.script(Shell("echo whole"), Say("All is done."))
    run = house.until_over(house.start(house.project(house.profile(CODEX))))
    [(record, words)] = _read(house, run)
    assert record.form == Form.CODEX
    assert b"All is done." in words
    assert b'"exit_code":0' in words
