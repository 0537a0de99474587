"""Retry: what a run left is discarded in the same press, and its issue starts anew (World: all faked)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from runs import tick
from runs.core.ports import SeamError
from runs.core.states import Outcome, RunState
from runs.followups import acts
from runs.kept import discard
from runs.models import AgentProfile, Discarding, Project, Rescue, Run, Settings, StartRequest
from tests.api.program import Program
from tests.fakes import World
from tests.followups.conftest import dead
from tests.web.people import confirmed, text_of
from tests.world.stories import start, work

pytestmark = pytest.mark.django_db(transaction=True)


def _discards(world: World) -> None:
    """What the worker does with what is to be discarded."""
    while world.queue.discards:
        discard.carry_out(world.lab, world.queue.discards.pop(0))


def _works(world: World) -> None:
    _discards(world)
    tick.tick(world.lab, project="demo")
    work(world)


@pytest.fixture
def run(world: World, project: Project) -> Run:
    return dead(world, project)


@pytest.fixture
def worker(world: World) -> None:
    """A worker does what there is whenever somebody waits for its answer."""
    object.__setattr__(world.lab, "pause", lambda seconds: _works(world))


def test_the_work_is_rescued_and_discarded_and_the_issue_starts_anew(
    world: World, project: Project, run: Run
) -> None:
    acts.retry(world.lab, run, by="anna")
    _works(world)
    made = Run.objects.active().get()
    assert (made.issue_key, made.state, made.continues) == ("7", RunState.WORKING, None)
    assert world.sessions.orders[made.session].argv[-1].startswith("You work unattended")
    assert Rescue.objects.get(project=project).branch == "afk/7"
    assert not Discarding.objects.exists()
    run.refresh_from_db()
    assert run.outcome == Outcome.DIED


def test_pressed_twice_or_by_two_people_it_makes_one_run(
    world: World, project: Project, run: Run
) -> None:
    acts.retry(world.lab, run, by="anna")
    with pytest.raises(acts.FollowUpRefused, match="is being discarded already"):
        acts.retry(world.lab, run, by="bob")
    _works(world)
    with pytest.raises(acts.FollowUpRefused, match="came after this one"):
        acts.retry(world.lab, run, by="bob")
    assert Run.objects.active().count() == 1


@pytest.mark.parametrize("was_discarded", [False, True])
def test_a_worker_that_is_killed_in_the_middle_goes_on_where_it_stopped(
    world: World, project: Project, run: Run, was_discarded: bool
) -> None:
    row = acts.retry(world.lab, run, by="anna")
    world.queue.discards.clear()
    Discarding.objects.filter(pk=row.pk).update(process="gone")
    if was_discarded:
        discard.discard(world.lab, project, "afk/7", "anna")
    world.dead_processes.add("gone")
    discard.tend(world.lab)
    _works(world)
    assert Run.objects.active().get().state == RunState.WORKING
    assert StartRequest.objects.filter(wanted_key="7", run__pk__gt=run.pk).count() == 1


@pytest.mark.every_case
@pytest.mark.parametrize("why", ["cap", "closed", "held", "tracker"])
def test_where_no_run_could_start_nothing_is_discarded(
    world: World, project: Project, run: Run, why: str
) -> None:
    if why == "cap":
        start(world, project, "8")
        Settings.objects.update(session_cap=1)
    elif why == "closed":
        world.tracker.close("demo", "7")
    elif why == "held":
        now = world.clock()
        until = now + timedelta(hours=1)
        AgentProfile.objects.update(hold="limit", held_at=now, held_until=until)
    else:
        world.tracker.fail()
    fresh = Run.objects.select_related("project__agent").get(pk=run.pk)
    with pytest.raises(acts.FollowUpRefused):
        acts.retry(world.lab, fresh, by="anna")
    assert Path(run.worktree).is_dir()
    assert not Discarding.objects.exists()


def test_work_that_cannot_be_discarded_starts_nothing_and_says_why(
    anna: Client, world: World, project: Project, run: Run, worker: None
) -> None:
    world.repos.delete_branch = _fails  # type: ignore[method-assign]
    answer = confirmed(anna).post(
        f"/runs/{run.pk}/retry", {"sure": "yes"}, headers={"HX-Request": "1"}
    )
    assert answer.status_code == 502
    assert "so nothing was started" in text_of(answer)
    assert not Run.objects.active().exists()


def _fails(*given: Any) -> None:
    raise SeamError("the disk is full")


def test_the_page_says_what_is_discarded_and_leads_to_the_new_run(
    anna: Client, world: World, run: Run, worker: None
) -> None:
    world.repos.trees[Path(run.worktree)].is_dirty = True
    client = confirmed(anna)
    assert f'href="/runs/{run.pk}/retry"' in text_of(client.get(f"/runs/{run.pk}/"))
    page = text_of(client.get(f"/runs/{run.pk}/retry"))
    assert "its worktree, which holds changes that are not committed" in page
    assert client.post(f"/runs/{run.pk}/retry").status_code == 200  # only asks
    assert not Discarding.objects.exists()
    answer = client.post(f"/runs/{run.pk}/retry", {"sure": "yes"})
    made = Run.objects.active().get()
    assert (answer.status_code, answer["Location"]) == (303, f"/runs/{made.pk}/")
    # Nobody is asked whether to discard what somebody else works on by now.
    answer = client.get(f"/runs/{run.pk}/retry", follow=True)
    assert answer.redirect_chain == [(f"/runs/{run.pk}/", 303)]
    assert f"Run {made.pk} of issue 7 came after this one. Retry that one." in text_of(answer)


def test_whoever_may_only_look_may_not_retry(vera: Client, run: Run) -> None:
    assert vera.post(f"/runs/{run.pk}/retry", {"sure": "yes"}).status_code == 403


def test_a_program_retries_a_run(world: World, operator: Any, run: Run, worker: None) -> None:
    answer = Program.of(operator).send("POST", f"/runs/{run.pk}/retry")
    made = Run.objects.active().get()
    assert (answer.status_code, answer.json()["run"]) == (202, made.pk)
