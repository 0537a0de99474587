"""A delivery that is told of while the run still is *starting* is looked at once it works."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import transaction

from runs.core.states import NoticeKind, RunState
from runs.dispatch import start_requests
from runs.lifecycle import launch
from runs.models import Project, Run
from runs.tick import tick
from runs.timeline import announce
from tests import make
from tests.fakes import World
from tests.world.stories import ready

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project(world: World) -> Project:
    made = make.a_project(agent=make.an_agent())
    world.tracker.add_root("demo")
    return made


def _open_pull(world: World, run: Run) -> None:
    with transaction.atomic():
        announce.tell(world.lab, NoticeKind.PULL_OPENED, "pull request 1 opened", run=run, by="x")


def _say_done(world: World, run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(look_asked_at=world.lab.now())


def _hear_webhook(world: World, run: Run) -> None:
    Project.objects.filter(pk=run.project_id).update(pulls_hooked_at=world.lab.now())


def _hear_old_webhook(world: World, run: Run) -> None:
    before = world.lab.now() - timedelta(seconds=2)
    Project.objects.filter(pk=run.project_id).update(pulls_hooked_at=before)


def _do_nothing(world: World, run: Run) -> None:
    pass


@pytest.mark.parametrize(
    ("meanwhile", "rings"),
    [
        pytest.param(_open_pull, 1, id="a pull request was opened"),
        pytest.param(_say_done, 1, id="the agent said that it is done"),
        pytest.param(_hear_webhook, 1, id="a webhook told of pull requests"),
        pytest.param(_hear_old_webhook, 0, id="a webhook before the agent was started"),
        pytest.param(_do_nothing, 0, id="nothing"),
    ],
)
def test_what_is_told_during_the_start_is_looked_at_at_once(
    world: World, project: Project, meanwhile: Callable[[World, Run], None], rings: int
) -> None:
    ready(world, "7", project.tracker_root)
    asked = start_requests.request(world.lab, project, "anna", "7")
    tick(world.lab, project=project.slug)
    run = Run.objects.get()
    world.bell.looks.clear()

    def pause(seconds: float) -> None:
        meanwhile(world, run)
        world.clock.forward(seconds=seconds)

    world.lab = replace(world.lab, pause=pause)
    launch.carry_out(world.lab, run.pk)

    asked.refresh_from_db()
    run.refresh_from_db()
    assert (asked.run_id, run.state) == (run.pk, RunState.WORKING)
    assert world.bell.looks == [project.slug] * rings
