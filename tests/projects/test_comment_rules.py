"""Whose comments agents and reviewers are given: a table."""

from __future__ import annotations

import pytest

from runs.projects.comment_rules import Readers, choose
from trackers.base import Comment

SAID = (
    Comment("Ada", "inside"),
    Comment("eve", "outside", is_outsider=True),
    Comment("Bot[bot]", "outside", is_outsider=True),
    Comment("mia", "not told", is_outsider=None),
)
TWO = "2 comments of people who do not belong to the repository"


@pytest.mark.parametrize(
    ("readers", "kept", "note"),
    [
        pytest.param(
            Readers(),
            ["Ada"],
            f"{TWO} and 1 comment of people of whom that could not be told were left out.",
            id="those who may write",
        ),
        pytest.param(
            Readers(frozenset({"bot[bot]", "mia"})),
            ["Ada", "Bot[bot]", "mia"],
            "1 comment of people who do not belong to the repository was left out.",
            id="and whom the project names",
        ),
        pytest.param(
            Readers(reads_outsiders=True), ["Ada", "eve", "Bot[bot]", "mia"], "", id="everybody"
        ),
    ],
)
def test_whose_comments_are_given_and_what_is_said_of_the_others(readers, kept, note):
    chosen = choose(SAID, readers)
    assert ([one.author for one in chosen.kept], chosen.describe_left_out()) == (kept, note)


def test_a_name_of_another_forge_is_no_name_that_the_project_trusts():
    said = (Comment("ada", "from elsewhere", is_outsider=True, is_imported=True),)
    assert choose(said, Readers(frozenset({"ada"}))).kept == ()
