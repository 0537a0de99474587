"""The rules of bad days, each as a table: unfinished starts, left-over branches, found sessions."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from runs import tick
from runs.core import lease
from runs.core.ports import Sighting
from runs.dispatch import start_requests
from runs.lifecycle import adopt
from runs.lifecycle.recovery import (
    BranchFacts,
    Recovery,
    StartFacts,
    adoptable,
    is_left_over,
    maybe_adoptable,
    recovery,
)
from runs.models import Run, StartRequest
from tests import make
from tests.world.stories import ready
from trackers.keys import KeyRule

SECOND = timedelta(seconds=1)
UNTAKEN = StartFacts(
    has_launcher=False,
    waited=SECOND,
    launcher_lives=None,
    is_overdue=False,
    has_session=False,
    has_exit=False,
)
TAKEN = replace(UNTAKEN, has_launcher=True, launcher_lives=True)
ALONE = replace(TAKEN, launcher_lives=False)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(UNTAKEN, Recovery.WAIT, id="just asked for"),
        pytest.param(replace(UNTAKEN, waited=5 * SECOND), Recovery.WAIT, id="exactly at patience"),
        pytest.param(replace(UNTAKEN, waited=6 * SECOND), Recovery.ASK_AGAIN, id="message lost"),
        pytest.param(
            replace(UNTAKEN, waited=-3600 * SECOND), Recovery.ASK_AGAIN, id="clock was set back"
        ),
        pytest.param(
            replace(UNTAKEN, waited=6 * SECOND, has_session=None),
            Recovery.ASK_AGAIN,
            id="message lost while tmux is silent",
        ),
        pytest.param(TAKEN, Recovery.WAIT, id="launcher works"),
        pytest.param(replace(TAKEN, has_session=True), Recovery.WAIT, id="launcher looks again"),
        pytest.param(replace(TAKEN, launcher_lives=None), Recovery.WAIT, id="launcher unknown"),
        pytest.param(replace(TAKEN, is_overdue=True), Recovery.ROLL_BACK, id="launcher hangs"),
        pytest.param(
            replace(TAKEN, launcher_lives=None, is_overdue=True),
            Recovery.ROLL_BACK,
            id="launcher elsewhere, overdue",
        ),
        pytest.param(
            replace(TAKEN, is_overdue=True, has_session=True),
            Recovery.GOES_ON,
            id="launcher hangs after its spawn",
        ),
        pytest.param(ALONE, Recovery.ROLL_BACK, id="launcher died before its spawn"),
        pytest.param(replace(ALONE, has_session=True), Recovery.GOES_ON, id="died after its spawn"),
        pytest.param(replace(ALONE, has_exit=True), Recovery.GOES_ON, id="agent ran and is gone"),
        pytest.param(replace(ALONE, has_session=None), Recovery.WAIT, id="tmux unknown"),
        pytest.param(
            replace(ALONE, has_session=None, has_exit=True, is_overdue=True),
            Recovery.WAIT,
            id="tmux unknown, all else known",
        ),
    ],
)
def test_an_unfinished_start_takes_the_step_that_its_facts_prove(facts, expected):
    assert recovery(facts) is expected


@pytest.mark.parametrize(
    ("pushed", "known", "head", "expected"),
    [
        pytest.param("old", "old", "fork", True, id="left by an earlier run, nothing done here"),
        pytest.param("old", "old", "work", False, id="commits here since"),
        pytest.param("new", "old", "fork", False, id="pushed from elsewhere since"),
        pytest.param("new", None, "fork", False, id="origin had none before"),
        pytest.param("old", "old", None, False, id="no branch here: nothing is known"),
        pytest.param("fork", "fork", "fork", False, id="nothing beyond the base: told elsewhere"),
    ],
)
def test_a_branch_is_left_over_only_when_nothing_was_done_here(pushed, known, head, expected):
    assert is_left_over(BranchFacts(pushed, known, head, "fork")) is expected


def _sightings(*names: str, alive: bool = True) -> dict[str, Sighting]:
    return {name: Sighting(name, alive) for name in names}


DEMO = {"demo": KeyRule.NUMBER}


@pytest.mark.row("LAB-01", "LAB-03", "LAB-06", level="pure")
@pytest.mark.parametrize(
    ("sightings", "held", "rules", "expected"),
    [
        pytest.param(_sightings("demo~1~afk-7"), set(), DEMO, ["demo~1~afk-7"], id="nobody's"),
        pytest.param(_sightings("demo~1~afk-7"), {"demo~1~afk-7"}, DEMO, [], id="held by a row"),
        pytest.param(
            _sightings("demo~1~afk-7", "demo~2~afk-8"),
            {"demo~1~afk-7"},
            DEMO,
            ["demo~2~afk-8"],
            id="one held, one not",
        ),
        pytest.param(_sightings("demo~1~afk-7", alive=False), set(), DEMO, [], id="ended"),
        pytest.param(_sightings("demo~review-1", "x"), set(), DEMO, [], id="no name of a run"),
        pytest.param(
            _sightings("demo~1~afk-7"), set(), {"shop": KeyRule.NUMBER}, [], id="another project's"
        ),
        pytest.param(
            _sightings("shop~1~afk-7", "demo~1~afk-7"),
            set(),
            {"shop": KeyRule.NUMBER},
            ["shop~1~afk-7"],
            id="ours",
        ),
        pytest.param({}, set(), DEMO, [], id="nothing at all"),
        pytest.param(_sightings("demo~1~afk-bd-a1"), set(), DEMO, [], id="a word for numbers"),
        pytest.param(
            _sightings("demo~1~afk-bd-a1__2", "demo~2~afk-7"),
            set(),
            {"demo": KeyRule.WORD},
            ["demo~1~afk-bd-a1__2"],
            id="a number for words",
        ),
    ],
)
def test_only_live_run_sessions_that_no_row_holds_are_adopted(sightings, held, rules, expected):
    assert list(adoptable(sightings, held, rules)) == expected


@pytest.mark.parametrize(
    ("names", "project", "expected"),
    [
        (["demo~1~afk-7", "shop~afk-bd-a1", "x", "demo~review-1"], "", {"demo", "shop"}),
        (["demo~1~afk-7", "shop~afk-bd-a1"], "shop", {"shop"}),
        (["demo~afk-x", "demo~afk-feature-20260608-1530"], "", set()),
    ],
)
def test_a_first_look_names_the_projects_that_may_have_a_session_to_adopt(names, project, expected):
    assert maybe_adoptable(_sightings(*names), set(), project) == expected


@pytest.mark.django_db(transaction=True)
def test_the_session_of_an_ended_run_that_is_not_settled_yet_is_never_adopted(world):
    """The constraint on active runs does not see it: only the held set keeps it out."""
    world.tracker.add_root("demo")
    run = make.a_run(make.a_project(), outcome="stopped", settled_at=None)
    world.live(run)
    assert adopt.adopt(world.lab, world.sessions.look(), [run]) == []
    assert len(adopt.adopt(world.lab, world.sessions.look(), [])) == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("when", ["before the answer", "while git lists the claims"])
def test_a_pass_that_lost_its_lease_stores_no_run(world, when):
    """It slept for a minute in the middle; meanwhile another tick took over."""
    world.tracker.add_root("demo")
    project = make.a_project(agent=make.an_agent("x"))
    ready(world)
    asked = start_requests.request(world.lab, project, "anna")
    other = replace(world.lab, process="boot:2:2")

    def take_over() -> None:
        world.clock.forward(seconds=61)
        assert lease.acquire(other) is not None

    claims = world.repos.claims
    if when == "before the answer":
        look = world.sessions.look
        world.sessions.look = lambda: (take_over(), look())[1]
    else:
        world.repos.claims = lambda *asked: (take_over(), claims(*asked))[1]
    report = tick.tick(world.lab, project="demo")
    assert report.errors == ["the lease was lost; another tick goes on"]
    assert not Run.objects.exists()
    assert StartRequest.objects.get(pk=asked.pk).answer == ""
    assert world.queue.launches == []
