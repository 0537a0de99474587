"""The page of a run's checks, looked at: accessible, fitting, light and dark, at a desk and on a phone."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from runs.core.states import CompletionPolicy, ValidationState
from runs.models import Run, Validation
from tests import make
from tests.fakes import START, World
from tests.gates import attempt_rows as attempts
from tests.web import board_rows as rows
from tests.web.browsing import OpenPage
from tests.web.looking import looks

pytestmark = pytest.mark.django_db(transaction=True)

TITLE = "Retry the invoice export when the forge answers 503"


@pytest.mark.row("MALA-V-19", "MALA-V-96", level="browser")
def test_the_checks_of_a_run_are_accessible_and_fit(
    open_page: OpenPage, operator: User, world: World
) -> None:
    project = rows.a_tracked_project("billing", policy=CompletionPolicy.GATES)
    rows.a_tick(world)
    run = attempts.checking(project, issue_title=TITLE, worktree="/nowhere", fork_point="abc")
    world.live(run)
    attempts.failed_in_clean_room(run, 1)
    attempts.failed_in_review(run, 2)
    attempts.running(run, 3)
    world.clock.forward(seconds=75)
    page = open_page(f"/runs/{run.pk}/checks/", operator)
    wrong = looks(page, "checks-running")
    page.goto(f"/runs/{run.pk}/checks/?attempt=1")
    wrong += looks(page, "checks-clean-room")
    page.goto(f"/runs/{run.pk}/checks/?attempt=2")
    wrong += looks(page, "checks-review")
    page.goto(f"/runs/{run.pk}/")
    wrong += looks(page, "checks-run-page")
    page.goto("/")
    wrong += looks(page, "checks-overview")
    assert wrong == []


def test_a_run_that_passed_its_run_level_and_runs_without_attempts(
    open_page: OpenPage, operator: User, world: World
) -> None:
    project = rows.a_tracked_project("billing", policy=CompletionPolicy.GATES)
    rows.a_tick(world)
    done = make.a_run(
        project, "8", outcome="succeeded", issue_title=TITLE, accepted_commit="4f2c9e1d" * 5
    )
    for number in range(1, 6):
        attempts.failed_in_clean_room(done, number)
    attempts.passed(done, 6)
    Run.objects.filter(pk=done.pk).update(close_asked_at=START, closed_at=START)
    _, lint, _, test = attempts.COMMANDS
    Validation.objects.create(
        project=project, run=done, number=1, count=0, host="local", minutes=30, most_fixers=0,
        mark="m", began_at=START, ended_at=START, state=ValidationState.FAILED,
        reason="test failed with exit status 1", commit="ab" * 20,
        spec={"commands": [{"name": c.name, "argv": c.argv, "kind": c.kind} for c in attempts.COMMANDS]},
        results=[attempts.result(lint, 1), attempts.result(test, 2, status=1, tail=attempts.PRINTED)],
        coverage={"percent": 91.0, "needed": 85.0, "passed": True, "changed_percent": None, "reason": ""},
        e2e={"passed": False, "failure_reason": "the issue is still open", "seconds": 71.0,
             "fixture_path": "/home/anna/e2e/1", "log": "e2e.txt"},
        follow_up_key="9",
    )  # fmt: skip
    page = open_page(f"/runs/{done.pk}/checks/", operator)
    wrong = looks(page, "checks-passed")
    page.goto(f"/runs/{done.pk}/")
    wrong += looks(page, "checks-passed-run-page")
    waiting = make.a_run(project, "9", slot=2, issue_title=TITLE)
    page.goto(f"/runs/{waiting.pk}/checks/")
    wrong += looks(page, "checks-none-yet")
    other = make.a_run(rows.a_tracked_project("other"), "1", slot=3, issue_title=TITLE)
    page.goto(f"/runs/{other.pk}/checks/")
    wrong += looks(page, "checks-not-gated")
    assert wrong == []
