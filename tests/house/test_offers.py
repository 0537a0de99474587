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
    "a look": (lambda world: _later(world, seconds=31), {TICK}),
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


def test_a_quiet_machine_asks_one_statement_and_once_a_minute_everything(
    quiet: Offers, world: World, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(1):
        assert quiet.due(world.lab) == set()
    Due.objects.update(next_at=world.lab.now() + timedelta(hours=1))
    _later(world, seconds=offers.AT_LEAST_SECONDS)
    assert quiet.due(world.lab) == ALL


def test_without_an_answer_everything_is_due_and_meets_the_trouble(
    quiet: Offers, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_: Any) -> None:
        raise OperationalError("database is locked")

    with connection.execute_wrapper(locked):
        assert quiet.due(world.lab) == ALL
