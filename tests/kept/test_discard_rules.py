"""When a discard is asked about twice: the table."""

from __future__ import annotations

import pytest

from runs.kept.discard_rules import Accepted, warning

COMMIT = "4f2c9e1d" * 5
SAID = (
    "Run 12 on it passed its gates (commit 4f2c9e1), and labsite {} issue 7. "
    "Discarded, that work is given up: the issue stays open."
)


@pytest.mark.row("LAB-124", level="pure")
@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, ""),
        (Accepted(12, "7", ""), ""),
        (Accepted(12, "7", COMMIT, is_closed=True), ""),
        (Accepted(12, "7", COMMIT, is_asked=True, is_closed=True), ""),
        (Accepted(12, "7", COMMIT), SAID.format("closes after the run level")),
        (Accepted(12, "7", COMMIT, is_asked=True), SAID.format("is closing")),
    ],
    ids=["nobody's", "not accepted", "closed", "closed after asking", "waits", "being closed"],
)
def test_what_is_given_up_is_said_first(found: Accepted | None, expected: str) -> None:
    assert warning(found) == expected
