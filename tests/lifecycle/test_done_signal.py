"""Which pull requests are this run's delivery, when two machines' clocks are in play."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runs.lifecycle import done_signal
from runs.lifecycle.recovery import PullFacts, is_of_this_run
from runs.models import Project, Run
from tests.fakes import START, World
from trackers.base import Pull, PullState


@pytest.mark.row("LAB-30", "LAB-77", level="contract")
@pytest.mark.parametrize(
    ("tracker", "state", "seconds", "is_done"),
    [
        pytest.param("builtin", "merged", 0, True, id="built in, the same moment"),
        pytest.param("builtin", "merged", -1, False, id="built in, merged of an earlier run"),
        pytest.param("gitea", "merged", -121, False, id="a forge, merged of an earlier run"),
        pytest.param("github", "open", -10_000, False, id="an open one of an earlier run"),
        pytest.param("gitea", "open", -60, False, id="an open one within the slack of clocks"),
        pytest.param("gitea", "open", 1, True, id="an open one of this run"),
        pytest.param("github", "closed", 10, False, id="a closed one counts as none"),
    ],
)
def test_what_was_there_before_the_run_began_is_not_its_delivery(
    world: World, tracker: str, state: str, seconds: int, is_done: bool
) -> None:
    run = Run(project=Project(tracker=tracker, slug="demo"), branch="afk/7", requested_at=START)
    made_at = START + timedelta(seconds=seconds)
    pull = Pull(3, "afk/7", PullState(state), created_at=made_at)

    assert done_signal.of_pulls(world.lab, run, [pull]).is_done is is_done


@pytest.mark.parametrize(
    ("drafts", "is_done", "missing"),
    [
        pytest.param([True], False, "no pull request that is ready for review: 3 is a draft", id="a draft"),
        pytest.param([False], True, "no pull request", id="one that has left draft"),
        pytest.param([True, False], True, "no pull request", id="another one that is ready"),
        pytest.param([], False, "no pull request", id="none"),
    ],
)  # fmt: skip
def test_a_draft_is_opened_and_not_delivered(
    world: World, drafts: list[bool], is_done: bool, missing: str
) -> None:
    run = Run(project=Project(tracker="github", slug="demo"), branch="afk/7", requested_at=START)
    pulls = [
        Pull(3 + at, "afk/7", PullState.OPEN, created_at=START, is_draft=is_draft)
        for at, is_draft in enumerate(drafts)
    ]

    found = done_signal.of_pulls(world.lab, run, pulls)

    assert (found.is_done, found.missing) == (is_done, missing)


@pytest.mark.parametrize(
    ("facts", "is_ours"),
    [
        pytest.param((None, False, False), True, id="a tracker that tells no time"),
        pytest.param((0, False, False), True, id="made after the run began"),
        pytest.param((60, True, True), True, id="merged, a late clock, its commit is here"),
        pytest.param((60, True, False), False, id="merged, a late clock, of an earlier run"),
        pytest.param((60, True, None), None, id="merged, a late clock, git did not say"),
        pytest.param((121, True, True), False, id="merged long before"),
        pytest.param((9999, False, True), True, id="an old open one that has this run's commit"),
        pytest.param((9999, False, False), False, id="an old open one as it was"),
        pytest.param((9999, False, None), None, id="an old open one, git did not say"),
    ],
)
def test_whose_a_pull_request_is(facts: tuple, is_ours: bool | None) -> None:
    before, is_merged, has_moved = facts
    age = None if before is None else timedelta(seconds=before)
    assert is_of_this_run(PullFacts(age, timedelta(minutes=2), is_merged, has_moved)) is is_ours
