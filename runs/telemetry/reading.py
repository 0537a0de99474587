"""Reads the figures: a fixed number of queries, each answered by an index or a small table."""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db import connection
from django.db.models import Count, OuterRef, Q, Subquery

from runs.core import budgets
from runs.core.ports import Lab
from runs.core.states import Outcome, RunState
from runs.hosts import facts
from runs.models import (
    Delivery,
    Fixer,
    Host,
    ManualSession,
    Notice,
    Project,
    Quota,
    Run,
    Settings,
    Tick,
)
from runs.notices.rules import Delivering
from runs.telemetry import tallies, version
from runs.telemetry.exposition import Family, gauge
from runs.telemetry.rules import Share, bounded

MOST_ACCOUNTS = 50
MOST_HOSTS = 100
SUFFIXES = ("", "-wal")
logger = logging.getLogger(__name__)
_ACTIVE = [state for state in RunState if state != RunState.ENDED]


@dataclass(slots=True)
class _Active:
    """Runs without an outcome, counted in one query."""

    states: Counter[str] = field(default_factory=Counter)
    hosts: Counter[str] = field(default_factory=Counter)
    projects: Counter[int] = field(default_factory=Counter)
    waiting: int = 0


def families(lab: Lab, most_projects: int, queue: Any) -> list[Family]:
    """All figures, as this process sees them now.

    `queue` tells how many tasks wait for this host's worker or any. Raises DatabaseError.
    """
    now, began = lab.now(), time.perf_counter()
    newest = Notice.objects.order_by("-pk").values_list("pk", flat=True).first()
    took = time.perf_counter() - began
    active, settings = _active(), Settings.current()
    return [
        *_about(took, newest),
        *_ticks(active, settings, now),
        *_work(active, queue),
        *_ended(),
        *_quotas(),
        *_projects(active, most_projects),
        *_room(lab.paths.state, lab.paths.database),
        *_process(),
    ]


def _about(took: float, newest: int | None) -> Iterable[Family]:
    labels = {
        "version": version.running() or "unknown",
        "python": platform.python_version(),
        "database": connection.vendor,
    }
    yield Family("labsite_info", "gauge", "Version of what answers.", [(labels, 1)])
    yield gauge(
        "labsite_database_read_seconds", "Time of one small read, taken at this look.", took
    )
    yield gauge("labsite_timeline_last_id", "Id of the last timeline entry.", newest or 0)


def _active() -> _Active:
    found = _Active()
    told = Count("pk", filter=~Q(waits=""))
    rows = Run.objects.active().order_by().values_list("host", "state", "project")
    for host, state, project, count, waiting in rows.annotate(n=Count("*"), w=told):
        found.states[state] += count
        found.projects[project] += count
        found.waiting += waiting
        if state != RunState.HELD:
            found.hosts[host] += count
    return found


def _ticks(active: _Active, settings: Settings, now: datetime) -> Iterable[Family]:
    """Of each host: when it ticked, how long that took, and its slots."""
    last = Tick.objects.filter(host=OuterRef("pk"), was_skipped=False).order_by("-pk")
    took = Subquery(last.values("milliseconds")[:1])
    there = Host.objects.filter(removed_at=None).order_by("pk")
    hosts = list(there.annotate(took=took)[:MOST_HOSTS])
    driven: Counter[str] = Counter()
    for rows in (ManualSession.objects, Fixer.objects):
        driven.update(rows.filter(ended_at=None).values_list("host", flat=True))

    def each(name: str, words: str, value: Callable[[Any], float | None]) -> Family:
        told = ((one.name, value(one)) for one in hosts)
        samples = [({"host": host}, figure) for host, figure in told if figure is not None]
        return Family(f"labsite_{name}", "gauge", words, samples)

    yield each(
        "tick_age_seconds",
        "Seconds since the host looked at its runs.",
        lambda one: (
            budgets.age(now, one.last_tick_at).total_seconds() if one.last_tick_at else None
        ),
    )
    yield each(
        "tick_duration_seconds",
        "Duration of the last tick that did something.",
        lambda one: None if one.took is None else one.took / 1000,
    )
    yield each("tick_failed", "1 when the last tick had errors.", lambda one: bool(one.last_error))
    yield gauge("labsite_tick_interval_seconds", "How often ticks are due.", settings.tick_seconds)
    yield each(
        "slots",
        "Most live sessions: the host's own cap, or the general one where that is lower.",
        lambda one: facts.cap_of(one, settings),
    )
    yield each(
        "slots_used",
        "Sessions of runs, people and fixers.",
        lambda one: active.hosts[one.name] + driven[one.name],
    )


def _work(active: _Active, queue: Any) -> Iterable[Family]:
    waiting, put_off = _counted(queue.pending_count), _counted(queue.scheduled_count)
    yield gauge("labsite_queue_tasks", "Tasks that wait for a worker.", waiting)
    yield gauge("labsite_queue_scheduled", "Tasks that were put off until later.", put_off)
    states = [({"state": one.value}, active.states[one.value]) for one in _ACTIVE]
    yield Family("labsite_runs_active", "gauge", "Runs without an outcome.", states)
    yield gauge("labsite_runs_waiting", "Active runs that wait for a person.", active.waiting)


def _counted(count: Callable[[], int]) -> int | None:
    """What a queue counts; None while it is away, which is no reason to tell nothing else."""
    try:
        return count()
    except Exception as error:  # of whichever library the queue is
        logger.warning("the queue was not counted", extra={"error": type(error).__name__})
        return None


def _ended() -> Iterable[Family]:
    """How runs and notices to the outside ended; less than before once a project is removed."""
    rows = Run.objects.exclude(outcome="").order_by().values_list("outcome")
    ended = dict(rows.annotate(n=Count("*")))
    outcomes = [({"outcome": one.value}, ended.get(one.value, 0)) for one in Outcome]
    yield Family("labsite_runs_ended_total", "counter", "Runs that ended, by outcome.", outcomes)
    sent = dict(Delivery.objects.order_by().values_list("state").annotate(n=Count("*")))
    states = [({"result": one.value}, sent.get(one.value, 0)) for one in Delivering]
    words = "Notices to the outside that are kept, by what became of them."
    yield Family("labsite_notices", "gauge", words, states)


def _quotas() -> Iterable[Family]:
    rows = list(Quota.objects.order_by("pk")[:MOST_ACCOUNTS])
    for name in ("limit", "remaining"):
        told = [
            ({"forge": row.host, "account": row.account}, float(value))
            for row in rows
            if (value := getattr(row, name)) is not None
        ]
        words = f"Requests to a forge in its window, {name}, as last heard."
        yield Family(f"labsite_forge_quota_{name}", "gauge", words, told)


def _projects(active: _Active, most: int) -> Iterable[Family]:
    rows = Project.objects.order_by("pk").values_list("pk", "slug", "disk_bytes")
    shares = [Share(slug, active.projects[pk], disk or 0) for pk, slug, disk in rows]
    yield gauge("labsite_projects", "Projects.", len(shares))
    told = bounded(shares, most)
    yield _by_project("runs_active", "Runs without an outcome.", told, lambda one: one.active)
    words = "Repository and worktrees, as measured last."
    yield _by_project("disk_bytes", words, told, lambda one: one.disk)


def _by_project(
    name: str, words: str, shares: Sequence[Share], value: Callable[[Share], int]
) -> Family:
    samples = [({"project": one.name}, value(one)) for one in shares]
    return Family(f"labsite_project_{name}", "gauge", words, samples)


def _room(state: Path, database: Path) -> Iterable[Family]:
    size: int | None = None
    free: int | None = None
    with contextlib.suppress(OSError):
        disk = shutil.disk_usage(state)
        size, free = disk.total, disk.free
    yield gauge("labsite_disk_bytes", "Size of the disk of the state folder.", size)
    yield gauge("labsite_disk_free_bytes", "Of which are free.", free)
    yield gauge("labsite_database_bytes", "Size of the database.", _size(database))


def _size(database: Path) -> int:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_database_size(current_database())")
            row = cursor.fetchone()
        return int(row[0]) if row else 0
    files = [database.with_name(f"{database.name}{suffix}") for suffix in SUFFIXES]
    return sum(one.stat().st_size for one in files if one.is_file())


def _process() -> Iterable[Family]:
    """Of the web process that answers; with several, each tells its own."""
    words = "From a change to the pages of all who watch, in this process."
    yield Family("labsite_push_seconds", "histogram", words, spread=tallies.PUSHES.read())
    words = "Time of a request in this process."
    yield Family("labsite_request_seconds", "histogram", words, spread=tallies.REQUESTS.read())
    answers = sorted(tallies.ANSWERS.read().items())
    samples = [({"status": word}, count) for word, count in answers]
    yield Family(
        "labsite_answers_total", "counter", "Answers of this process by class of status.", samples
    )
    times = os.times()
    yield Family(
        "process_cpu_seconds_total",
        "counter",
        "Processor time of this process.",
        [({}, times.user + times.system)],
    )
    yield gauge("process_resident_memory_bytes", "Memory of this process.", _resident())


def _resident() -> int | None:
    try:
        pages = Path("/proc/self/statm").read_text().split()[1]
    except (OSError, IndexError):
        return None
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
