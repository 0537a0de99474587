"""`python -m bench.board [--runs N] [--history N] [--ended N]`: the overview and its refresh, beside
their floors. With `--ended`, so many runs have ended, of which every tenth died and nobody looked."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bench import crowd, figures

if TYPE_CHECKING:
    from django.test import Client

REPEATS = 60
PROJECTS = 20


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--runs", type=int, default=50)
    options.add_argument("--history", type=int, default=1_000_000)
    options.add_argument("--ended", type=int, default=0)
    given = options.parse_args()
    crowd.begin()
    from django.conf import settings
    from django.test import Client

    with tempfile.TemporaryDirectory(prefix="lab-board-") as folder:
        from tests.fakes import World
        from tests.make import a_user

        world = World(Path(folder))
        settings.RUNS_LAB = lambda: world.lab
        client = Client(SERVER_NAME="localhost")
        client.force_login(a_user())
        first = fill(world, given.runs)
        if given.ended:
            write_ended(world, first[0], given.ended)
        print(figures.head())
        measure(client, world, f"{given.runs} runs")
        if given.history:
            crowd.write_history(given.history, *first)
            measure(client, world, f"{given.runs} runs, {given.history} timeline rows behind")


def fill(world, runs: int) -> tuple[int, int]:  # type: ignore[no-untyped-def]
    """Live runs spread over the projects, each with ready issues and as many ended runs."""
    import dataclasses

    from tests.make import a_run
    from tests.web import board_rows as rows
    from trackers import registry

    world.lab = dataclasses.replace(world.lab, tracker_for=registry.tracker)
    rows.a_tick(world)
    projects = [rows.a_tracked_project(f"p{number:02}") for number in range(PROJECTS)]
    for project in projects:
        for number in range(5):
            rows.a_ready_issue(project, f"Ready {number}")
    for number in range(runs):
        project = projects[number % PROJECTS]
        line = {"last_line": f"running tests, {number} passed", "last_output_at": world.clock.now}
        run = a_run(project, str(1000 + number), slot=number + 1, **line)
        ended = a_run(project, str(5000 + number), outcome="died", reason="the session ended")
        rows.tell(world, "first output", run=run)
        rows.tell(world, "the session ended", run=ended)
    return projects[0].pk, run.pk


def write_ended(world, project: int, number: int) -> None:  # type: ignore[no-untyped-def]
    """Runs that ended in the last weeks, one after the other."""
    from datetime import timedelta

    from runs.models import Run
    from tests.make import a_run

    first = a_run(Run.objects.filter(project=project)[0].project, "0", outcome="succeeded")
    kept = {one.attname: getattr(first, one.attname) for one in Run._meta.concrete_fields[1:]}
    made = []
    for n in range(number):
        at = world.clock.now - timedelta(minutes=5 * (number - n))
        bad = {"outcome": "died", "reason": f"exit status {n % 7}"} if n % 10 == 0 else {}
        own = {"issue_key": str(10_000 + n), "branch": f"afk/{10_000 + n}", "settled_at": at}
        own |= {"started_at": at, "ended_at": at, "session": f"s-{n}", **bad}
        made.append(Run(**(kept | own)))
    Run.objects.bulk_create(made, batch_size=500)


def measure(client: Client, world, name: str) -> None:  # type: ignore[no-untyped-def]
    from runs.models import Host, Run
    from tests.web import board_rows as rows

    def changed() -> None:
        Host.objects.update(looked=Host.objects.get().looked + 1)

    def unchanged() -> None:
        assert client.get("/live", headers={"HX-PTag": tag}).status_code == 304

    _row(
        f"floor: the same client, a page without a database ({name})",
        lambda: _ok(client, "/healthz"),
    )
    _row(f"floor: the runs in one query ({name})", lambda: list(Run.objects.active().rows()))
    _row(f"overview, whole page ({name})", lambda: _ok(client, "/"))
    _row(f"overview, refresh that changed ({name})", lambda: _ok(client, "/live"), changed)
    tag = client.get("/live").headers["HX-PTag"]
    _row(f"overview, refresh that did not change ({name})", unchanged)
    rows.a_tick(world)


def _ok(client: Client, address: str) -> None:
    assert client.get(address).status_code == 200


def _row(name: str, act: Callable[[], object], before: Callable[[], object] | None = None) -> None:
    spent, most = [], 0
    for _ in range(5):
        act()
    for _ in range(REPEATS):
        if before is not None:
            before()
        with figures.queries() as asked:
            spent.append(figures.timed(act))
        most = max(most, asked.count)
    print(figures.line(name, spent, f"  {most} queries"), flush=True)


if __name__ == "__main__":
    main()
