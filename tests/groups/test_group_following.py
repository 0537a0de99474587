"""A task of an issue through its runs: from the press of Start to the tick that finds the pull request."""

from __future__ import annotations

from typing import Any

import pytest

from runs import tick
from runs.core.states import NoticeKind, RunState
from runs.dispatch import start_requests
from runs.groups import acts as groups
from runs.groups.acts import Chosen
from runs.lifecycle import launch
from runs.lifecycle.stop import stop
from runs.models import Notice, Project, Run, Settings, Task, TaskGroup
from tests import make
from tests.fakes import World

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project(world: World) -> Project:
    made = make.a_project(agent=make.an_agent())
    world.tracker.add_root("demo")
    world.tracker.add_issue("demo", "Issue 7", "7", labels=[made.ready_label])
    Settings.current()
    return made


@pytest.fixture
def group(world: World, project: Project) -> TaskGroup:
    return groups.from_issues(world.lab, project, "v2", Chosen(keys=["7"]), by="anna")


def press_start(world: World, project: Project) -> Run:
    asked = start_requests.request(world.lab, project, "anna")
    tick.tick(world.lab, force=True)
    asked.refresh_from_db()
    assert asked.run is not None, asked.text
    return asked.run


def stands(group: TaskGroup) -> tuple[str, str, int]:
    task = Task.objects.get(group=group)
    return task.status, task.owner, task.claim


@pytest.mark.row("C-21", level="contract")
def test_a_task_is_in_progress_from_the_start_of_its_run_to_its_success(
    world: World, project: Project, group: TaskGroup
) -> None:
    run = press_start(world, project)
    assert run.state == RunState.STARTING
    assert stands(group) == ("in_progress", f"run-{run.pk}", 1)
    launch.carry_out(world.lab, run.pk)
    assert stands(group) == ("in_progress", f"run-{run.pk}", 1)
    world.tracker.add_pull("demo", "afk/7")
    tick.tick(world.lab, force=True)
    run.refresh_from_db()
    assert run.outcome == "succeeded"
    assert stands(group) == ("completed", f"run-{run.pk}", 1)
    told = Notice.objects.filter(group=group, run=run).order_by("pk")
    assert [one.kind for one in told] == [NoticeKind.TASK_CLAIMED, NoticeKind.TASK_COMPLETED]


@pytest.mark.row("C-21", level="contract")
def test_a_start_that_fails_and_a_stop_let_the_task_wait_again(
    world: World, project: Project, group: TaskGroup
) -> None:
    run = press_start(world, project)
    launch.give_up(world.lab, run, "the disk is full")
    assert stands(group) == ("pending", "", 1)
    assert Task.objects.get().note == f"Run {run.pk} failed."
    again = press_start(world, project)
    launch.carry_out(world.lab, again.pk)
    again.refresh_from_db()
    assert stands(group) == ("in_progress", f"run-{again.pk}", 2)
    stop(world.lab, again, "anna")
    assert stands(group) == ("pending", "", 2)


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        ({"outcome": "failed", "started_at": None}, "completed"),
        ({"outcome": "died", "amends": 8}, "completed"),
        ({"outcome": "", "amends": 8}, "completed"),
        ({"outcome": "died"}, "pending"),
    ],
    ids=["a start that failed", "changes that died", "changes at work", "a later run that died"],
)
def test_a_new_group_knows_what_was_delivered_before_later_runs(
    world: World, project: Project, later: dict[str, Any], expected: str
) -> None:
    now = world.lab.now()
    ended = {"state": RunState.ENDED, "slot": None, "ended_at": now}
    first = make.a_run(project, outcome="succeeded", **ended)
    state = ended if later["outcome"] else {}
    make.a_run(project, **{"continues": first, "started_at": now, **state, **later})
    group = groups.from_issues(world.lab, project, "v2", Chosen(keys=["7"]), by="anna")
    assert stands(group)[0] == expected


def test_a_closed_group_follows_no_more(world: World, project: Project, group: TaskGroup) -> None:
    groups.close(world.lab, group, "anna")
    press_start(world, project)
    assert stands(group) == ("pending", "", 0)
