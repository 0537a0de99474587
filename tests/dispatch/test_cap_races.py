"""The cap holds while sessions come to life between the look at tmux and the launch pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pytest

from runs import tick
from runs.core.ports import Lab, SeamError, Sighting
from runs.core.states import RunState
from runs.dispatch import start_requests
from runs.lifecycle import launch
from runs.models import Project, Run, Settings, StartRequest
from tests import make
from tests.fakes import FakeSessions, World
from tests.world.stories import passing
from trackers.keys import KeyRule

pytestmark = pytest.mark.django_db(transaction=True)


class Meanwhile:
    """Sessions whose first look is followed at once by something that the asker cannot know of."""

    def __init__(self, sessions: FakeSessions, act: Callable[[], object]) -> None:
        self._sessions = sessions
        self._acts = [act]

    def look(self) -> Mapping[str, Sighting]:
        seen = self._sessions.look()
        while self._acts:
            self._acts.pop()()
        return seen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sessions, name)


class AtOnce:
    """A queue with a worker so quick that a start is carried out before its asker goes on."""

    def __init__(self, world: World) -> None:
        self._world = world

    def on(self, host: str) -> Self:
        return self

    def launch(self, run_id: int) -> None:
        launch.carry_out(self._world.lab, run_id)

    def clone(self, project_id: int) -> None:
        raise AssertionError("nothing is cloned here")


@pytest.fixture
def project(world: World) -> Project:
    made = make.a_project(agent=make.an_agent())
    world.tracker.add_root("demo")
    for key in ("1", "2", "3"):
        world.tracker.add_issue("demo", key, labels=[made.ready_label])
    Settings.current()
    Settings.objects.update(session_cap=1)
    return made


def _answers() -> list[str]:
    return list(StartRequest.objects.order_by("pk").values_list("answer", flat=True))


@pytest.mark.row("LAB-66", level="contract")
def test_a_session_that_came_to_life_after_the_look_takes_its_slot(
    world: World, project: Project
) -> None:
    run = make.a_run(project, "1", state=RunState.STARTING, started_at=None, launcher="boot:1:1")

    def comes_to_life() -> None:
        world.live(run)
        Run.objects.filter(pk=run.pk).update(state=RunState.WORKING, started_at=world.clock.now)

    lab: Lab = replace(world.lab, sessions=Meanwhile(world.sessions, comes_to_life))
    start_requests.request(lab, project, "anna")
    tick.tick(lab, force=True)
    assert _answers() == ["at_cap"]
    assert Run.objects.active().count() == 1


@pytest.mark.row("LAB-66", level="contract")
def test_a_start_that_is_carried_out_during_the_pass_keeps_its_slot(
    world: World, project: Project
) -> None:
    lab: Lab = replace(world.lab, queue=AtOnce(world))
    for _ in range(3):
        start_requests.request(lab, project, "anna")
    tick.tick(lab, force=True)
    assert _answers() == ["started", "at_cap", "at_cap"]
    assert Run.objects.get().state == RunState.WORKING
    assert list(world.sessions.all) == [Run.objects.get().session]


@pytest.mark.row("LAB-58", level="contract")
def test_a_request_that_was_answered_meanwhile_starts_nothing(
    world: World, project: Project
) -> None:
    asked = start_requests.request(world.lab, project, "anna")

    def is_answered() -> None:
        StartRequest.objects.filter(pk=asked.pk).update(answer="expired", text="too late")

    class Slow:
        """A tracker that takes its time."""

        def queues(self, labels: Mapping[str, str]) -> Any:
            is_answered()
            return world.tracker.queues(labels)

        def __getattr__(self, name: str) -> Any:
            return getattr(world.tracker, name)

    lab: Lab = replace(world.lab, tracker_for={"memory": Slow()}.get)
    under_way = replace(passing(world), lab=lab, sightings={})
    assert start_requests.launch_pass(under_way) == 0
    assert _answers() == ["expired"]
    assert not Run.objects.exists()
    assert world.queue.launches == []


def test_a_repository_that_hangs_is_asked_once_in_a_pass_and_again_in_the_next(
    world: World, project: Project
) -> None:
    """Each question to a hanging git takes its whole time limit, and the judge waits for it."""
    asked: list[Path] = []

    class Hanging:
        def claims(
            self, repo: Path, keys: KeyRule = KeyRule.NUMBER, prefix: str = ""
        ) -> frozenset[str]:
            asked.append(repo)
            raise SeamError("git for-each-ref gave no answer within 15 seconds")

        def __getattr__(self, name: str) -> Any:
            return getattr(world.repos, name)

    lab: Lab = replace(world.lab, repos=Hanging())
    other = make.a_project("other", agent=project.agent)
    world.tracker.add_root("other")
    world.tracker.add_issue("other", "1", labels=[other.ready_label])
    for _ in range(3):
        start_requests.request(lab, project, "anna")
        start_requests.request(lab, other, "anna")
    tick.tick(lab, force=True)
    assert sorted(asked) == sorted({project.repo(lab.paths), other.repo(lab.paths)})
    assert set(_answers()) == {"seam_failed"}
    assert all("15 seconds" in text for text in StartRequest.objects.values_list("text", flat=True))
    start_requests.request(lab, project, "anna")
    tick.tick(lab, force=True)
    assert len(asked) == 3
