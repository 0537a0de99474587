"""What `./lab wait` reads of its arguments, before anything is asked or made (RUNE-01)."""

from __future__ import annotations

import pytest

from runs.core.refusal import ActRefused
from runs.groups.command import read_expected, read_options


@pytest.mark.parametrize(
    ("typed", "columns"),
    [
        pytest.param({}, {}, id="nothing: the preset decides"),
        pytest.param({"poll": None}, {}, id="not typed"),
        pytest.param({"poll": "5"}, {"poll_seconds": 5}, id="seconds"),
        pytest.param({"stale": "30s"}, {"stale_seconds": 30}, id="seconds with their unit"),
        pytest.param({"timeout": "10m"}, {"timeout_seconds": 600}, id="minutes"),
        pytest.param({"release": " 2h "}, {"release_seconds": 7200}, id="hours"),
        pytest.param({"timeout": "none"}, {"timeout_seconds": None}, id="no timeout"),
        pytest.param({"release": "none"}, {"release_seconds": None}, id="no release"),
    ],
)
def test_lengths_of_time(typed, columns):
    assert read_options(typed) == columns


@pytest.mark.parametrize(
    "typed",
    [
        *[{"poll": text} for text in ("", "0", "0m", "-1", "1.5", "x", "5d", "none", "٥")],
        {"stale": "none"},
        {"timeout": "soon"},
        {"release": "0"},
    ],
    ids=str,
)
def test_what_is_no_length_is_refused_by_its_name(typed):
    with pytest.raises(ActRefused, match=f"--{next(iter(typed))} is a length"):
        read_options(typed)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        pytest.param(None, None, id="not typed"),
        pytest.param("0", 0, id="none at all"),
        pytest.param("12", 12, id="twelve"),
    ],
)
def test_how_many_tasks(text, number):
    assert read_expected(text) == number


@pytest.mark.parametrize("text", ["", "-1", "x", "1.0", "1000001"])
def test_what_is_no_number_of_tasks_is_refused(text):
    with pytest.raises(ActRefused, match="--expected is a whole number"):
        read_expected(text)
