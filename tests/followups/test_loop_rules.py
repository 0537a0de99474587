"""When an ended run may be taken up as a loop of fresh turns, and why not."""

from __future__ import annotations

import pytest

from runs.followups import loop_rules
from runs.followups.loop_rules import CAN_RESUME, IS_GATED, NO_AGENT, WAS_LOOP, TakeUp


@pytest.mark.parametrize(
    ("found", "is_shown", "why_not"),
    [
        pytest.param(TakeUp(agent="A"), True, "", id="no session to go on in"),
        pytest.param(TakeUp(), True, NO_AGENT, id="no agent that ends by itself"),
        pytest.param(TakeUp(agent="A", can_resume=True), False, CAN_RESUME, id="a session"),
        pytest.param(
            TakeUp(agent="A", can_resume=True, has_failed=True), True, "", id="tried in vain"
        ),
        pytest.param(
            TakeUp(can_resume=True, has_failed=True), True, NO_AGENT, id="in vain, no agent"
        ),
        pytest.param(TakeUp(can_resume=True), False, CAN_RESUME, id="a session, no agent"),
        pytest.param(TakeUp(agent="A", is_loop=True), False, WAS_LOOP, id="a loop"),
        pytest.param(TakeUp(agent="A", is_gated=True), False, IS_GATED, id="gates"),
        pytest.param(
            TakeUp(agent="A", is_loop_anyway=True, is_gated=True), False, IS_GATED, id="gated loops"
        ),
        pytest.param(
            TakeUp(agent="A", is_loop_anyway=True, can_resume=True), False, "", id="one unasked"
        ),
        pytest.param(
            TakeUp(agent="A", is_loop_anyway=True, is_loop=True), False, "", id="a loop goes on"
        ),
        pytest.param(TakeUp(is_loop_anyway=True), False, NO_AGENT, id="loops without an agent"),
    ],
)
def test_when_it_is_offered_and_why_not(found: TakeUp, is_shown: bool, why_not: str) -> None:
    assert (loop_rules.is_shown(found), loop_rules.why_not(found)) == (is_shown, why_not)
