"""A day of a watch session on fakes: real rows and ticks, a clock that is moved, nobody who waits."""

from __future__ import annotations

import functools
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from runs import tick
from runs.core.database import Compiled
from runs.core.states import Outcome, ValidationState
from runs.lifecycle import launch, outcomes
from runs.models import (
    Due,
    Monitor,
    Notice,
    Project,
    Run,
    Settings,
    Validation,
    WatchSession,
    Workflow,
)
from runs.validation import endings as validation_ends
from runs.validation.rules import Verdict
from runs.watch import acts as watches
from runs.watch.session import Request, Terms
from tests import make
from tests.fakes import World
from trackers.base import TrackerError

WATCH = Terms(is_watching=True, every=10)
BATCH = Terms()


@functools.lru_cache
def _stored_times(_vendor: str) -> list[Compiled]:
    return [
        Compiled(lambda now: Due.objects.filter(next_at__gt=now).values_list("next_at", flat=True)),
        *(
            Compiled(
                lambda now, rows=rows: rows.filter(look_at__gt=now).values_list(
                    "look_at", flat=True
                )
            )
            for rows in (WatchSession.objects, Monitor.objects, Workflow.objects)
        ),
    ]


class Day:
    """Time passes with the ticks that the product would make in it, every two seconds or rarer."""

    def __init__(self, world: World, *keys: str, parallel: int = 3, **fields: Any) -> None:
        Settings.current()
        Settings.objects.update(session_cap=20)
        self.world = world
        self.lab = world.lab
        self.project: Project = make.a_project(
            parallel_runs=parallel, agent=make.an_agent(), **fields
        )
        world.tracker.add_root("demo")
        for key in keys:
            self.ready(key)
        self.began = world.clock.now

    def ready(self, key: str, **more: Any) -> None:
        self.world.tracker.add_issue(
            "demo", f"Issue {key}", key, labels=["ready-for-agent"], **more
        )

    def opens(self, terms: Terms = WATCH, by: str = "anna") -> Day:
        watches.open(self.lab, self.project, terms, by)
        return self.tick()

    def tick(self) -> Day:
        """What is due now, and the launches that it asks for."""
        self.report = tick.tick(self.lab)
        queue = self.world.queue
        while queue.launches:
            launch.carry_out(self.lab, queue.launches.pop(0))
        return self

    def wait(self, seconds: int, every: int = 1) -> Day:
        """Time passes. After a tick that found nothing due the next ones come when a stored time has.

        Nothing else changes rows meanwhile, so those in between would find nothing either.
        """
        quiet_until: datetime | None = None
        for _ in range(0, seconds, every):
            now = self.world.clock.forward(seconds=every)
            if quiet_until is None or now >= quiet_until:
                self.tick()
                quiet_until = None if self.report.did else self._next_stored_time()
        return self

    def wait_with_all_ticks(self, seconds: int) -> Day:
        """Time passes with a tick in each second, due or not."""
        for _ in range(seconds):
            self.world.clock.forward(seconds=1)
            self.tick()
        return self

    def _next_stored_time(self) -> datetime | None:
        now = self.world.clock.now
        stored = _stored_times(connection.vendor)
        return min((at for times in stored for at in times.rows(now)), default=None)

    def ends(self, *keys: str, outcome: Outcome = Outcome.SUCCEEDED) -> Day:
        """The runs of these issues come to their end; then there is a tick."""
        for key in keys:
            run = Run.objects.active().get(issue_key=key)
            assert outcomes.record(self.lab, run, outcome, "because")
            self.world.sessions.all.pop(run.session, None)
        return self.tick()

    def validation_ends(self, passed: bool = True) -> Day:
        """The validation that runs comes to its end; then there is a tick."""
        row = Validation.objects.running().select_related("project").get()
        state = ValidationState.PASSED if passed else ValidationState.FAILED
        assert validation_ends.close(self.lab, row, Verdict(state, "because"))
        return self.tick()

    def asks(self, request: Request, by: str = "anna") -> Day:
        """A person presses a button; then there is a tick."""
        assert watches.ask(self.lab, self.session, request, by)
        return self.tick()

    @property
    def validations(self) -> list[tuple[int, str]]:
        rows = Validation.objects.order_by("pk")
        return list(rows.values_list("count", "state"))

    def fails(self, error: TrackerError | None = None) -> Day:
        """The tracker gives no answer from now on."""
        self.world.tracker.fail(error=error)
        return self

    @property
    def session(self) -> WatchSession:
        return WatchSession.objects.order_by("-pk")[0]

    @property
    def end(self) -> tuple[int | None, str]:
        return self.session.code, self.session.reason

    @property
    def active(self) -> list[str]:
        return list(Run.objects.active().order_by("pk").values_list("issue_key", flat=True))

    @property
    def started(self) -> list[str]:
        return list(Run.objects.order_by("pk").values_list("issue_key", flat=True))

    @property
    def polls(self) -> int:
        return self.world.tracker.calls["queues"]

    @property
    def seconds(self) -> int:
        return int((self.world.clock.now - self.began) / timedelta(seconds=1))

    def told(self, kind: str) -> list[str]:
        return list(Notice.objects.filter(kind=kind).order_by("pk").values_list("text", flat=True))

    def told_at(self, kind: str) -> list[int]:
        times = Notice.objects.filter(kind=kind).order_by("pk").values_list("at", flat=True)
        return [int((at - self.began) / timedelta(seconds=1)) for at in times]
