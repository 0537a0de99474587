"""How accepted work stands towards its run level: every state, and what a person is told."""

from __future__ import annotations

from typing import Any

import pytest

from runs.core.states import ValidationState
from runs.gates.level_rules import Level, LevelFacts, Standing, level

ABORTED = "3 was aborted by anna"


def of(**more: Any) -> Level:
    return level(LevelFacts("7", "afk/7", more.pop("commit", "4f2c9e1d" * 5), "main", **more))


@pytest.mark.row("C-54", "MALA-V-54", level="pure")
@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"state": ValidationState.RUNNING}, Standing.COMES),
        ({"state": ValidationState.RUNNING, "ended": ABORTED}, Standing.COMES),
        ({"is_session_open": True}, Standing.COMES),
        ({"state": ValidationState.CANCELLED, "is_session_open": True}, Standing.COMES),
        ({"state": ValidationState.FAILED}, Standing.FAILED),
        ({"state": ValidationState.FAILED, "is_session_open": True}, Standing.FAILED),
        (
            {"state": ValidationState.FAILED, "ended": "3 ended (validation failed)"},
            Standing.FAILED,
        ),
        ({"ended": ABORTED}, Standing.OVER),
        ({"state": ValidationState.CANCELLED, "ended": ABORTED}, Standing.OVER),
        ({"state": ValidationState.NOTHING}, Standing.OVER),
        ({"state": ValidationState.CANCELLED}, Standing.OVER),
        ({}, Standing.OVER),
        ({"state": ValidationState.PASSED}, Standing.LEFT_OUT),
        ({"state": ValidationState.PASSED, "ended": "3 ended (queue empty)"}, Standing.LEFT_OUT),
    ],
)
def test_where_it_stands(facts: dict[str, Any], expected: Standing) -> None:
    found = of(**facts)
    assert found.standing is expected
    assert found.standing.needs_somebody == (expected is not Standing.COMES)
    assert bool(found.why) == bool(found.what) == found.standing.needs_somebody


KEPT = "Branch afk/7 and commit 4f2c9e1 are kept. Its issue stays open."
DO = "Validate it again on top of main, or close the issue yourself."


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (
            {"ended": ABORTED},
            f"Its watch session 3 was aborted by anna before a run level was over. {KEPT} {DO}",
        ),
        ({"state": ValidationState.CANCELLED}, f"Its run level was called off. {KEPT} {DO}"),
        ({}, f"Its run level never began. {KEPT} {DO}"),
        (
            {"state": ValidationState.NOTHING},
            f"The gates of its project were turned off before the run level. {KEPT} {DO}",
        ),
        (
            {"state": ValidationState.PASSED, "left_out": "its branch afk/7 is gone"},
            f"Its branch afk/7 is gone. {KEPT} {DO}",
        ),
        (
            {"state": ValidationState.FAILED, "reason": "test failed", "follow_up": "12"},
            f"Test failed. {KEPT} Issue 12 was made of it. {DO}",
        ),
        ({"state": ValidationState.FAILED}, f"{KEPT} {DO}"),
        (
            {"state": ValidationState.PASSED},
            f"The run level passed without its accepted commit. {KEPT} {DO}",
        ),
        (
            {"commit": None, "ended": ABORTED, "follow_up": "12"},
            "Its watch session 3 was aborted by anna before a run level was over. "
            f"Its issue stays open. {DO}",
        ),
    ],
)
def test_what_a_person_is_told(facts: dict[str, Any], expected: str) -> None:
    assert of(**facts).why == expected


def test_a_reason_leaves_room_for_what_can_be_done() -> None:
    found = of(state=ValidationState.FAILED, reason=f"run `labctl check`: {'x' * 500}\nsecond line")
    assert found.reason.startswith("Run labctl check: xxx")
    assert len(found.why) <= 240
    assert found.why.endswith(DO)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("x" * 110, f"X{'x' * 109}."),
        ("x" * 111, f"X{'x' * 108}…"),
        (f"{'x' * 108} {'y' * 9}", f"X{'x' * 107}…"),
    ],
    ids=["it fits", "one letter more", "cut at a space"],
)
def test_a_reason_is_cut_where_it_has_no_room(given: str, wanted: str) -> None:
    assert of(state=ValidationState.FAILED, reason=given).reason == wanted
