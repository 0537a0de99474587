"""Phases as a person writes them, one a line."""

from __future__ import annotations

import pytest

from runs.workflows.phase_lines import PhaseLine, WrongLine, read_phases


@pytest.mark.parametrize(
    ("text", "phases"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("work: wave", [PhaseLine("work", "wave")], id="name and group"),
        pytest.param(
            "\n  code review :findings\n\n", [PhaseLine("code review", "findings")], id="loose"
        ),
        pytest.param("work: wave 30", [PhaseLine("work", "wave", 1800)], id="its timeout"),
        pytest.param("work: wave 30 35", [PhaseLine("work", "wave", 1800, 2100)], id="and its net"),
        pytest.param(
            "a: x\nb: y 1", [PhaseLine("a", "x"), PhaseLine("b", "y", 60)], id="two of them"
        ),
    ],
)
def test_lines(text, phases):
    assert read_phases(text) == phases


@pytest.mark.parametrize("line", ["work", "work:", ": wave", "work: wave x", "work: wave 1 2 3"])
def test_a_line_that_is_no_phase_is_named(line):
    with pytest.raises(WrongLine, match="Line 2 is no phase"):
        read_phases(f"a: b\n{line}")
