"""`python -m bench.history [--runs N]`: the page History over many runs, by filter, order and page."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import crowd, figures

if TYPE_CHECKING:
    from runs.history.filters import Wanted

REPEATS = 9
PROJECTS = 20
PROMPT = 6_000  # characters, as tasks have them


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--runs", type=int, default=100_000)
    given = options.parse_args()
    crowd.begin()
    from django.conf import settings
    from django.test import Client

    with tempfile.TemporaryDirectory(prefix="lab-history-") as folder:
        from tests.fakes import World
        from tests.make import a_user

        world = World(Path(folder))
        settings.RUNS_LAB = lambda: world.lab
        client = Client(SERVER_NAME="localhost")
        client.force_login(a_user())
        fill(world, given.runs)
        print(f"{given.runs} runs")
        print(figures.head())
        measure(client, world)


def fill(world: Any, runs: int) -> None:
    """Runs of three years in twenty projects, one of which has nine in ten; a few still work."""
    from datetime import timedelta

    from django.db import connection

    from runs.models import Run
    from tests.make import a_run
    from tests.web import board_rows as rows

    rows.a_tick(world)
    projects = [rows.a_tracked_project(f"p{number:02}") for number in range(PROJECTS)]
    with connection.cursor() as cursor:
        first = a_run(projects[0], "0", outcome="died", prompt="x" * PROMPT)
        names = [field.column for field in Run._meta.fields if field.column != "id"]
        start = world.clock.now - timedelta(days=1000)
        step = 86_400_000.0 / max(1, runs)  # seconds between two of them
        made = {
            "project_id": f"CASE WHEN i %% 10 THEN {projects[0].pk} ELSE {projects[1].pk} + i / 10 %% {PROJECTS - 1} END",
            "issue_key": "'' || i",
            "issue_title": "'Mend part ' || i || ' of ' || (i * 7919 %% 1000)",
            "branch": "'afk/' || i",
            "session": "'s' || i",
            "requested_at": "datetime(%s, '+' || CAST(i * %s AS INTEGER) || ' seconds')",
            "started_at": "datetime(%s, '+' || CAST(i * %s + 5 AS INTEGER) || ' seconds')",
            "ended_at": "datetime(%s, '+' || CAST(i * %s + 5 + i * 7919 %% 3000 AS INTEGER) || ' seconds')",
            "settled_at": "datetime(%s, '+' || CAST(i * %s + 5000 AS INTEGER) || ' seconds')",
            "took_seconds": "i * 7919 %% 3000",
            "cost_usd": "CASE WHEN i %% 3 THEN (i * 31 %% 900) / 100.0 END",
            "outcome": "CASE WHEN i %% 5 THEN 'succeeded' WHEN i %% 5000 THEN 'died' ELSE 'rejected' END",
            "agent": "CASE WHEN i %% 4 THEN 'Claude Code' ELSE 'Codex' END",
            "model": "CASE WHEN i %% 4 THEN 'opus' ELSE '' END",
            "agent_model": "CASE WHEN i %% 1000 THEN 'claude-opus-4' ELSE 'odd-one' END",
            "started_by": "CASE WHEN i %% 50 THEN 'anna' ELSE 'bert' END",
        }
        values = ", ".join(made.get(name, f'"{name}"') for name in names)
        columns = ", ".join(f'"{name}"' for name in names)
        moments = values.count("%s") // 2
        cursor.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %s) "  # noqa: S608
            f"INSERT INTO runs_run ({columns}) SELECT {values} FROM n, runs_run WHERE runs_run.id = %s",
            [runs, *([start, step] * moments), first.pk],
        )
    for number in range(20):
        a_run(projects[number], f"live-{number}", slot=number + 1, prompt="x" * PROMPT)


def measure(client: Any, world: Any) -> None:
    from datetime import timedelta
    from decimal import Decimal

    from runs.history import filters
    from runs.history.filters import Sort, Wanted
    from runs.models import Project

    day = world.clock.now.date()
    rare = Project.objects.get(name="p07").pk
    most = Project.objects.get(name="p00").pk
    cases = {
        "everything": Wanted(),
        "a project of many": Wanted(project=most),
        "a project of few": Wanted(project=rare),
        "an outcome that is rare": Wanted(outcome="rejected"),
        "an agent": Wanted(agent="Codex"),
        "a model as it was chosen": Wanted(model="opus"),
        "a model that few named": Wanted(model="odd-one"),
        "a person": Wanted(person="bert"),
        "a week of last year": Wanted(
            since=day - timedelta(days=400), until=day - timedelta(days=393)
        ),
        "words that many have": Wanted(text="of 7"),
        "words that none has": Wanted(text="nothing at all"),
        "cost of 8 dollars and more": Wanted(least=Decimal(8)),
        "longest first": Wanted(sort=Sort.TOOK),
        "most expensive first": Wanted(sort=Sort.COST),
        "most expensive first, a project of many": Wanted(sort=Sort.COST, project=most),
        "most expensive first, a project of few": Wanted(sort=Sort.COST, project=rare),
        "most expensive first, a person": Wanted(sort=Sort.COST, person="bert"),
        "cheapest first": Wanted(sort=Sort.COST_UP),
        "oldest first": Wanted(sort=Sort.STARTED_UP),
    }
    _row("floor: the same client, a page without a database", lambda: _ok(client, "/healthz"))
    for name, wanted in cases.items():
        address = "/history/" + filters.address(wanted)
        _row(name, lambda address=address: _ok(client, address))  # type: ignore[misc]
    for sort in (Sort.ENDED, Sort.COST):
        deep = "/history/" + filters.address(*_page(Wanted(sort=sort), world.clock.now, 400))
        _row(f"page 400, {sort.words}", lambda address=deep: _ok(client, address))  # type: ignore[misc]


def _page(wanted: Wanted, now: Any, number: int) -> Any:
    """The filter and the place of a page further down."""
    from runs.history import finding
    from runs.history.filters import Place

    last = finding.page(wanted, Place(at=now), now, finding.PAGE * (number - 1)).last
    return wanted, Place(last, now)


def _ok(client: Any, address: str) -> None:
    assert client.get(address).status_code == 200


def _row(name: str, act: Callable[[], object]) -> None:
    spent, busy, most = [], [], 0
    for _ in range(2):
        act()
    for _ in range(REPEATS):
        with figures.queries() as asked:
            began = time.process_time()
            spent.append(figures.timed(act))
            busy.append(1000 * (time.process_time() - began))
        most = max(most, asked.count)
    print(
        figures.line(
            name, spent, f"  {most} queries, {statistics.median(busy):.0f} of the processor"
        ),
        flush=True,
    )


if __name__ == "__main__":
    main()
