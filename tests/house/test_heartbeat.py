"""A heartbeat takes the place of a look that would find nothing, and of no other."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from runs import heartbeat, offers, schedule, sweep, tick
from runs.core.states import ProjectState
from runs.hosts.ports import Unknown
from runs.models import (
    AgentProfile,
    Due,
    Host,
    Project,
    Settings,
    StartRequest,
    WatchSession,
    Workflow,
)
from runs.offers import TICK, Offers
from tests import make
from tests.fakes import World
from tests.groups.group_desk import a_monitor
from tests.web import board_rows as rows

pytestmark = pytest.mark.django_db
LATE = timedelta(seconds=31)


@pytest.fixture
def idle(world: World) -> World:
    """A host that has looked, with a project on which nobody works, and whose next look is due."""
    rows.a_tracked_project()
    make.an_agent()
    for _ in range(2):
        tick.tick(world.lab, force=True)
    world.clock.forward(seconds=LATE.total_seconds())
    return world


def test_a_look_that_would_find_nothing_is_a_heartbeat(idle: World) -> None:
    before = Host.objects.get()
    assert heartbeat.beat(idle.lab)
    after = Host.objects.get()
    assert (after.last_tick_at, after.lease_number) == (idle.lab.now(), before.lease_number)
    assert after.seen_at is not None
    assert before.seen_at is not None
    assert after.seen_at > before.seen_at
    assert schedule.next_times(idle.lab)[schedule.LOOK] == idle.lab.now() + timedelta(seconds=30)


def test_a_scheduler_offers_no_tick_for_it_and_a_whole_look_now_and_then(idle: World) -> None:
    scheduler = Offers()
    assert TICK in scheduler.due(idle.lab), "whatever a restart left behind is looked at"
    looked = Host.objects.get().last_tick_at
    for _ in range(4):
        idle.clock.forward(seconds=LATE.total_seconds())
        assert TICK not in scheduler.due(idle.lab)
        assert Host.objects.get().last_tick_at == idle.lab.now() != looked
    idle.clock.forward(seconds=offers.SELDOM_SECONDS)
    assert TICK in scheduler.due(idle.lab)


def test_runs_are_looked_at_each_minute_also_after_somebody_set_the_clock_back(idle: World) -> None:
    scheduler = Offers()
    assert TICK in scheduler.due(idle.lab)
    make.a_run(Project.objects.get())
    Due.objects.update(next_at=idle.lab.now() + timedelta(days=1))
    idle.clock.forward(seconds=offers.AT_LEAST_SECONDS)
    assert TICK in scheduler.due(idle.lab)


def _open(world: World) -> None:
    WatchSession.objects.create(
        project=Project.objects.get(), opened_at=world.lab.now(), opened_by="anna"
    )


def _a_session(world: World) -> None:
    world.sessions.appear("demo~review", "")


def _monitored(world: World) -> None:
    a_monitor(make.a_group(Project.objects.get()), look_at=world.lab.now())


def _working_through(world: World) -> None:
    now = world.lab.now()
    Workflow.objects.create(
        project=Project.objects.get(),
        name="w",
        host="local",
        ceiling_seconds=60,
        started_at=now,
        counted_from=now,
        look_at=now,
    )


class Elsewhere(Unknown):
    """A machine that is not the one which works under the host's name."""

    def is_other(self, identity: str) -> bool:
        return True


def _elsewhere(world: World) -> None:
    world.lab = dataclasses.replace(world.lab, machine=Elsewhere())


def _silent(world: World) -> None:
    world.sessions.broken = "tmux did not answer"


def _held_lease(world: World) -> None:
    Host.objects.update(lease_owner="boot:1:1", lease_number=F("lease_number") + 1)


FOUND: dict[str, Callable[[World], Any]] = {
    "a run": lambda world: make.a_run(Project.objects.get()),
    "a run that is not settled": lambda world: make.a_run(
        Project.objects.get(), outcome="died", settled_at=None
    ),
    "a request to start": lambda world: StartRequest.objects.create(
        project=Project.objects.get(), at=world.lab.now(), by="anna"
    ),
    "a watch session": _open,
    "automatic work": lambda world: Project.objects.update(is_auto=True),
    "a webhook": lambda world: Project.objects.update(hooked_at=world.lab.now()),
    "a clone that nobody carries out": lambda world: Project.objects.update(
        state=ProjectState.CLONING, created_at=world.lab.now() - timedelta(hours=1)
    ),
    "an agent that was held": lambda world: AgentProfile.objects.update(
        hold="limit", held_at=world.lab.now(), held_until=world.lab.now()
    ),
    "a monitor": _monitored,
    "a workflow": _working_through,
    "a clock that was set": lambda world: Host.objects.update(clock_apart=F("clock_apart") + 60),
    "a boot": lambda world: Host.objects.update(clock_boot="another"),
    "another machine of its name": _elsewhere,
    "tidying up": lambda world: Due.objects.filter(activity=sweep.SWEEP).update(
        next_at=world.lab.now()
    ),
    "what a host has to do first": lambda world: Due.objects.filter(
        activity=sweep.RECONCILE
    ).delete(),
    "an error of the look before": lambda world: Host.objects.update(last_error="no tmux"),
    "a watcher outside": lambda world: Settings.objects.update(ping_url="https://watch.example"),
    "a session that somebody made": _a_session,
    "a tmux that does not answer": _silent,
    "another tick": _held_lease,
    "a host that was taken out": lambda world: Host.objects.update(removed_at=world.lab.now()),
}


@pytest.mark.parametrize("name", FOUND)
def test_whatever_a_look_would_find_is_left_to_it(idle: World, name: str) -> None:
    FOUND[name](idle)
    before = list(Host.objects.values()), list(Due.objects.order_by("activity").values())
    assert not heartbeat.beat(idle.lab)
    assert (list(Host.objects.values()), list(Due.objects.order_by("activity").values())) == before


def test_a_tick_that_took_the_lease_meanwhile_goes_on_alone(idle: World) -> None:
    look = idle.sessions.look

    def taken() -> Any:
        _held_lease(idle)
        return look()

    idle.sessions.look = taken  # type: ignore[method-assign]
    assert not heartbeat.beat(idle.lab)
    assert schedule.next_times(idle.lab)[schedule.LOOK] <= idle.lab.now()
