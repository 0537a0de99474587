"""What needs a person, and in which order: the table."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runs.domain.needing import Need, NeedKind, Picture, ProjectNeeds, PullNeeds, RunNeeds, needs

HOUR = timedelta(hours=1)


def told(**facts) -> list[tuple[NeedKind, str, str]]:
    return [(need.kind, need.title, need.what) for need in needs(Picture(**facts))]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param({"is_late": True}, [(NeedKind.LATE, "The worker", "is late")], id="late"),
        pytest.param(
            {"projects": [ProjectNeeds(1, "a", "failed", "no such host", "old warning")]},
            [(NeedKind.CLONE, "a", "could not be cloned")],
            id="failed clone, whose warning is no news",
        ),
        pytest.param(
            {"projects": [ProjectNeeds(1, "a", is_paused=True, streak=3)]},
            [(NeedKind.PAUSED, "a", "is paused after 3 failed runs in a row")],
            id="paused",
        ),
        pytest.param(
            {"projects": [ProjectNeeds(1, "a", streak=2)]}, [], id="a streak below the pause"
        ),
        pytest.param(
            {"projects": [ProjectNeeds(1, "a", warning="token expired")]},
            [(NeedKind.REFUSED, "a", "needs a look")],
            id="a tracker that refuses",
        ),
        pytest.param(
            {"projects": [ProjectNeeds(1, "a", unpushed=1, parked=1)]},
            [(NeedKind.PARKED, "a", "has 1 commit that origin does not")],
            id="unpushed",
        ),
        pytest.param({"projects": [ProjectNeeds(1, "a", parked=4)]}, [], id="parked and pushed"),
        pytest.param(
            {"pulls": [PullNeeds(1, "a", 4, "Add retries")]},
            [(NeedKind.PULL, "a #4", "waits for your review")],
            id="pull request",
        ),
        pytest.param(
            {"runs": [RunNeeds(9, "a #7", "died", HOUR)]},
            [(NeedKind.RUN, "a #7", "died")],
            id="died",
        ),
        pytest.param(
            {"runs": [RunNeeds(9, "a #7", "failed", HOUR, did_start=False)]},
            [(NeedKind.RUN, "a #7", "did not start")],
            id="did not start",
        ),
        pytest.param(
            {"runs": [RunNeeds(9, "a #7", "died", 25 * HOUR)]}, [], id="died the day before"
        ),
        pytest.param(
            {"runs": [RunNeeds(9, "a #7", o, HOUR) for o in ("stopped", "succeeded", "no_change")]},
            [],
            id="ended well or neutrally",
        ),
        pytest.param(
            {"runs": [RunNeeds(9, "a #7", "succeeded", HOUR, warning="worktree kept")]},
            [(NeedKind.UNTIDY, "a #7", "was not tidied up completely")],
            id="untidy",
        ),
    ],
)
def test_what_needs_a_person(facts, expected) -> None:
    assert told(**facts) == expected


def test_what_holds_up_everything_comes_first_and_runs_stay_newest_first() -> None:
    picture = Picture(
        is_late=True,
        projects=[
            ProjectNeeds(1, "warned", warning="w"),
            ProjectNeeds(2, "parked", unpushed=2, parked=1),
            ProjectNeeds(3, "paused", is_paused=True, streak=3),
            ProjectNeeds(4, "failed", "failed"),
        ],
        pulls=[PullNeeds(1, "warned", 5, "t"), PullNeeds(1, "warned", 4, "t")],
        runs=[
            RunNeeds(3, "third", "succeeded", HOUR, warning="w"),
            RunNeeds(2, "second", "died", HOUR),
        ],
    )
    titles = [need.title for need in needs(picture)]
    assert titles == [
        "The worker",
        "failed",
        "paused",
        "warned",
        "warned #5",
        "warned #4",
        "third",
        "second",
        "parked",
    ]


def test_each_need_has_its_own_id() -> None:
    found: list[Need] = needs(
        Picture(
            is_late=True,
            projects=[
                ProjectNeeds(1, "a", warning="w", is_paused=True, streak=3, unpushed=1, parked=1)
            ],
            pulls=[PullNeeds(1, "a", 1, "t")],
            runs=[RunNeeds(1, "a #1", "died", HOUR, warning="w")],
        )
    )
    assert len({need.id for need in found}) == len(found) == 7


def test_the_reason_is_a_sentence_and_says_what_was_kept() -> None:
    run = RunNeeds(1, "a", "died", HOUR, reason="exit status 1", is_kept=True)
    assert needs(Picture(runs=[run]))[0].why == "Exit status 1. Worktree and branch are kept."
