"""The worker dies at any moment of a watch session's life; the next one goes on (MALA-W-13)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import pytest

from runs.models import Run, Validation
from runs.validation import acts as validations
from runs.watch.session import Terms
from tests.fakes import World
from tests.watch.watch_day import Day

pytestmark = pytest.mark.django_db(transaction=True)

ENOUGH = 60


class Killed(BaseException):
    """The process is gone in the middle of what it did."""


class Life:
    """A day that is worked through whoever dies; everything that looks at the clock may be last."""

    def __init__(self, world: World, dies_at: int) -> None:
        self.world, self.left, self.deaths = world, dies_at, 0
        self.day = Day(world, *"123", parallel=1, checks="make test")
        self.day.lab = replace(world.lab, now=self._now)

    def _now(self) -> datetime:
        self.left -= 1
        if self.left == 0:
            raise Killed
        return self.world.clock()

    def alive(self, act: Callable[[], object]) -> None:
        try:
            act()
        except Killed:
            self.deaths += 1
            self.world.dead_processes.add(self.day.lab.process)
            self.day.lab = replace(self.day.lab, process=f"boot:{self.deaths + 1}:9")

    def work(self) -> Life:
        day = self.day
        with contextlib.suppress(Exception):
            self.alive(lambda: day.opens(Terms(is_watching=True, limit=3, every=2)))
        if not day.session.is_open:
            return self
        for _ in range(ENOUGH):
            self.alive(lambda: day.wait(30, every=30))
            self.alive(lambda: validations.tend(day.lab))
            if Validation.objects.running().exists():
                self.alive(day.validation_ends)
            for key in list(day.active):
                if Run.objects.active().filter(issue_key=key, state="working").exists():
                    self.alive(lambda: day.ends(key))  # noqa: B023
            if not day.session.is_open:
                break
        return self


def test_a_life_without_a_death_looks_at_the_clock_often_enough(world: World) -> None:
    life = Life(world, dies_at=10**9).work()
    assert life.day.end == (0, "limit reached")
    assert 10**9 - life.left > 150


@pytest.mark.row("MALA-W-13", level="contract")
@pytest.mark.parametrize("dies_at", range(4, 164, int(os.environ.get("TEST_DEATHS_EVERY", "11"))))
def test_no_counter_is_lost_and_no_validation_repeated(world: World, dies_at: int) -> None:
    life = Life(world, dies_at).work()
    day = life.day
    session = day.session
    assert life.deaths == 1
    assert day.end == (0, "limit reached")
    assert (session.completed, session.failed, session.unstarted, session.validated) == (3, 0, 0, 3)
    assert day.validations == [(2, "passed"), (3, "passed")]
    ended = Run.objects.filter(outcome="succeeded").values_list("issue_key", flat=True)
    assert sorted(ended) == ["1", "2", "3"]
