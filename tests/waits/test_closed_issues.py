"""An issue that somebody closes while its agent works: told at once, and the run goes on or is stopped."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client

from runs.core.states import ClosedIssue, NoticeKind, Outcome, RunState
from runs.lifecycle.stop import stop
from runs.models import Notice, Project, Run
from runs.waits import closed_issues
from runs.waits.closed_issue_rules import (
    ASKED_EVERY,
    WITH_HOOK,
    AskFacts,
    ClosedFacts,
    Step,
    is_asked,
    is_due,
    next_step,
)
from tests import make
from tests.api.program import Program, denied
from tests.fakes import START, World
from tests.web.people import text_of
from tests.world.stories import look, start
from trackers.base import Ability

SECOND = timedelta(seconds=1)
BEFORE, AFTER = START - SECOND, START + SECOND


@pytest.mark.parametrize(
    ("is_open", "closed_at", "pulls_at", "choice", "step"),
    [
        pytest.param(True, None, AFTER, ClosedIssue.STOP, Step.NOTHING, id="open"),
        pytest.param(None, None, AFTER, ClosedIssue.STOP, Step.NOTHING, id="could not tell"),
        pytest.param(None, START, AFTER, ClosedIssue.STOP, Step.NOTHING, id="told before, could not tell"),
        pytest.param(False, None, AFTER, ClosedIssue.STOP, Step.TELL, id="closed: told first"),
        pytest.param(False, START, AFTER, ClosedIssue.STOP, Step.STOP, id="no delivery seen since"),
        pytest.param(False, START, AFTER, ClosedIssue.GO_ON, Step.NOTHING, id="told, and it goes on"),
        pytest.param(False, START, START, ClosedIssue.STOP, Step.NOTHING, id="deliveries not asked for since"),
        pytest.param(False, START, BEFORE, ClosedIssue.STOP, Step.NOTHING, id="asked for before"),
        pytest.param(False, START, None, ClosedIssue.STOP, Step.NOTHING, id="never asked for"),
        pytest.param(False, START, AFTER, ClosedIssue.ASK, Step.NOTHING, id="a person is asked"),
        pytest.param(True, START, AFTER, ClosedIssue.STOP, Step.TELL_OPEN, id="open again"),
    ],
)  # fmt: skip
def test_what_a_closed_issue_means(is_open, closed_at, pulls_at, choice, step) -> None:  # type: ignore[no-untyped-def]
    assert next_step(ClosedFacts(is_open, closed_at, pulls_at, choice)) is step


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(AskFacts(True, START, None), True, id="local: in every look"),
        pytest.param(AskFacts(False, None, None), True, id="never asked"),
        pytest.param(AskFacts(False, START - ASKED_EVERY, None), True, id="long ago"),
        pytest.param(AskFacts(False, START - ASKED_EVERY + SECOND, None), False, id="not yet"),
        pytest.param(
            AskFacts(False, START - WITH_HOOK + SECOND, BEFORE - WITH_HOOK),
            False,
            id="a webhook tells",
        ),
        pytest.param(
            AskFacts(False, START - WITH_HOOK, BEFORE - WITH_HOOK),
            True,
            id="told for an hour of nothing",
        ),
        pytest.param(AskFacts(False, BEFORE, START), True, id="a webhook told of issues since"),
        pytest.param(AskFacts(False, BEFORE, BEFORE), False, id="told before it was asked"),
    ],
)
def test_when_a_tracker_is_asked(facts: AskFacts, expected: bool) -> None:
    assert is_due(facts, START) is expected


@pytest.mark.parametrize(
    ("choice", "closed_at", "allowed_by", "expected"),
    [
        pytest.param(ClosedIssue.ASK, START, "", True, id="closed, and nobody has answered"),
        pytest.param(ClosedIssue.ASK, START, "anna", False, id="somebody let it go on"),
        pytest.param(ClosedIssue.ASK, None, "", False, id="open"),
        pytest.param(ClosedIssue.GO_ON, START, "", False, id="nobody wants to be asked"),
        pytest.param(ClosedIssue.STOP, START, "", False, id="it is stopped anyway"),
    ],
)
def test_whether_a_person_is_asked(choice, closed_at, allowed_by, expected) -> None:  # type: ignore[no-untyped-def]
    assert is_asked(choice, closed_at, allowed_by) is expected


@pytest.fixture
def project(world: World) -> Project:
    world.tracker.add_root("demo")
    return make.a_project(agent=make.an_agent())


def _close(world: World, *, is_open: bool = False) -> None:
    world.tracker.shelves["demo"].issues[0]["is_open"] = is_open


def _told() -> list[str]:
    rows = Notice.objects.filter(kind=NoticeKind.RUN_ISSUE_CLOSED)
    return list(rows.values_list("text", flat=True))


@pytest.mark.django_db(transaction=True)
def test_it_is_told_once_and_the_run_goes_on(world: World, project: Project, anna: Client) -> None:
    run = start(world, project)
    look(world)
    assert _told() == []
    _close(world)
    for _ in range(3):
        world.clock.forward(seconds=30)
        look(world)
    run.refresh_from_db()
    assert run.state == RunState.WORKING
    assert _told() == [
        "issue 7 was closed while its agent works. Press Stop if its work is not wanted any more"
    ]
    assert "issue closed</span>" in text_of(anna.get(f"/runs/{run.pk}/"))
    _close(world, is_open=True)
    look(world)
    run.refresh_from_db()
    assert run.issue_closed_at is None
    assert Notice.objects.filter(run=run, text="issue 7 is open again").count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_project_may_have_it_stopped(world: World, project: Project) -> None:
    Project.objects.update(on_closed_issue=ClosedIssue.STOP)
    run = start(world, project)
    _close(world)
    look(world)
    run.refresh_from_db()
    assert run.state == RunState.WORKING
    world.clock.forward(seconds=30)
    look(world)
    run.refresh_from_db()
    assert (run.outcome, run.reason) == (
        Outcome.STOPPED,
        "its issue was closed while the agent worked; worktree and branch kept",
    )
    assert run.settled_at is not None
    assert len(_told()) == 1
    project.refresh_from_db()
    assert project.streak == 0


@pytest.mark.django_db(transaction=True)
def test_a_delivery_that_closed_it_is_a_success(world: World, project: Project) -> None:
    Project.objects.update(on_closed_issue=ClosedIssue.STOP)
    run = start(world, project)
    _close(world)
    world.tracker.add_pull("demo", run.branch, "merged", created_at=world.lab.now())
    look(world)
    run.refresh_from_db()
    assert run.outcome == Outcome.SUCCEEDED
    assert _told() == []


@pytest.mark.django_db(transaction=True)
def test_a_run_that_a_person_had_go_on_is_not_stopped(world: World, project: Project) -> None:
    Project.objects.update(on_closed_issue=ClosedIssue.STOP)
    run = start(world, project)
    earlier = make.a_run(project, "8", slot=2, outcome=Outcome.DIED)
    Run.objects.filter(pk=run.pk).update(continues=earlier)
    _close(world)
    for _ in range(3):
        world.clock.forward(seconds=30)
        look(world)
    run.refresh_from_db()
    assert run.state == RunState.WORKING


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("how", ["a tracker that does not answer", "one without pull requests"])
def test_what_cannot_be_told_ends_nothing(world: World, project: Project, how: str) -> None:
    Project.objects.update(on_closed_issue=ClosedIssue.STOP)
    run = start(world, project)
    _close(world)
    if how.startswith("one"):
        world.tracker.abilities = frozenset(Ability) - {Ability.PULLS}
    else:
        world.tracker.fail()
    for _ in range(3):
        world.clock.forward(seconds=30)
        look(world)
    run.refresh_from_db()
    assert (run.state, _told()) == (RunState.WORKING, [])


def _asked(world: World) -> Run:
    Project.objects.update(on_closed_issue=ClosedIssue.ASK)
    run = start(world, Project.objects.get())
    _close(world)
    look(world)
    run.refresh_from_db()
    return run


@pytest.mark.django_db(transaction=True)
def test_a_project_may_have_people_asked(world: World, project: Project, anna: Client) -> None:
    run = _asked(world)
    assert run.state == RunState.WORKING
    assert "works though its issue was closed at" in text_of(anna.get("/"))
    assert "Let it go on</button>" in text_of(anna.get(f"/runs/{run.pk}/"))
    for _ in range(2):  # twice is once
        told = anna.post(f"/runs/{run.pk}/allow", follow=True)
        assert "It goes on, though its issue was closed." in text_of(told)
    look(world)
    assert "though its issue was closed at" not in text_of(anna.get("/"))
    assert "Let it go on</button>" not in text_of(anna.get(f"/runs/{run.pk}/"))
    (said,) = Notice.objects.filter(run=run, text__startswith="goes on though")
    assert (said.text, said.by) == ("goes on though issue 7 was closed", "anna")
    run.refresh_from_db()
    assert run.state == RunState.WORKING


@pytest.mark.django_db(transaction=True)
def test_an_issue_that_is_closed_once_more_is_asked_about_once_more(
    world: World, project: Project
) -> None:
    run = _asked(world)
    closed_issues.allow(world.lab, run, by="anna")
    _close(world, is_open=True)
    look(world)
    _close(world)
    look(world)
    run.refresh_from_db()
    assert closed_issues.is_asked(run)
    assert len(_told()) == 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("how", ["open again", "ended"])
def test_what_nobody_is_asked_about_any_more_is_said(
    world: World, project: Project, operator: User, how: str
) -> None:
    run = _asked(world)
    if how == "ended":
        stop(world.lab, run, "anna")
    else:
        _close(world, is_open=True)
        look(world)
    answer = Program.of(operator).post(f"/runs/{run.pk}/allow")
    why = "the run has ended" if how == "ended" else "issue 7 is open again"
    assert why in denied(answer, 409, "not_asked")["text"]


@pytest.mark.django_db(transaction=True)
def test_a_program_answers_too(world: World, project: Project, operator: User) -> None:
    run = _asked(world)
    assert Program.of(operator).post(f"/runs/{run.pk}/allow").status_code == 200
    run.refresh_from_db()
    assert (run.allowed_by, closed_issues.is_asked(run)) == ("anna", False)


@pytest.mark.django_db
def test_the_settings_name_the_choices_in_words(project: Project, anna: Client) -> None:
    shown = text_of(anna.get(f"/projects/{project.pk}/settings/pulls/"))
    assert "it goes on, and you are asked</option>" in shown
    assert "Default: its run goes on." in shown
