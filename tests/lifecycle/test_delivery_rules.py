"""The pure rules of commits as the done signal: what names an issue, what is proven, what is missing."""

from __future__ import annotations

import pytest

from runs.agents import commands
from runs.lifecycle.delivery_rules import (
    Evidence,
    Said,
    branches_beside,
    elsewhere,
    is_delivered,
    lacking,
    names,
    naming_commit,
    told,
    wants_look,
)
from runs.lifecycle.verdict import Ending, why_dead
from trackers.keys import evidence_of

WORDS = ("bd-a1", "bd-bd-a1")
FULL = Evidence(2, True, "c" * 40)


@pytest.mark.row("C-07", level="pure")
@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(FULL, True, id="all three"),
        pytest.param(Evidence(0, None, None), False, id="never left its fork point"),
        pytest.param(Evidence(2, False, "c"), False, id="not pushed"),
        pytest.param(Evidence(2, True, ""), False, id="not named"),
        pytest.param(Evidence(2, None, ""), False, id="origin silent, but not named"),
        pytest.param(Evidence(2, None, "c"), None, id="origin silent"),
        pytest.param(Evidence(None, True, None), None, id="git silent"),
        pytest.param(Evidence(), None, id="nothing known"),
    ],
)
def test_a_delivery_needs_all_three_proofs(found: Evidence, expected: bool | None) -> None:
    assert is_delivered(found) is expected
    if expected is False:
        assert lacking(found, "afk/bd-a1", WORDS)
    if expected:
        assert lacking(found, "afk/bd-a1", WORDS) == []


@pytest.mark.row("C-07", level="pure")
@pytest.mark.parametrize(
    ("alive", "was_asked", "is_over", "expected"),
    [
        pytest.param(True, False, False, False, id="works on and said nothing"),
        pytest.param(True, True, False, True, id="said that it is done"),
        pytest.param(True, False, True, True, id="its time is over"),
        pytest.param(False, False, False, True, id="is gone"),
    ],
)
def test_nobody_is_asked_while_an_agent_works_on(
    alive: bool, was_asked: bool, is_over: bool, expected: bool
) -> None:
    assert wants_look(alive, was_asked, is_over) is expected


@pytest.mark.row("C-09", "C-07", level="pure")
@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("fix: retry (bd-a1)", True),
        ("bd-a1: retry", True),
        ("fix: retry\n\nDone for bd-a1.", True),
        ("fix: retry #bd-a1", True),
        ("fix: bd-bd-a1", True),
        ("fix: bd-a1.2", False),
        ("fix: bd-a12", False),
        ("fix: bd-a1-x", False),
        ("fix: abd-a1", False),
        ("fix: x-bd-a1", False),
        ("fix: BD-A1", False),
        ("Merge branch 'main' into afk/bd-a1", False),
        ("see issues/bd-a1/notes", False),
        ("fix: a1", False),
        ("", False),
    ],
)
def test_only_the_whole_word_names_the_issue(message: str, expected: bool) -> None:
    assert names(message, WORDS) is expected


@pytest.mark.row("C-09", level="pure")
def test_each_kind_of_tracker_has_its_own_pattern() -> None:
    assert evidence_of("beads", "bd-a1") == ("bd-a1", "bd-bd-a1")
    assert evidence_of("beads", "lab-x1.2") == ("bd-lab-x1.2",)
    assert evidence_of("github", "7") == ("#7",)
    assert not names("fix: lab-x1.2", evidence_of("beads", "lab-x1.2"))


def test_the_newest_commit_that_names_it_is_the_proof() -> None:
    commits = [Said("3", "chore"), Said("2", "fix (bd-a1)"), Said("1", "bd-a1")]
    assert naming_commit(commits, WORDS) == "2"
    assert naming_commit(commits[:1], WORDS) == ""


@pytest.mark.row("C-07", level="pure")
def test_what_is_missing_is_told_in_the_order_of_doing_it() -> None:
    assert lacking(Evidence(0), "afk/bd-a1", WORDS) == [
        "no commit on afk/bd-a1 since the run began"
    ]
    assert lacking(Evidence(1, False, ""), "afk/bd-a1", WORDS) == [
        "no commit whose message names bd-a1 or bd-bd-a1",
        "no push of the newest commit (git push origin afk/bd-a1)",
    ]
    assert why_dead(Ending(status=0), "no push").endswith(
        "ended with exit status 0, and there is no push"
    )


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (FULL, "2 committed, pushed, named in ccccccc"),
        (Evidence(1, False, ""), "1 committed, not pushed, not named"),
        (Evidence(0), "nothing committed"),
        (Evidence(1), "1 committed"),
        (Evidence(1, tip="d" * 40), "1 committed up to ddddddd"),
        (Evidence(), ""),
    ],
)
def test_what_is_proven_so_far_is_told_in_a_few_words(found: Evidence, text: str) -> None:
    assert told(found) == text


@pytest.mark.row("C-09", "LAB-62", level="pure")
def test_the_task_names_the_right_evidence() -> None:
    about = {"key": "bd-a1", "title": "Retry", "branch": "afk/bd-a1", "base": "main"}
    with_commits = commands.task_text(**about, evidence="bd-a1")
    with_pulls = commands.task_text(**about)

    assert "names `bd-a1`" in with_commits
    assert "`labctl done`" in with_commits
    assert "pull request from" not in with_commits
    assert "Closes #" not in with_commits
    assert "Closes #bd-a1" in with_pulls
    assert "labctl done" not in with_pulls
    assert [f"{n}. " in with_commits for n in range(1, 9)] == [True] * 7 + [False]


FORK, MINE, THEIRS = "f" * 40, "a" * 40, "c" * 40


@pytest.mark.parametrize(
    ("refs", "expected"),
    [
        pytest.param({"refs/heads/afk/7": MINE, "HEAD": MINE}, [], id="its own branch"),
        pytest.param({"refs/heads/fix": MINE, "HEAD": MINE}, ["fix"], id="a branch that it made"),
        pytest.param(
            {"refs/heads/afk/7": MINE, "refs/remotes/origin/fix": MINE},
            ["fix"],
            id="pushed as another",
        ),
        pytest.param(
            {"HEAD": MINE, "refs/remotes/origin/fix": MINE}, ["fix"], id="pushed from no branch"
        ),
        pytest.param(
            {"refs/heads/afk/7": MINE, "refs/remotes/origin/theirs": THEIRS}, [], id="only fetched"
        ),
        pytest.param(
            {"refs/heads/idea": FORK, "refs/remotes/origin/other": FORK},
            [],
            id="nothing of its own",
        ),
        pytest.param({"refs/heads/main": MINE, "HEAD": MINE}, [], id="what everybody starts from"),
        pytest.param({}, [], id="no repository of its own"),
    ],
)
def test_under_which_other_names_a_run_has_work(refs, expected):
    assert branches_beside(refs, "afk/7", "main", FORK) == expected


def test_of_pull_requests_of_other_branches_all_are_named():
    assert elsewhere([], "afk/7") == ""
    assert elsewhere([(12, "fix")], "afk/7") == (
        "; it opened pull request 12 from its branch fix instead of afk/7: look at what it holds"
    )
    assert "pull requests 12 from its branch fix and 13 from its branch b" in elsewhere(
        [(12, "fix"), (13, "b")], "afk/7"
    )
