"""Attempts that a worker of the version before left at the gates have jobs now, and are gone on with."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from runs.core.states import AttemptState
from runs.gates import runner
from runs.jobs.recovery import recover_jobs
from runs.models import Attempt, Job, Run
from tests import make
from tests.fakes import World
from tests.gates import attempt_rows

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres]

BEFORE = "boot:1:1"


@pytest.fixture
def run(transactional_db: None) -> Run:
    return attempt_rows.checking(make.a_project())


def begun(world: World, run: Run, **fields: Any) -> Attempt:
    """An attempt as the version before stored it."""
    found = attempt_rows.an_attempt(run, **fields)
    world.dead_processes.add(BEFORE)
    return found


def recover(world: World) -> Job:
    for _ in range(2):
        runner.request_missing_jobs(world.lab)
    recover_jobs(world.lab, [runner.HANDLER])
    return Job.objects.get()


def test_one_whose_worker_is_gone_is_taken_over(world: World, run: Run) -> None:
    attempt = begun(world, run, runner=BEFORE, beat_at=world.clock.now, losses=1, troubles=2)
    job = recover(world)
    assert (job.owner, job.losses, job.troubles) == ("", 2, 2)
    assert set(world.queue.attempts) == {attempt.pk}
    runner.carry_out(world.lab, attempt.pk, judges={})
    assert (
        Attempt.objects.get().state == AttemptState.ERROR
    )  # it was claimed, and nothing judges here


def test_one_that_somebody_works_on_is_left_to_it(world: World, run: Run) -> None:
    begun(world, run, runner="boot:2:2", beat_at=world.clock.now)
    assert recover(world).owner == "boot:2:2"
    world.clock.forward(minutes=10)
    assert recover(world).owner == ""


@pytest.mark.parametrize("beat_at", [None, "stale"])
def test_one_that_waits_waits_on(world: World, run: Run, beat_at: str | None) -> None:
    """The version before left the heartbeat when it let go."""
    now = world.clock.now
    attempt = begun(world, run, not_before=now + timedelta(minutes=5), beat_at=beat_at and now)
    recover(world)
    before = len(world.queue.attempts)
    runner.carry_out(world.lab, attempt.pk, judges={})
    world.clock.forward(minutes=5)
    recover(world)
    assert world.queue.attempts[before:] == [attempt.pk]
    assert Attempt.objects.get().is_running


def test_one_that_has_ended_is_tidied_up(world: World, run: Run) -> None:
    begun(world, run, state=AttemptState.FAILED, runner=BEFORE, beat_at=world.clock.now)
    assert recover(world).finished_at is not None
    assert Attempt.objects.get().settled_at is not None


def test_settled_ones_and_those_of_other_hosts_get_none(world: World, run: Run) -> None:
    attempt_rows.an_attempt(run, state=AttemptState.FAILED, settled_at=world.clock.now)
    Attempt.objects.filter(pk=attempt_rows.an_attempt(run, 2).pk).update(host="far")
    runner.request_missing_jobs(world.lab)
    assert not Job.objects.exists()
