"""What the merge button says, and which issues a text closes: pure rules and their tables."""

from __future__ import annotations

import dataclasses

import pytest

from runs.pulls.rules import Joined, MergeFacts, MergeKind, Way, closing, files_words, verdict

GOOD = MergeFacts("open", "afk/7", "main", "main", "a" * 40, "b" * 40, joined=Joined(Way.FORWARD))


@pytest.mark.parametrize(
    ("changes", "kind", "may", "says"),
    [
        pytest.param(
            {}, MergeKind.FORWARD, True, "Ready to merge into main (fast-forward)", id="forward"
        ),
        pytest.param(
            {"joined": Joined(Way.CLEAN, "t")}, MergeKind.COMMIT, True, "merge commit", id="clean"
        ),
        pytest.param(
            {"joined": Joined(Way.CONFLICT, files=("a.py",))},
            MergeKind.CONFLICT,
            False,
            "change the same lines",
            id="conflict",
        ),
        pytest.param(
            {"joined": Joined(Way.STRANGERS)},
            MergeKind.STRANGERS,
            False,
            "no commit in common",
            id="strangers",
        ),
        pytest.param(
            {"joined": Joined(Way.HELD), "is_delivered": True},
            MergeKind.DELIVERED,
            True,
            "Mark it as merged",
            id="merged by hand",
        ),
        pytest.param(
            {"joined": Joined(Way.HELD), "is_delivered": False},
            MergeKind.NOTHING,
            False,
            "nothing to merge",
            id="emptied branch",
        ),
        pytest.param(
            {"joined": Joined(Way.HELD), "is_delivered": None},
            MergeKind.NOTHING,
            False,
            "nothing to merge",
            id="held, and what was delivered is not known",
        ),
        pytest.param(
            {"head_tip": None}, MergeKind.HEAD_GONE, False, "no branch afk/7", id="head gone"
        ),
        pytest.param(
            {"into_tip": None}, MergeKind.BASE_GONE, False, "no branch main", id="base gone"
        ),
        pytest.param(
            {"into": "trunk"},
            MergeKind.FORWARD,
            True,
            "trunk (the branch main is not on origin any more)",
            id="default branch renamed",
        ),
        pytest.param({"error": "boom"}, MergeKind.UNKNOWN, False, "boom", id="could not tell"),
        pytest.param(
            {"joined": None}, MergeKind.UNKNOWN, False, "could not be told", id="not asked"
        ),
        pytest.param(
            {"error": "boom", "state": "merged", "by": "anna"},
            MergeKind.MERGED,
            False,
            "merged into main by anna",
            id="merged",
        ),
        pytest.param({"state": "closed"}, MergeKind.CLOSED, False, "closed", id="closed"),
        pytest.param(
            {"is_busy": True, "by": "anna"}, MergeKind.BUSY, False, "anna is merging it", id="busy"
        ),
        pytest.param(
            {"state": "merged", "is_busy": True, "head_tip": None},
            MergeKind.MERGED,
            False,
            "merged",
            id="the state wins",
        ),
    ],
)
def test_what_the_merge_button_says(changes, kind, may, says) -> None:
    said = verdict(dataclasses.replace(GOOD, **changes))
    assert (said.kind, said.can_merge) == (kind, may)
    assert says in said.text
    assert not (said.can_merge and said.is_trouble)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Closes #7", (7,)),
        ("closes: #7, FIXES #8 and resolved #9", (7, 8, 9)),
        ("close #1 closed #2 fix #3 fixed #4 resolve #5 resolves #6", (1, 2, 3, 4, 5, 6)),
        ("Closes #7.\n\nFixes #7", (7,)),
        ("closes #007", (7,)),
        ("see #7", ()),
        ("forecloses #7 and prefix #8", ()),
        ("closes 7, closes#7, closes # 7", ()),
        ("closes #7x", ()),
        ("closes #0 closes #99999999999999999999", ()),
        ("fixes\n#7", ()),
        ("", ()),
    ],
)
def test_which_issues_a_text_closes(text: str, numbers: tuple[int, ...]) -> None:
    assert closing([text]) == numbers


def test_several_texts_close_each_issue_once() -> None:
    assert closing(["fix #3", "Closes #1", "closes #3"]) == (3, 1)


def test_many_files_of_a_conflict_are_counted() -> None:
    assert files_words(["a", "b"]) == "a, b"
    assert files_words([str(n) for n in range(15)]).endswith("11 and 3 more")
