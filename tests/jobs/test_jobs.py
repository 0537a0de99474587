"""What every job is promised: run twice, raced, killed at each step, silent, in trouble, too late."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction

from runs.core.ports import Lab
from runs.core.states import JobKind
from runs.jobs import recovery, runner
from runs.jobs.recovery import Handler
from runs.jobs.rules import Limits
from runs.jobs.runner import HeldJob, JobSpec, LostError
from runs.models import Job, Project
from tests import make
from tests.fakes import World
from tests.patience import PATIENCE

pytestmark = pytest.mark.django_db(transaction=True)

SPEC = JobSpec(JobKind.ATTEMPT, lambda queue, number: queue.check(number))
FORGIVING = dataclasses.replace(
    SPEC, limits=Limits(most_losses=2, forgives_living=True, time_to_leave=timedelta(0))
)


class Desk:
    """A project whose row is what jobs are about: they write the words of their end into it."""

    def __init__(self, world: World, spec: JobSpec = SPEC) -> None:
        self.world, self.lab, self.spec = world, world.lab, spec
        self.other = dataclasses.replace(world.lab, process="boot:2:2")
        self.project = make.a_project()
        self.losses: list[int] = []

    def request(self, **more: Any) -> Job:
        with transaction.atomic():
            return runner.request(
                self.lab, self.spec, self.project.pk, host=more.pop("host", "local"), **more
            )

    def hold(self, lab: Lab | None = None) -> HeldJob | None:
        lab = lab or self.lab
        job = runner.claim(lab, self.spec.kind, self.project.pk)
        rows = Project.objects.filter(pk=self.project.pk, error="")
        return job and HeldJob(lab, self.spec, job, rows, lambda: False)

    def held(self, lab: Lab | None = None) -> HeldJob:
        found = self.hold(lab)
        assert found is not None
        return found

    def recover(self, lab: Lab | None = None) -> None:
        handler = Handler(self.spec, self._read, self._close, self._lost, self._give_up)
        recovery.recover_jobs(lab or self.lab, [handler])

    def _read(self, numbers: Sequence[int]) -> Mapping[int, Project]:
        return Project.objects.in_bulk(numbers)

    def _close(self, lab: Lab, project: Project, is_worked_on: bool) -> bool:
        if not project.error or is_worked_on:
            return False
        return runner.finish(lab, self.spec.kind, project.pk)

    def _lost(self, lab: Lab, project: Project) -> None:
        self.losses.append(project.pk)

    def _give_up(self, lab: Lab, project: Project, job: Job) -> None:
        Project.objects.filter(pk=project.pk).update(error=f"given up after {job.losses} losses")
        runner.finish(lab, self.spec.kind, project.pk)

    @property
    def job(self) -> Job:
        return Job.objects.latest("pk")

    @property
    def enqueued(self) -> list[int]:
        return self.world.queue.attempts

    @property
    def result(self) -> str:
        return Project.objects.get(pk=self.project.pk).error


@pytest.fixture
def desk(world: World) -> Desk:
    return Desk(world)


def test_a_job_is_enqueued_when_what_asked_for_it_is_stored(desk: Desk) -> None:
    with suppress(ZeroDivisionError), transaction.atomic():
        desk.request()
        raise ZeroDivisionError
    assert (Job.objects.count(), desk.enqueued) == (0, [])
    with transaction.atomic():
        desk.request()
        assert desk.enqueued == []
    assert desk.enqueued == [desk.project.pk]


def test_requested_again_it_is_the_same_and_after_its_end_another_one(desk: Desk) -> None:
    first = desk.request()
    assert desk.request() == first
    assert desk.enqueued == [desk.project.pk]
    desk.held().finish()
    assert desk.request() != first
    assert len(desk.enqueued) == 2


@pytest.mark.postgres
def test_of_several_that_request_at_the_same_moment_one_job_comes(desk: Desk) -> None:
    jobs = raced(lambda _: desk.request().pk)
    assert len(jobs) == 5 and len(set(jobs)) == Job.objects.count() == 1


@pytest.mark.postgres
def test_of_several_that_claim_at_the_same_moment_one_gets_it(desk: Desk) -> None:
    desk.request()
    labs = [dataclasses.replace(desk.lab, process=f"boot:{one}:1") for one in range(5)]
    found = raced(lambda one: desk.hold(labs[one]))
    assert len([one for one in found if one is not None]) == 1
    assert (desk.job.token, desk.job.owner.startswith("boot:")) == (1, True)


def raced(act: Any) -> list[Any]:
    found: list[Any] = []
    barrier = threading.Barrier(5)

    def run(number: int) -> None:
        try:
            barrier.wait(PATIENCE)
            found.append(act(number))
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(one,)) for one in range(5)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(PATIENCE)
    return found


def test_carried_out_twice_it_is_done_once(desk: Desk) -> None:
    desk.request()
    held = desk.held()
    assert desk.hold() is None
    held.store(error="done")
    held.finish()
    assert desk.hold() is None
    with pytest.raises(LostError):
        held.finish()
    desk.recover()
    assert (desk.result, desk.enqueued) == ("done", [desk.project.pk])


@pytest.mark.postgres
@pytest.mark.parametrize("step", ["requested", "claimed", "stored", "put off"])
def test_an_owner_that_is_killed_at_any_step_is_followed_by_another(desk: Desk, step: str) -> None:
    desk.request()
    if step != "requested":
        held = desk.held()
        if step == "stored":
            held.store(clone_progress="half")
        if step == "put off":
            held.put_off()
        desk.world.dead_processes.add(desk.lab.process)
    desk.recover(desk.other)
    assert len(desk.enqueued) == 2, "asked for once more"
    assert desk.losses == [desk.project.pk] * (step != "requested")
    desk.world.clock.forward(minutes=1)
    held = desk.held(desk.other)
    held.store(error="done")
    held.finish()
    assert (desk.result, desk.job.losses) == ("done", int(step != "requested"))


def test_one_killed_between_its_end_and_that_of_the_job_is_not_done_again(desk: Desk) -> None:
    desk.request()
    desk.held().store(error="done")
    desk.world.dead_processes.add(desk.lab.process)
    desk.recover(desk.other)
    assert (desk.result, desk.losses, len(desk.enqueued)) == ("done", [], 1)
    assert desk.job.finished_at is not None


@pytest.mark.postgres
def test_a_silent_owner_that_comes_back_writes_nothing_any_more(desk: Desk) -> None:
    """Also one of the same process, whose name says nothing then."""
    desk.request()
    old = desk.held()
    desk.world.clock.forward(minutes=9, seconds=59)
    desk.recover()
    assert desk.job.owner
    desk.world.clock.forward(seconds=1)
    desk.recover()
    assert (desk.job.owner, desk.job.losses, len(desk.enqueued)) == ("", 1, 1)
    assert desk.hold() is None, "it has time to leave first"
    assert not old.is_held()
    desk.world.clock.forward(seconds=30)
    desk.recover()
    assert len(desk.enqueued) == 2
    new = desk.held()
    assert not old.is_held()
    for write in (old.finish, old.put_off, lambda: old.store(error="old")):
        with pytest.raises(LostError):
            write()
    old.release()
    assert new.is_held()
    new.store(error="new")
    assert desk.result == "new"


def test_a_heartbeat_every_quarter_of_a_minute_keeps_the_job(desk: Desk) -> None:
    desk.request()
    held = desk.held()
    for _ in range(100):
        desk.world.clock.forward(seconds=10)
        assert held.is_held()
        desk.recover()
    assert desk.job.losses == 0


def test_work_that_is_not_wanted_any_more_is_not_held(desk: Desk) -> None:
    desk.request()
    held = desk.held()
    Project.objects.update(error="removed")
    assert not held.is_held()
    with pytest.raises(LostError):
        held.store(clone_progress="half")


def test_trouble_is_retried_after_waits_that_grow_and_progress_begins_anew(desk: Desk) -> None:
    desk.request()
    waits = []
    for _ in range(7):
        held = desk.held()
        waits.append(int(held.put_off().total_seconds()))
        held.release()
        desk.recover()
        assert desk.hold() is None, "not before its time"
        desk.world.clock.forward(seconds=waits[-1])
    assert waits == [30, 60, 120, 240, 480, 600, 600]
    assert len(desk.enqueued) == 1
    desk.recover()
    assert len(desk.enqueued) == 2
    held = desk.held()
    held.note_progress()
    assert held.put_off(timedelta(0)) == timedelta(0)
    assert (desk.job.troubles, desk.job.losses) == (1, 0)


class Away:
    """A database that answers nothing until the clock of the world says so."""

    def __init__(self, world: World, seconds: float) -> None:
        self.world, self.until = world, world.clock.now + timedelta(seconds=seconds)
        self.lab = dataclasses.replace(world.lab, pause=lambda _: world.clock.forward(seconds=1))

    def __call__(self, execute: Any, *args: Any) -> Any:
        if self.world.clock.now < self.until:
            raise OperationalError("server closed the connection unexpectedly")
        return execute(*args)


def test_a_database_that_is_away_in_between_takes_nothing_away(desk: Desk) -> None:
    desk.request()
    away = Away(desk.world, 60)
    held = desk.held(away.lab)
    with connection.execute_wrapper(away):
        assert held.is_held()
        held.persist(lambda: held.store(error="done"))
    assert (desk.result, held._mine().exists()) == ("done", True)


def test_a_database_that_stays_away_leaves_the_job_to_the_next_owner(desk: Desk) -> None:
    desk.request()
    away = Away(desk.world, 4000)
    held = desk.held(away.lab)
    with connection.execute_wrapper(away), pytest.raises(OperationalError):
        held.persist(lambda: held.store(error="done"))
    assert (desk.result, desk.job.owner) == ("", desk.lab.process)
    desk.world.clock.forward(minutes=10)
    desk.recover()
    assert desk.job.losses == 1


def test_after_so_many_losses_it_is_given_up(desk: Desk) -> None:
    desk.request()
    for number in (1, 2, 3):
        lab = dataclasses.replace(desk.lab, process=f"boot:{number}:9")
        desk.held(lab)
        desk.world.dead_processes.add(lab.process)
        desk.recover()
    assert (desk.result, len(desk.losses)) == ("given up after 3 losses", 2)
    assert desk.job.finished_at is not None
    desk.recover()
    assert len(desk.enqueued) == 3


@pytest.mark.parametrize("is_owned", [True, False])
def test_after_its_deadline_it_is_given_up_and_its_owner_leaves(desk: Desk, is_owned: bool) -> None:
    desk.request(deadline=timedelta(minutes=5))
    held = desk.held() if is_owned else None
    desk.world.clock.forward(minutes=4, seconds=59)
    desk.recover()
    assert desk.result == ""
    desk.world.clock.forward(seconds=1)
    assert desk.hold() is None
    assert held is None or not held.is_held()
    desk.recover()
    assert desk.result == "given up after 0 losses"
    if held is not None:
        with pytest.raises(LostError):
            held.store(error="")


def test_the_job_of_another_host_is_left_alone(desk: Desk) -> None:
    desk.request(host="far")
    assert desk.hold() is None
    Job.objects.update(owner="boot:7:7", beat_at=desk.lab.now())
    desk.world.dead_processes.add("boot:7:7")
    desk.world.clock.forward(hours=1)
    desk.recover()
    assert (desk.job.owner, desk.job.losses, len(desk.enqueued)) == ("boot:7:7", 0, 1)


def test_the_job_of_a_row_that_is_gone_is_over(desk: Desk) -> None:
    desk.request()
    desk.project.delete()
    desk.recover()
    assert desk.job.finished_at is not None


def test_what_fails_for_one_job_keeps_no_other_from_being_recovered(
    desk: Desk, caplog: Any
) -> None:
    desk.request()
    other = make.a_project("other")
    with transaction.atomic():
        runner.request(desk.lab, desk.spec, other.pk, host="local")
    desk.enqueued.clear()

    def breaks(lab: Lab, project: Project, _: bool) -> bool:
        if project.pk == desk.project.pk:
            raise ZeroDivisionError
        return False

    handler = Handler(desk.spec, desk._read, breaks, desk._lost, desk._give_up)
    recovery.recover_jobs(desk.lab, [handler])
    assert desk.enqueued == [other.pk]
    assert "a job was left for the next look" in caplog.text


def test_a_forgiving_kind_knows_the_jobs_of_its_own_process(world: World) -> None:
    desk = Desk(world, FORGIVING)
    desk.request()
    with desk.held() as held:
        world.clock.forward(hours=1)
        desk.recover()
        assert held.is_held(), "a thread of ours works on it, however silent"
    for losses in (1, 2, 3):
        desk.recover()  # it was let go without a word
        assert (desk.job.owner, desk.job.losses) == ("", losses)
        desk.held()
    world.dead_processes.add(desk.lab.process)
    desk.recover(desk.other)
    assert desk.result == "given up after 4 losses"


@pytest.mark.postgres
@pytest.mark.parametrize(
    "broken",
    [
        {"owner": "boot:1:1", "beat_at": None},
        {"owner": "", "beat_at": "2026-11-27T00:00:00Z"},
        {
            "owner": "boot:1:1",
            "beat_at": "2026-11-27T00:00:00Z",
            "finished_at": "2026-11-27T00:00:00Z",
        },
    ],
)
def test_rows_that_contradict_themselves_are_refused(desk: Desk, broken: dict[str, Any]) -> None:
    desk.request()
    with pytest.raises(IntegrityError):
        Job.objects.update(**broken)
