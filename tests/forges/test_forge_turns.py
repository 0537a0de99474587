"""On a forge that is asked about each issue by itself: an issue that cannot start keeps no other waiting."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from runs import tick
from runs.dispatch import explain, facts, start_requests
from runs.dispatch import rules as launching
from runs.dispatch.blocking import UNASKED
from runs.dispatch.eligibility import Queue
from runs.models import Project, Run, Settings, StartRequest, StartWait
from runs.watch import polling
from tests import make
from tests.fakes import World
from tests.forge_hours import READY, Hours, gitea
from tests.trackers.forge import faults

pytestmark = pytest.mark.django_db(transaction=True)


def _issues(hours: Hours, *bodies: str, label: str = READY) -> None:
    for body in bodies:
        hours.repo.issue("ready", body=body, labels=[label])


def _by(*keys: int) -> str:
    return "## Blocked by\n" + "".join(f"- #{key}\n" for key in keys)


def _queues(world: World) -> list[Queue]:
    """What the launch pass knows of all projects."""
    projects = Project.objects.order_by("pk")
    return facts.gather(world.lab, Settings.current(), projects, is_auto=True)


def _startable(queue: Queue) -> list[str]:
    return [one.key for one in launching.claimable(queue)]


def _unasked(queue: Queue) -> list[str]:
    return [one.key for one in queue.ready or () if one.block == UNASKED]


@pytest.mark.parametrize(
    ("bodies", "key"),
    [
        pytest.param((_by(50), "", ""), "2", id="blocked by one that is not ready"),
        pytest.param((_by(2), "", ""), "2", id="blocked by one that is ready"),
        pytest.param((_by(2), _by(1), ""), "3", id="two that wait for each other"),
    ],
)
def test_behind_issues_that_their_texts_block_the_next_one_starts(
    world: World, bodies: tuple[str, ...], key: str
) -> None:
    hours = gitea(world, is_auto=True)
    _issues(hours, *bodies)
    hours.repo.issue("not ready", number=50)

    hours.passes(15, minutes=5)

    assert list(Run.objects.values_list("issue_key", flat=True)) == [key]


def test_an_issue_about_which_the_forge_gives_no_answer_keeps_no_other_from_its_start(
    world: World,
) -> None:
    hours = gitea(world, is_auto=True)
    _issues(hours, "", "", "")
    path = "/issues/1/dependencies"
    hours.forge.faults.add(faults.not_json(), times=faults.FOREVER, path=path)

    hours.passes(15, minutes=5)

    assert list(Run.objects.values_list("issue_key", flat=True)) == ["2"]

    Run.objects.all().delete()
    hours.forge.faults.clear()
    world.clock.forward(minutes=10)
    (queue,) = _queues(world)
    assert "1" in _startable(queue), "it is asked about again after a while"


def test_a_start_without_a_number_takes_the_first_that_no_text_blocks(world: World) -> None:
    hours = gitea(world)
    _issues(hours, _by(50), "", "")
    hours.repo.issue("not ready", number=50)

    start_requests.request(world.lab, hours.project, by="anna", wanted="")
    tick.tick(world.lab, force=True)

    assert StartRequest.objects.get().answer == "started"
    assert Run.objects.get().issue_key == "2"


def test_where_all_that_is_left_is_blocked_by_its_text_there_is_nothing_to_wait_for(
    world: World,
) -> None:
    hours = gitea(world)
    _issues(hours, _by(50), _by(50))
    hours.repo.issue("not ready", number=50)
    (queue,) = _queues(world)
    assert polling.poll_of(queue).ready == 0
    _, told = explain.explain(world.lab, hours.project)
    assert all("blocked by #50" in " ".join(o.text for o in one.failed) for one in told)


def _claim(hours: Hours) -> None:
    hours.branch("afk/1")


def _fail_start(hours: Hours) -> None:
    retry = hours.world.clock.now + timedelta(hours=1)
    StartWait.objects.create(project=hours.project, issue_key="1", retry_at=retry)


def _block_by_text(hours: Hours) -> None:
    hours.forge.happen()
    hours.repo.items[1].body = _by(50)


def _block_by_forge(hours: Hours) -> None:
    item = hours.repo.items[1]
    item.blocked_by.append((hours.repo, hours.repo.items[50]))
    item.updated_at = hours.forge.happen()


@pytest.mark.parametrize("hinder", [_claim, _fail_start, _block_by_text, _block_by_forge])
def test_when_the_one_that_was_asked_about_cannot_start_the_next_is_asked_about(
    world: World, hinder: Callable[[Hours], None]
) -> None:
    hours = gitea(world)
    _issues(hours, "", "", "")
    hours.repo.issue("not ready", number=50)
    (queue,) = _queues(world)
    assert (_startable(queue), _unasked(queue)) == (["1"], ["2", "3"])

    world.clock.forward(seconds=45)
    hinder(hours)
    (queue,) = _queues(world)

    assert "2" in _startable(queue)


def test_projects_on_one_repository_have_each_its_own_turn(world: World) -> None:
    hours = gitea(world)
    first = hours.project
    make.a_project(
        "other",
        tracker=first.tracker,
        forge=first.forge,
        tracker_root=first.tracker_root,
        ready_label="other",
    )
    _issues(hours, "", "", "", "")
    _issues(hours, "", "", "", label="other")

    assert [_startable(queue) for queue in _queues(world)] == [["1"], ["5"]]
    asked = [line.path.split("/")[-2] for line in hours.forge.calls("/dependencies")]
    assert sorted(asked) == ["1", "5"]

    world.clock.forward(seconds=45)
    assert [_startable(queue) for queue in _queues(world)] == [["1"], ["5"]]
    assert len(hours.forge.calls("/dependencies")) == 2, "what was told of both is kept"
