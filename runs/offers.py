"""Which of the worker's periodic work has something to do: asked every few seconds by one statement.

What it leaves out would have found nothing. It may be wrong the other way, and what is due by no
row (a program that was installed, a folder that was left behind) is due once a minute or, where hardly
anything is, every five.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import DatabaseError, InterfaceError, connection
from django.db.models import BooleanField, Exists, ExpressionWrapper, Q, QuerySet

from runs import heartbeat, schedule, sweep
from runs.accounts import holds, logins
from runs.agents import trial
from runs.conversation import keeping
from runs.core import database
from runs.core.database import prepared
from runs.core.ports import Lab
from runs.gates import closing
from runs.hosts import silence
from runs.models import (
    Attempt,
    Discarding,
    Due,
    Host,
    Job,
    ManualSession,
    Monitor,
    PullChecks,
    Run,
    Validation,
    WatchSession,
    Workflow,
)
from runs.notices import deliveries
from runs.watch import auto_dispatch

logger = logging.getLogger(__name__)

TICK, POST, TEND, KEEP = "tick", "post", "tend", "keep"
ALL = frozenset({TICK, POST, TEND, KEEP})
AT_LEAST_SECONDS = 60.0
# So seldom records, and a whole look where a heartbeat would do: rows say of nearly all that is found.
SELDOM_SECONDS = 300.0
AT_LEAST = {**dict.fromkeys(ALL, AT_LEAST_SECONDS), KEEP: SELDOM_SECONDS}
# How late work may be that becomes due by time alone, while nobody writes into the database.
QUIET_SECONDS = 15.0


class Offers:
    """What is due, as one worker's scheduler asks it. It keeps its connection to the database."""

    def __init__(self) -> None:
        self._offered: dict[str, float] = {}
        self._version: int | None = None
        self._looked_at: float | None = None
        self._quiet_until = 0.0

    def due(self, lab: Lab) -> frozenset[str]:
        """What to offer now. Never raises: without an answer everything is due, and meets the trouble."""
        now = lab.steady().seconds
        late = {name for name in ALL if self._is_late(name, now)}
        if late:
            database.drop_lost_connection()
        try:
            if not late and self._is_unchanged(now):
                return frozenset()
            found = self._ask(lab) | late
            if TICK in found and self._needs_no_look(lab, now):
                self._offered[TICK] = now
                found -= {TICK}
            self._quiet_until = 0.0 if found else now + self._seconds_to_next(lab)
        except (DatabaseError, InterfaceError) as error:
            logger.warning("what is due could not be asked", extra={"error": str(error)})
            database.drop_connection()
            found = ALL
        self._offered |= dict.fromkeys(found, now)
        if TICK in found:
            self._looked_at = now
        return frozenset(found)

    def _needs_no_look(self, lab: Lab, now: float) -> bool:
        """Whether the heartbeat was stored that takes the place of a look."""
        if self._looked_at is None or not 0 <= now - self._looked_at < SELDOM_SECONDS:
            return False
        return heartbeat.beat(lab)

    def _is_unchanged(self, now: float) -> bool:
        """Whether nothing was due, nobody has written since, and no stored time has come.

        Only a database in a file tells whether somebody has written, in a hundredth of the time that
        the question takes.
        """
        before, self._version = self._version, database.read_version()
        is_written = self._version is None or self._version != before
        return not is_written and 0 <= self._quiet_until - now <= QUIET_SECONDS

    def _seconds_to_next(self, lab: Lab) -> float:
        """How long nothing becomes due by the stored times of the host, at most `QUIET_SECONDS`."""
        now = lab.now()
        row = _next_turn(lab.host).rows(now)[:1]
        left = (row[0] - now).total_seconds() if row else QUIET_SECONDS
        return max(0.0, min(left, QUIET_SECONDS))

    def _is_late(self, name: str, now: float) -> bool:
        before = self._offered.get(name)
        return before is None or not 0 <= now - before < AT_LEAST[name]

    def _ask(self, lab: Lab) -> frozenset[str]:
        row = _question(lab.host).first(lab.now())
        if row is None:  # before the first tick of this host
            return ALL
        return frozenset(name for name, is_due in zip(sorted(ALL), row, strict=True) if is_due)


@prepared
def _next_turn(now: datetime, host: str) -> QuerySet[Due, Any]:
    rows = Due.objects.filter(host__name=host, next_at__gt=now)
    return rows.order_by("next_at").values_list("next_at", flat=True)


@prepared
def _question(now: datetime, host: str) -> QuerySet[Host, Any]:
    columns: Mapping[str, Q] = {
        TICK: _tick(host, now),
        POST: deliveries.has_work(now),
        TEND: _tend(host, now),
        KEEP: Q(Exists(keeping.waiting(host, now))),
    }
    found = {
        f"has_{name}": ExpressionWrapper(columns[name], output_field=BooleanField())
        for name in sorted(columns)
    }
    return Host.objects.filter(name=host).annotate(**found).values_list(*found)


def _tick(host: str, now: datetime) -> Q:
    """As `schedule.due` decides, without what only a settings row would tell."""
    stored = Due.objects.filter(host__name=host)
    late = stored.filter(next_at__lte=now)
    return (
        ~Q(Exists(stored.filter(activity=schedule.LOOK)))
        | ~Q(Exists(stored.filter(activity=sweep.RECONCILE)))
        | Q(Exists(late.filter(activity__in=(schedule.LOOK, sweep.SWEEP))))
        | Q(Exists(late.filter(activity=schedule.GLANCE)))
        & Q(Exists(Run.objects.working().filter(host=host)))
        | Q(Exists(Monitor.objects.due(host, now)))
        | Q(Exists(Workflow.objects.due(host, now)))
        | Q(Exists(holds.due(now)))
        | Q(Exists(WatchSession.objects.due(now)))
        | Q(Exists(late.filter(activity=schedule.FILL))) & Q(Exists(auto_dispatch.wishing(now)))
    )


def _tend(host: str, now: datetime) -> Q:
    open_rows = (
        ManualSession.objects.filter(host=host, settled_at=None),
        Validation.objects.filter(host=host, settled_at=None),
        Attempt.objects.filter(host=host, settled_at=None),
        closing.find_due_updates(host, now),
        Job.objects.unfinished().filter(host=host),
        logins.waiting(),
        logins.logged_out(now),
        trial.waiting(),
        Discarding.objects.filter(error=""),
        PullChecks.objects.due(host, now),
    )
    found = Q(Exists(open_rows[0]))
    for rows in open_rows[1:]:
        found |= Q(Exists(rows))
    # With a database in a file there is no other host.
    return found | silence.has_news(host) if connection.vendor == "postgresql" else found
