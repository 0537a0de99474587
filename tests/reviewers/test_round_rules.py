"""Whether a review converges, a row for each course."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runs.reviewers import round_rules
from runs.reviewers.round_rules import Course, ReviewTime, Round
from runs.reviewers.rules import Finding


def found(*names: str) -> Round:
    """Findings by name: "a" is one of a file of its own, "low" blocks nothing."""
    return Round(
        [Finding(2 if name == "low" else 1, f"{name}.py", 3, f"Wrong {name}", "") for name in names]
    )


@pytest.mark.parametrize(
    ("rounds", "wanted"),
    [
        ([], Course.NEW),
        ([found("a")], Course.NEW),
        ([found("a"), found("b")], Course.NEW),
        ([found("a"), found("a")], Course.REPEATED),
        ([found("a"), found("a", "b")], Course.REPEATED),
        ([found("a", "b"), found("a")], Course.NEW),
        ([found("a", "b"), found("a"), found("a")], Course.REPEATED),
        ([found("a"), found("b"), found("a")], Course.FLIPPING),
        ([found("a"), found("b"), found("c"), found("a", "d")], Course.FLIPPING),
        ([found("a", "b"), found("b"), found("a", "c")], Course.FLIPPING),
        ([found("a"), found("b"), found("c")], Course.NEW),
        ([found("a", "b"), found("a", "c"), found("a", "d")], Course.NEW),
        ([found("low"), found("low")], Course.NEW),
        ([found(), found("a")], Course.NEW),
        ([found("a"), found()], Course.NEW),
        ([found("a"), found(), found("a")], Course.FLIPPING),
    ],
)
def test_rounds_are_classified(rounds: list[Round], wanted: Course) -> None:
    assert round_rules.classify_rounds(rounds) is wanted
    said = round_rules.describe_circle(rounds)
    assert said.endswith("a person has to decide") if wanted is not Course.NEW else said == ""


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        (Finding(0, "a.py", 9, "WRONG  a", "Said otherwise."), True),
        (Finding(1, "b.py", 3, "Wrong a", ""), False),
        (Finding(1, "a.py", 3, "Wrong b", ""), False),
    ],
)
def test_what_was_found_is_the_same_by_file_and_title(other: Finding, is_same: bool) -> None:
    rounds = [found("a"), Round([other])]
    assert (round_rules.classify_rounds(rounds) is Course.REPEATED) is is_same


def test_the_sentence_names_what_came_again() -> None:
    said = round_rules.describe_circle([found("a"), found("b", "a")])
    assert said == (
        "“Wrong a” in a.py was found again after its agent was told: a person has to decide"
    )
    said = round_rules.describe_circle([found("a", "b"), found("b"), found("b", "a", "c")])
    assert said.startswith("“Wrong b” in b.py was found again"), "b was never mended"
    said = round_rules.describe_circle([found("a"), found("b"), found("a")])
    assert said == (
        "“Wrong a” in a.py is back after it was mended, so the review goes in circles: "
        "a person has to decide"
    )
    said = round_rules.describe_circle([found("a"), found("b"), found("a", "b")])
    assert said.startswith("“Wrong b” in b.py was found again"), (
        "of the round before, not the first"
    )
    said = round_rules.describe_circle([found("a", "b"), found("b", "c"), found("b", "a")])
    assert said.startswith("“Wrong a” in a.py is back"), "b was there all the time"
    said = round_rules.describe_circle([found("a", "b"), found("c"), found("b")])
    assert said.startswith("“Wrong b” in b.py is back"), "a is not there"
    low = Finding(2, "b.py", 3, "Wrong b", "")
    last = Round([low, *found("a").findings])
    said = round_rules.describe_circle([found("a", "b"), found("c"), last])
    assert said.startswith("“Wrong a” in a.py is back"), "b blocks nothing any more"
    nowhere = Round([Finding(0, "", None, "Wrong", "")])
    assert round_rules.describe_circle([nowhere, nowhere]).startswith("“Wrong” was found again")


@pytest.mark.parametrize(
    ("used", "left", "is_used_up"),
    [
        (0, 20, False),
        (100, 20, False),
        (101, 19, False),
        (119, 1, False),
        (120, 0, True),
        (121, 0, True),
    ],
)
def test_a_review_may_take_what_is_left_of_the_time_of_all(used, left, is_used_up) -> None:  # type: ignore[no-untyped-def]
    time = ReviewTime(timedelta(minutes=20), timedelta(hours=2), timedelta(minutes=used))
    assert time.left == timedelta(minutes=left)
    assert time.is_used_up is is_used_up
    words = "all reviews of this run together may take 120 minutes, and they have"
    assert time.words == (words if is_used_up else "")


@pytest.mark.parametrize(("minutes", "words"), [(1, "a minute"), (2, "2 minutes")])
def test_the_time_of_all_reviews_is_said_in_minutes(minutes: int, words: str) -> None:
    whole = timedelta(minutes=minutes)
    assert f"may take {words}, and they have" in ReviewTime(whole, whole, whole).words
