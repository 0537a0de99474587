"""A fetch that begins as soon as somebody asks for a run, and who takes it for their own."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from runs.core.ports import SeamError
from runs.dispatch import start_requests
from runs.guard import acts as guard
from runs.models import Project
from runs.projects import fetch_ahead
from runs.projects.fetch_ahead import Fetched, FetchesAhead
from tests import make
from tests.fakes import START, World
from tests.patience import PATIENCE
from tests.world.stories import press_start, ready

LATER = START + timedelta(seconds=1)


@pytest.mark.parametrize(
    ("since", "is_enough"),
    [
        pytest.param(START, True, id="began when it was asked for"),
        pytest.param(START - timedelta(seconds=9), True, id="began after it was asked for"),
        pytest.param(LATER, False, id="began before it was asked for"),
    ],
)
def test_only_a_fetch_that_began_since_then_is_taken(since, is_enough) -> None:
    fetches = FetchesAhead()
    fetches.begin(1, 1, START, lambda: Fetched("main"))
    assert fetches.wait(1, since) == (Fetched("main") if is_enough else None)
    assert fetches.wait(2, since) is None


def test_who_takes_it_waits_until_it_is_over() -> None:
    fetches, go_on = FetchesAhead(), threading.Event()

    def fetch() -> Fetched:
        assert go_on.wait(PATIENCE)
        return Fetched("main", "a warning")

    fetches.begin(1, 1, START, fetch)
    threading.Timer(0.01, go_on.set).start()
    assert fetches.wait(1, START) == Fetched("main", "a warning")


def test_an_origin_that_could_not_be_read_is_told_of_and_a_mistake_of_ours_is_not() -> None:
    def refuse() -> Fetched:
        raise SeamError("refused")

    def stumble() -> Fetched:
        raise RuntimeError("a mistake")

    fetches = FetchesAhead()
    fetches.begin(1, 1, START, refuse)
    with pytest.raises(SeamError, match="refused"):
        fetches.wait(1, START)
    fetches.begin(1, 2, START, stumble)
    assert fetches.wait(1, START) is None


def test_a_request_is_fetched_for_once_and_the_next_one_not_before_that_is_over() -> None:
    fetches, go_on, begun = FetchesAhead(), threading.Event(), []

    def fetch() -> Fetched:
        begun.append(1)
        assert go_on.wait(PATIENCE)
        return Fetched("main")

    for request in (1, 1, 2):
        fetches.begin(1, request, LATER, fetch)
    go_on.set()
    assert fetches.wait(1, START) == Fetched("main")
    fetches.begin(1, 1, LATER, fetch)
    assert len(begun) == 1
    fetches.begin(1, 2, LATER, fetch)
    assert fetches.wait(1, START) == Fetched("main")
    assert len(begun) == 2


@pytest.fixture
def project(world: World) -> Project:
    """A project with its clone and one ready issue."""
    made = make.a_project(agent=make.an_agent())
    made.repo(world.lab.paths).mkdir(parents=True)
    world.tracker.add_root("demo")
    ready(world)
    return made


@pytest.mark.django_db(transaction=True)
def test_a_start_fetches_once_beside_the_decision(world: World, project: Project) -> None:
    asked = press_start(world, project)
    assert (asked.answer, world.repos.fetches) == ("started", 1)


@pytest.mark.django_db(transaction=True)
def test_where_it_failed_the_start_says_why(world: World, project: Project) -> None:
    world.repos.broken_fetch = "Authentication failed"
    asked = press_start(world, project)
    assert "Authentication failed" in asked.text
    assert (asked.answer, world.repos.fetches) == ("start_failed", 1)


@pytest.mark.django_db(transaction=True)
def test_a_start_that_comes_later_fetches_itself(world: World, project: Project) -> None:
    start_requests.request(world.lab, project, "anna")
    fetch_ahead.begin(world.lab, project.slug, lambda *_: None)
    world.clock.forward(seconds=6)
    press_start(world, project)
    assert world.repos.fetches == 2


@pytest.mark.django_db(transaction=True)
def test_what_was_fetched_under_settings_of_others_is_fetched_again(
    world: World, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "check_shared", lambda *_, **more: "starting" not in more)
    assert press_start(world, project).answer == "started"
    assert world.repos.fetches == 2
