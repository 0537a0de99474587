"""What needs a person, and in which order: the table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from runs.core.states import Trouble
from runs.gates.level_rules import Level, Standing
from runs.groups.stall_rules import Fate
from runs.overview.attention_rules import (
    Need,
    NeedKind,
    is_seen,
    needs,
    together,
)
from runs.overview.need_facts import (
    AgentNeeds,
    GroupNeeds,
    HostNeeds,
    Picture,
    ProjectNeeds,
    PullNeeds,
    RunNeeds,
    WaitNeeds,
    WatchNeeds,
    WorkflowNeeds,
)

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


def watched(code: int, reason: str, **more: Any) -> ProjectNeeds:
    return ProjectNeeds(1, "a", watch=WatchNeeds(5, code, reason, **more))


def grouped(**facts):
    return ProjectNeeds(1, "a", groups=(GroupNeeds(3, "wave", **facts),))


def told(**facts) -> list[tuple[NeedKind, str, str]]:
    return [(need.kind, need.title, need.what) for need in needs(Picture(**facts))]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param({"is_late": True}, [(NeedKind.LATE, "The worker", "is late")], id="late"),
        pytest.param(
            {"hosts": [HostNeeds(4, "gpu1", 2, "03:00 UTC", NOW)]},
            [(NeedKind.HOST, "Host gpu1", "is silent since 03:00 UTC")],
            id="silent host",
        ),
        pytest.param(
            {"agents": [AgentNeeds(4, "Claude", Trouble.LIMIT, "resets 5am", "03:00", "05:01", 3)]},
            [(NeedKind.HELD, "Claude", "usage limit reached since 03:00, tried again at 05:01")],
            id="an agent whose limit is reached",
        ),
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
        pytest.param(
            {"projects": [watched(1, "issues failed")]},
            [(NeedKind.WATCH, "a", "watch session 5: issues failed (exit code 1)")],
            id="a watch session with failed issues",
        ),
        pytest.param(
            {"projects": [watched(3, "poll failed")]},
            [(NeedKind.WATCH, "a", "watch session 5: poll failed (exit code 3)")],
            id="a watch session whose tracker gave no answer",
        ),
        pytest.param(
            {"projects": [watched(0, "queue empty"), watched(130, "interrupted")]},
            [],
            id="watch sessions that ended well or were interrupted",
        ),
        pytest.param(
            {"projects": [watched(1, "validation failed", is_seen=True)]},
            [],
            id="a watch session that failed and was seen",
        ),
        pytest.param(
            {"projects": [watched(1, "validation failed", repeat=2, is_mended=True)]},
            [],
            id="a watch session whose validation passed or is at work again",
        ),
        pytest.param(
            {"projects": [watched(1, "validation failed", repeat=2)]},
            [(NeedKind.WATCH, "a", "watch session 5: validation failed (exit code 1)")],
            id="a watch session whose validation failed again",
        ),
        pytest.param(
            {"projects": [watched(3, "poll failed", is_seen=True, is_stalled=True)]},
            [(NeedKind.STALLED, "a", "is stopped: tracker unreachable")],
            id="the switch waits for Resume, for as long as it takes",
        ),
        pytest.param({"projects": [ProjectNeeds(1, "a", parked=4)]}, [], id="parked and pushed"),
        pytest.param(
            {"projects": [grouped(stalled=("#2 x",), fates=frozenset({Fate.GIVEN_BACK}))]},
            [(NeedKind.GROUP, "a", "group wave: 1 task is stalled")],
            id="a task of a group is stalled",
        ),
        pytest.param(
            {"projects": [grouped(error="no table")]},
            [(NeedKind.MONITOR, "a", "group wave: its monitor failed")],
            id="a monitor failed",
        ),
        pytest.param(
            {"projects": [ProjectNeeds(1, "a", workflows=(WorkflowNeeds(3, "release", "why"),))]},
            [(NeedKind.WORKFLOW, "a", "workflow release waits for you")],
            id="a workflow that is held",
        ),
        pytest.param(
            {"pulls": [PullNeeds(1, "a", 4, "Add retries")]},
            [(NeedKind.PULL, "a #4", "waits for your review")],
            id="pull request",
        ),
        pytest.param(
            {"runs": [RunNeeds(9, "a #7", "died")]},
            [(NeedKind.RUN, "a #7", "died")],
            id="died",
        ),
        pytest.param(
            {"runs": [RunNeeds(9, "a #7", "failed", reason="gate review: P1 x", attempts=3)]},
            [(NeedKind.GATE, "a #7", "did not pass the review gate in 3 attempts")],
            id="a gate that failed for the last time",
        ),
        pytest.param(
            {"runs": [RunNeeds(9, "a #7", "failed", reason="gates: no progress", attempts=1)]},
            [(NeedKind.GATE, "a #7", "did not pass the gates in 1 attempt")],
            id="gates that could not be carried out",
        ),
        pytest.param(
            {"runs": [RunNeeds(9, "a #7", "failed", reason="the branch is gone", attempts=1)]},
            [(NeedKind.RUN, "a #7", "failed")],
            id="failed for another reason after an attempt",
        ),
        pytest.param(
            {
                "runs": [
                    RunNeeds(9, "a #7", "failed", True, reason="gate review: x", attempts=3),
                    RunNeeds(8, "a #6", "failed", False, True, reason="gate review: x", attempts=3),
                ]
            },
            [],
            id="gates that failed and were seen, or whose issue was started again",
        ),
        pytest.param(
            {"runs": [RunNeeds(9, "a #7", "succeeded", attempts=1, level=Level(Standing.FAILED))]},
            [(NeedKind.LEVEL, "a #7", "passed its gates and failed the run level")],
            id="a run level that failed",
        ),
        pytest.param(
            {"runs": [RunNeeds(9, "a #7", "succeeded", attempts=1, level=Level(Standing.OVER))]},
            [(NeedKind.LEVEL, "a #7", "passed its gates and was never proven at the run level")],
            id="a session that ended before its run level",
        ),
        pytest.param(
            {"runs": [RunNeeds(9, "a #7", "succeeded", True, level=Level(Standing.OVER))]},
            [],
            id="the same, which somebody has seen",
        ),
        pytest.param(
            {"runs": [RunNeeds(9, "a #7", "succeeded", True, unclosed_since="03:00")]},
            [(NeedKind.UNCLOSED, "a #7", "has an issue that could not be closed since 03:00")],
            id="an issue that is not closed, though the run was seen",
        ),
        pytest.param(
            {"runs": [RunNeeds(9, "a #7", "failed", did_start=False)]},
            [(NeedKind.RUN, "a #7", "did not start")],
            id="did not start",
        ),
        pytest.param(
            {"runs": [RunNeeds(9, "a #7", "died", is_seen=True)]}, [], id="died and was seen"
        ),
        pytest.param(
            {"runs": [RunNeeds(9, "a #7", "died", is_retried=True, warning="worktree kept")]},
            [(NeedKind.UNTIDY, "a #7", "was not tidied up completely")],
            id="died, and a later run has started since",
        ),
        pytest.param(
            {"runs": [RunNeeds(9, "a #7", o) for o in ("stopped", "succeeded", "no_change")]},
            [],
            id="ended well or neutrally",
        ),
        pytest.param(
            {"runs": [RunNeeds(9, "a #7", "succeeded", warning="worktree kept")]},
            [(NeedKind.UNTIDY, "a #7", "was not tidied up completely")],
            id="untidy",
        ),
    ],
)
def test_what_needs_a_person(facts, expected) -> None:
    assert told(**facts) == expected


@pytest.mark.parametrize(
    ("until", "expected"),
    [(None, False), (NOW + timedelta(hours=1), False), (NOW, True)],
    ids=["opened by nobody", "opened today", "opened a day ago"],
)
def test_what_ended_badly_goes_only_after_somebody_has_opened_it(until, expected) -> None:
    assert is_seen(until, NOW) is expected


def test_what_holds_up_everything_comes_first_and_failures_before_reviews() -> None:
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
            RunNeeds(3, "third", "succeeded", warning="w"),
            RunNeeds(2, "second", "died"),
        ],
    )
    titles = [need.title for need in needs(picture)]
    assert titles == [
        "The worker",
        "paused",
        "failed",
        "warned",
        "third",
        "second",
        "warned #5",
        "warned #4",
        "parked",
    ]


def test_each_need_has_its_own_id() -> None:
    found: list[Need] = needs(
        Picture(
            is_late=True,
            projects=[
                ProjectNeeds(1, "a", warning="w", is_paused=True, streak=3, unpushed=1, parked=1),
                watched(1, "issues failed"),
                watched(3, "poll failed", is_stalled=True),
            ],
            pulls=[PullNeeds(1, "a", 1, "t")],
            runs=[RunNeeds(1, "a #1", "died", warning="w")],
        )
    )
    assert len({need.id for need in found}) == len(found) == 9


def test_the_reason_is_a_sentence_and_says_what_was_kept() -> None:
    run = RunNeeds(1, "a", "died", reason="exit status 1", is_kept=True)
    assert needs(Picture(runs=[run]))[0].why == "Exit status 1. Its work is kept."


def test_of_several_stalled_tasks_is_said_what_asks_most_of_a_person():
    fates = frozenset({Fate.GIVEN_BACK, Fate.ONLY_WARNED})
    found = needs(Picture(projects=[grouped(stalled=("#2 x", "#3 y"), fates=fates)]))
    assert [(one.what, one.why, one.about) for one in found] == [
        (
            "group wave: 2 tasks are stalled",
            "#2 x, #3 y. Nothing is given back until a person does.",
            (1, 3),
        )
    ]


def test_a_pull_request_that_was_closed_unmerged_comes_before_reviews():
    pulls = [PullNeeds(1, "shop", 5, "Retry"), PullNeeds(1, "shop", 4, "Old", is_closed=True)]
    first, second = needs(Picture(pulls=pulls))
    assert (first.title, first.what) == ("shop #4", "was closed without merging")
    assert first.why == "Its issue stays claimed. Old"
    assert second.what == "waits for your review"


def died(number: int, reason: str = "exit status 1", project: int = 1, **more) -> RunNeeds:
    facts = {"outcome": "died", "reason": reason, "project": (project, f"p{project}"), **more}
    return RunNeeds(number, f"p{project} #{number}", **facts)


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([died(1), died(2)], [(1,), (2,)], id="two are read as they are"),
        pytest.param([died(1), died(2), died(3)], [(1, 2, 3)], id="three alike"),
        pytest.param(
            [died(1), died(2), died(9, "killed"), died(3)],
            [(1, 2, 3), (9,)],
            id="at the place of the first, one with another reason apart",
        ),
        pytest.param(
            [
                died(1, "late; it waited for 1 min"),
                died(2, "late; it waited for 2 min"),
                died(3, "late"),
            ],
            [(1, 2, 3)],
            id="what follows the reason tells of one run alone",
        ),
        pytest.param(
            [died(1), died(2), died(3, project=2)], [(1,), (2,), (3,)], id="of another project"
        ),
        pytest.param(
            [died(1), died(2), died(3, outcome="failed")], [(1,), (2,), (3,)], id="another end"
        ),
        pytest.param(
            [died(n, outcome="", warning="kept") for n in (1, 2, 3)],
            [(1,), (2,), (3,)],
            id="what could not be tidied up is looked at one by one",
        ),
    ],
)
def test_runs_that_ended_alike_are_told_together(runs, expected):
    rows = together(needs(Picture(runs=runs)))
    assert [tuple(need.about[0] for need in row) for row in rows] == expected


def test_many_reviews_of_a_project_are_told_together_and_waits_never():
    pulls = [PullNeeds(1, "a", number, "Add retries") for number in (4, 5, 6)]
    waits = [WaitNeeds(number, f"a #{number}", "asks a question") for number in (7, 8, 9)]
    rows = together(needs(Picture(waits=waits, pulls=pulls)))
    assert [len(row) for row in rows] == [1, 1, 1, 3]
    alike = rows[-1][0].alike
    assert alike is not None
    assert (alike.title, alike.what.format(3)) == ("a", "3 pull requests wait for your review")


def test_a_failed_watch_session_names_the_issue_that_was_made_of_it():
    (need,) = needs(Picture(projects=[watched(1, "validation failed", follow_up="12")]))
    assert need.why.endswith("Issue 12 was made of it; nothing was closed.")


def test_what_an_agent_reads_as_code_a_person_reads_without_its_marks() -> None:
    why = "gate evidence: run `labctl check tests` when everything is committed"
    (need,) = needs(Picture(runs=[RunNeeds(9, "a #7", "failed", reason=why, attempts=1)]))
    assert need.why == "Run labctl check tests when everything is committed."
