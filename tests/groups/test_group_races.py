"""Tasks under many hands: each is taken once, and nobody completes what another has."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import close_old_connections, connection

from runs.core.states import NoticeKind, Outcome
from runs.groups import acts as groups
from runs.groups import tasks
from runs.groups import workers as hiring
from runs.groups.acts import Chosen, NameTaken
from runs.groups.task_rules import MOST_WORKERS
from runs.groups.tasks import NewTask, TaskRefused
from runs.groups.terms import TaskStatus
from runs.lifecycle import outcomes
from runs.models import Notice, Project, Run, Task, TaskGroup, Worker
from tests import make
from tests.fakes import World
from trackers.base import NotFound

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres]

CLAIMERS, TASKS = 50, 20


def at_once(*acts: Callable[[], object]) -> list[object]:
    """What each act gave, or the error that it ended with, all begun at the same time."""
    gate = threading.Barrier(len(acts))

    def act(one: Callable[[], object]) -> object:
        try:
            close_old_connections()
            gate.wait()
            return one()
        except Exception as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(act, acts))


@pytest.fixture
def project(world: World) -> Project:
    world.tracker.add_root("demo")
    return make.a_project()


def a_group(world: World, project: Project, count: int) -> TaskGroup:
    new = [NewTask(f"Task {number}") for number in range(count)]
    return groups.make(world.lab, project, "shared", new=new, by="anna")


@pytest.mark.long
@pytest.mark.row("RUNE-41", level="contract")
def test_fifty_claimers_take_each_of_twenty_tasks_once(world: World, project: Project) -> None:
    group = a_group(world, project, TASKS)
    names = [f"w{number}" for number in range(CLAIMERS)]
    workers = [hiring.worker_of(group, name, is_new=True) for name in names]

    def claimer(worker: Worker) -> Callable[[], object]:
        return lambda: tasks.claim(world.lab, group, worker, by=worker.name)

    found = at_once(*map(claimer, workers))

    taken = [one for one in found if isinstance(one, Task)]
    assert [one for one in found if isinstance(one, Exception)] == []
    assert len(taken) == len({one.key for one in taken}) == len({one.owner for one in taken})
    assert len(taken) == TASKS
    assert set(Task.objects.values_list("status", "claim")) == {(TaskStatus.IN_PROGRESS, 1)}
    assert Notice.objects.filter(kind=NoticeKind.TASK_CLAIMED).count() == TASKS


def test_of_many_that_come_in_one_moment_a_group_takes_as_many_as_it_has_room_for(
    world: World, project: Project
) -> None:
    group = a_group(world, project, 1)
    there = [Worker(group=group, name=f"w{number}") for number in range(MOST_WORKERS - 2)]
    Worker.objects.bulk_create(there)

    names = ("ash", "rowan", "elm", "ash", "w1", "oak")
    found = at_once(
        *[lambda name=name: hiring.worker_of(group, name, is_new=True) for name in names]
    )

    refused = [one for one in found if isinstance(one, Exception)]
    assert {one.code for one in refused if isinstance(one, TaskRefused)} == {"full"}, refused
    assert Worker.objects.filter(group=group).count() == MOST_WORKERS
    hiring.worker_of(group, "w1", is_new=True)
    with pytest.raises(TaskRefused, match="at most 200 workers, so late was not added"):
        hiring.worker_of(group, "late", is_new=True)


@pytest.mark.row("RUNE-41", level="contract")
def test_a_completion_and_a_release_in_one_moment_leave_one_of_both(
    world: World, project: Project
) -> None:
    group = a_group(world, project, 6)
    ash = hiring.worker_of(group, "ash", is_new=True)
    rowan = hiring.worker_of(group, "rowan", is_new=True)
    for number in range(1, 7):
        key = str(number)
        tasks.claim(world.lab, group, ash, key=key, by="ash")

        def take_over(key: str = key) -> None:
            tasks.hand_back(world.lab, group, key, by="anna")
            tasks.claim(world.lab, group, rowan, key=key, by="rowan")

        done, taken = at_once(
            lambda key=key: tasks.complete(world.lab, group, key, worker=ash, by="ash"),  # type: ignore[misc]
            take_over,
        )
        task = Task.objects.get(group=group, key=key)
        told = Notice.objects.filter(
            kind=NoticeKind.TASK_COMPLETED, text__startswith=f"task {task}"
        )
        if isinstance(done, Task):
            assert (task.status, task.owner) == (TaskStatus.COMPLETED, "ash")
            assert isinstance(taken, TaskRefused) and taken.code == "done"
            assert told.count() == 1
        else:
            assert isinstance(done, TaskRefused) and done.code == "not_yours", done
            assert (task.status, task.owner, task.claim) == (TaskStatus.IN_PROGRESS, "rowan", 2)
            assert (taken, told.count()) == (None, 0)


def test_tasks_added_in_one_moment_get_keys_of_their_own(world: World, project: Project) -> None:
    group = a_group(world, project, 1)
    adders = [lambda: tasks.add(world.lab, group, [NewTask("more")] * 3, by="anna")] * 6
    assert not [one for one in at_once(*adders) if isinstance(one, Exception)]
    keys = Task.objects.filter(group=group).values_list("key", flat=True)
    assert sorted(map(int, keys)) == list(range(1, 20))


def test_of_two_groups_of_one_name_one_is_made(world: World, project: Project) -> None:
    makers = [lambda: groups.make(world.lab, project, "g", by="anna")] * 4
    found = at_once(*makers)
    assert sum(isinstance(one, TaskGroup) for one in found) == 1
    assert sum(isinstance(one, NameTaken) for one in found) == 3


@pytest.mark.row("C-21", level="contract")
def test_a_group_made_while_its_runs_end_sees_each_end(world: World, project: Project) -> None:
    keys = [str(number) for number in range(1, 7)]
    runs: list[Run] = []
    for slot, key in enumerate(keys, 1):
        world.tracker.add_issue("demo", f"Issue {key}", key, labels=["v2"])
        runs.append(make.a_run(project, key, slot=slot))

    def ender(run: Run, outcome: Outcome) -> Callable[[], object]:
        return lambda: outcomes.record(world.lab, run, outcome, "raced")

    ends = [Outcome.SUCCEEDED, Outcome.DIED] * 3
    found = at_once(
        lambda: groups.from_issues(world.lab, project, "v2", Chosen(label="v2"), by="anna"),
        *map(ender, runs, ends),
    )
    assert not [one for one in found if isinstance(one, Exception)], found
    stands = dict(Task.objects.values_list("issue_key", "status"))
    assert stands == {
        key: TaskStatus.COMPLETED if end is Outcome.SUCCEEDED else TaskStatus.PENDING
        for key, end in zip(keys, ends, strict=True)
    }


def test_a_group_deleted_under_its_workers_leaves_nothing(world: World, project: Project) -> None:
    group = a_group(world, project, TASKS)
    workers = [hiring.worker_of(group, f"w{number}", is_new=True) for number in range(8)]

    def works(worker: Worker) -> Callable[[], object]:
        def act() -> None:
            while task := tasks.claim(world.lab, group, worker, by=worker.name):
                tasks.complete(world.lab, group, task.key, worker=worker, by=worker.name)

        return act

    found = at_once(lambda: groups.delete(world.lab, group, "anna"), *map(works, workers))
    strange = [one for one in found if one and not isinstance(one, TaskRefused | NotFound)]
    assert strange == []
    assert not TaskGroup.objects.exists()
    assert not Task.objects.exists()
    with pytest.raises(TaskRefused):
        hiring.worker_of(group, "late", is_new=True)
