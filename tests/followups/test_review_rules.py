"""What an agent is told of a review: the person's words first, others quoted, the newest whole."""

from __future__ import annotations

from runs.followups.rules import COMMENT_CHARACTERS, TOLD_CHARACTERS, review
from trackers.base import Comment


def test_others_are_quoted_line_by_line_with_their_place() -> None:
    said = [Comment("vera", "Rename it.\nAnd test it.", place="a.py:3", quote="x = 1")]
    assert review(8, "Be brief.", said, left_out=0, is_ours=False).split("\n\n")[-1] == (
        "vera on a.py:3:\n> Line: x = 1\n> Rename it.\n> And test it."
    )


def test_a_long_comment_is_cut_and_the_newest_ones_are_kept() -> None:
    said = [Comment(f"bot-{number}", f"{number} " + "x" * 9_000) for number in range(20)]
    text = review(8, "", [*said, Comment("vera", "PLEASE RENAME")], left_out=0, is_ours=True)
    assert "> PLEASE RENAME" in text
    assert "bot-19" in text
    assert "bot-0:" not in text
    assert "Older comments that are not told here (`labctl pr view` shows them): " in text
    assert "x" * (COMMENT_CHARACTERS + 1) not in text
    assert len(text) < TOLD_CHARACTERS + 500


def test_a_forge_does_not_name_a_command_that_shows_nothing_there() -> None:
    said = [Comment("bot", "x" * 5_000) for _ in range(20)]
    text = review(8, "", said, left_out=2, is_ours=False)
    assert "labctl" not in text
    assert "Comments of people who are not trusted here, left out: 2." in text
