"""Accepted work whose issue labsite has still to close is discarded by whoever says so explicitly."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from runs.core.states import CompletionPolicy
from runs.followups import acts as follow_ups
from runs.gates import levels
from runs.kept import counts, discard
from runs.models import Discarding, Notice, Project, Rescue, Run
from tests import make
from tests.api.program import Program
from tests.fakes import World
from tests.watch.test_watch_pages import words
from tests.web.people import confirmed, text_of

pytestmark = pytest.mark.django_db

SAID = "passed its gates (commit aaaaaaa), and labsite closes after the run level issue 7."
DOOR = "discard"


@pytest.fixture
def anna(anna: Client, world: World) -> Client:
    return confirmed(anna)


@pytest.fixture
def project(world: World) -> Project:
    """Issue 7 is parked with accepted work, issue 8 with other work."""
    world.tracker.add_root("demo")
    made = make.a_project(policy=CompletionPolicy.GATES)
    repo = made.repo(world.lab.paths)
    world.repos.heads[repo] = {"afk/7": "a" * 40, "afk/8": "b" * 40}
    world.repos.counts = {"afk/7": 2, "afk/8": 1}
    make.a_run(made, "7", outcome="succeeded", branch="afk/7", accepted_commit="a" * 40, attempts=1)
    counts.take(world.lab, made)
    return made


def branches(world: World, project: Project) -> Any:
    return world.repos.heads[project.repo(world.lab.paths)]


@pytest.mark.row("LAB-123", level="contract")
def test_the_page_asks_with_a_sentence_and_goes_on_from_its_own_question(
    anna: Client, world: World, project: Project
) -> None:
    at = f"/projects/{project.pk}/parked/"
    shown = text_of(anna.get(at))
    assert "accepted, issue open" in shown
    assert "Press again: discard afk/8" in shown
    assert "Press again: discard afk/7" not in shown
    asked = text_of(anna.post(f"{at}{DOOR}", {"branch": "afk/7"}))
    assert SAID in words(asked)
    assert 'name="even_accepted"' in asked
    assert 'name="even_accepted"' not in text_of(anna.post(f"{at}{DOOR}", {"branch": "afk/8"}))
    refused = anna.post(
        f"{at}{DOOR}", {"branch": "afk/7", "sure": "yes"}, headers={"HX-Request": "true"}
    )
    assert refused.status_code == 409
    assert SAID in words(text_of(refused))
    assert "afk/7" in branches(world, project)
    anna.post(f"{at}{DOOR}", {"branch": "afk/7", "sure": "yes", "even_accepted": "yes"})
    assert "afk/7" not in branches(world, project)
    run = Run.objects.get()
    assert (run.accepted_commit, run.close_asked_at) == ("", None)
    assert levels.read_levels([run]) == {}
    assert not levels.find_waiting_runs(project).exists()
    assert Rescue.objects.count() == 1
    said = Notice.objects.get(kind="work.discarded").text
    assert "The work was accepted; its issue stays open" in said


@pytest.mark.row("LAB-124", level="contract")
def test_a_program_says_so_in_a_field(operator: User, world: World, project: Project) -> None:
    program = Program.of(operator)
    at = f"/projects/{project.pk}/parked/discard"
    answer = program.post(at, {"branch": "afk/7"})
    assert (answer.status_code, answer.json()["code"]) == (409, "accepted")
    assert SAID in answer.json()["text"]
    assert "afk/7" in branches(world, project)
    assert program.post(at, {"branch": "afk/8"}).status_code == 200
    done = program.post(at, {"branch": "afk/7", "even_accepted": True})
    assert done.status_code == 200, done.content
    assert "afk/7" not in branches(world, project)


def test_an_issue_that_is_being_closed_is_not_closed_after_its_work_went(
    world: World, project: Project
) -> None:
    Run.objects.update(close_asked_at=world.clock.now)
    with pytest.raises(discard.DiscardRefused, match="labsite is closing issue 7"):
        discard.begin(world.lab, project, "afk/7", "anna")
    discard.begin(world.lab, project, "afk/7", "anna", even_accepted=True)
    assert Run.objects.get().close_asked_at is None


def test_what_labsite_closed_goes_as_ever(world: World, project: Project) -> None:
    Run.objects.update(close_asked_at=world.clock.now, closed_at=world.clock.now)
    discard.begin(world.lab, project, "afk/7", "anna")
    assert "afk/7" not in branches(world, project)
    assert Run.objects.get().accepted_commit == "a" * 40


def test_a_later_run_of_the_branch_is_not_retried_over_it(world: World, project: Project) -> None:
    later = make.a_run(
        project, "7", slot=2, outcome="failed", branch="afk/7", settled_at=world.clock.now
    )
    with pytest.raises(follow_ups.FollowUpRefused, match="labsite closes after the run level"):
        follow_ups.retry(world.lab, later, by="anna")
    assert not Discarding.objects.exists()
