"""What the worker's scheduler offers: nothing on a quiet machine, and each kind of work when it is there."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection

from runs import offers, schedule, tick
from runs.core.states import NoticeKind
from runs.models import (
    AgentProfile,
    Due,
    NoticeAddress,
    Project,
    RecordToKeep,
    Run,
    Settings,
)
from runs.offers import ALL, KEEP, POST, TEND, TICK, Offers
from runs.timeline import announce
from tests import make
from tests.fakes import World
from tests.web import board_rows as rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def quiet(world: World) -> Offers:
    """A host that has ticked, with a project, where nothing is due."""
    rows.a_tracked_project()
    make.an_agent()
    tick.tick(world.lab, force=True)
    tick.tick(world.lab, force=True)
    made = Offers()
    assert made.due(world.lab) == ALL, "whatever a restart left behind is looked at"
    return made


def _run(world: World) -> Run:
    return make.a_run(Project.objects.get(), "7")


def _address(world: World) -> None:
    user = User.objects.create(username="ada")
    NoticeAddress.objects.create(user=user, name="phone", url="x", created_at=world.lab.now())
    announce.tell(world.lab, NoticeKind.PROJECT_READY, "ready", project=Project.objects.get())


def _later(world: World, **apart: float) -> None:
    world.clock.forward(**apart)


CASES: dict[str, tuple[Callable[[World], Any], set[str]]] = {
    "nothing": (lambda world: None, set()),
    "a look that would find nothing": (lambda world: _later(world, seconds=31), set()),
    "a run at work": (lambda world: (_run(world), _later(world, seconds=6)), {TICK}),
    "an automatic project": (
        lambda world: (Project.objects.update(is_auto=True), _later(world, seconds=46)),
        {TICK},
    ),
    "an agent that was held": (
        lambda world: AgentProfile.objects.update(
            hold="limit", held_at=world.lab.now(), held_until=world.lab.now()
        ),
        {TICK},
    ),
    "an agent that was logged out": (
        lambda world: AgentProfile.objects.update(is_logged_in=False, login_command=["x"]),
        {TEND},
    ),
    "a notice without an address": (
        lambda world: announce.tell(world.lab, NoticeKind.PROJECT_READY, "ready"),
        set(),
    ),
    "a notice": (_address, {POST}),
    "a record to keep": (
        lambda world: RecordToKeep.objects.create(run=_run(world), asked_at=world.lab.now()),
        {KEEP},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_only_what_has_something_to_do_is_offered(quiet: Offers, world: World, name: str) -> None:
    arrange, expected = CASES[name]
    arrange(world)
    found = quiet.due(world.lab)
    if TICK in expected:
        wanted = schedule.due(world.lab, Settings.current())
        assert wanted, "the tick itself would find nothing"
    assert found - {POST, TEND, KEEP} | found & expected == expected


def test_a_quiet_machine_asks_little_and_now_and_then_everything(
    quiet: Offers, world: World, django_assert_num_queries: Any
) -> None:
    Due.objects.update(next_at=world.lab.now() + timedelta(hours=1))
    asked = 2 if connection.vendor == "postgresql" else 3
    with django_assert_num_queries(asked):
        assert quiet.due(world.lab) == set()
    _later(world, seconds=offers.AT_LEAST_SECONDS)
    assert quiet.due(world.lab) == {POST, TEND}
    _later(world, seconds=offers.SELDOM_SECONDS)
    assert quiet.due(world.lab) == ALL


@pytest.fixture
def resting(quiet: Offers, world: World, monkeypatch: pytest.MonkeyPatch) -> Offers:
    """One that has found nothing due; nobody else writes, and the next look is in 20 seconds."""
    monkeypatch.setattr("runs.core.database.read_version", lambda: 7)
    Due.objects.update(next_at=world.lab.now() + timedelta(seconds=20))
    assert [quiet.due(world.lab) for _ in range(2)] == [set(), set()]
    return quiet


class TestWhereNobodyWrites:
    def test_nothing_is_asked(
        self, resting: Offers, world: World, django_assert_num_queries: Any
    ) -> None:
        with django_assert_num_queries(0):
            assert resting.due(world.lab) == set()

    def test_it_is_asked_again_once_somebody_wrote(
        self, resting: Offers, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        _address(world)
        monkeypatch.setattr("runs.core.database.read_version", lambda: 8)
        assert resting.due(world.lab) == {POST}

    def test_what_becomes_due_by_time_waits_some_seconds_at_most(
        self, resting: Offers, world: World
    ) -> None:
        _address(world)
        _later(world, seconds=offers.QUIET_SECONDS - 1)
        assert resting.due(world.lab) == set()
        _later(world, seconds=2)
        assert resting.due(world.lab) == {POST}

    def test_a_look_comes_at_its_time(self, resting: Offers, world: World) -> None:
        _later(world, seconds=16)
        assert resting.due(world.lab) == set()
        _later(world, seconds=5)
        assert resting.due(world.lab) == {TICK}


def test_without_an_answer_everything_is_due_and_meets_the_trouble(
    quiet: Offers, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_: Any) -> None:
        raise OperationalError("database is locked")

    with connection.execute_wrapper(locked):
        assert quiet.due(world.lab) == ALL
