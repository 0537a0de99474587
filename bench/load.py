"""`python -m bench.load [--projects N] [--runs N] [--live N] [--rows N] [--sockets N]`: a control room
after years: pages, ticks of three hosts, pushes and the size of the database, at a tenth and at all of
it, so that what grows with history is seen."""

from __future__ import annotations

import argparse
import dataclasses
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from bench import crowd, figures

HOSTS = ("local", "second", "third")
REPEATS = 5
EVENTS = 20
TELL = """
import time
tell("event {number}", run=Run.objects.get(pk={run}))
result = time.time()
"""


@dataclass
class Table:
    """What each thing cost at the first size, to be shown beside what it costs at the second."""

    before: dict[str, float] = field(default_factory=dict)
    token: str = ""

    def row(self, name: str, act: Callable[[], object], repeats: int = REPEATS) -> None:
        act()  # what is done once a process is none of this
        spent, used, asked = [], [], 0
        for _ in range(repeats):
            began = time.process_time()
            with figures.queries() as count:
                spent.append(figures.timed(act))
            used.append((time.process_time() - began) * 1000)
            asked = count.count
        median = statistics.median(used)
        first = self.before.setdefault(name, median)
        grown = f", × {median / first:.1f}" if median is not first and first else ""
        more = f"  {asked} queries, {median:.1f} ms of processor{grown}"
        print(figures.line(name, spent, more), flush=True)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--projects", type=int, default=1000)
    options.add_argument("--runs", type=int, default=100_000)
    options.add_argument("--live", type=int, default=500)
    options.add_argument("--rows", type=int, default=2_000_000)
    options.add_argument("--sockets", type=int, default=50)
    given = options.parse_args()
    crowd.begin()
    from django.conf import settings
    from django.test import Client

    with tempfile.TemporaryDirectory(prefix="lab-load-") as folder:
        from tests.fakes import World
        from tests.make import a_user

        world = World(Path(folder))
        world.lab.paths.state.mkdir(parents=True, exist_ok=True)
        settings.RUNS_LAB = lambda: world.lab
        client = Client(SERVER_NAME="localhost")
        client.force_login(a_user())
        live, ended = begin(world, given.projects, given.live)
        table = Table()
        for part in (10, 1):
            began = time.perf_counter()
            share = 1 if part == 10 else 9
            write_runs(world, ended, given.runs * share // 10)
            write_rows(world, ended, given.rows * share // 10)
            size = sum(one.stat().st_size for one in _files(settings.PATHS.database)) / 1e6
            print(
                f"{given.projects} projects, {given.runs // part} runs, {len(live)} live on "
                f"{len(HOSTS)} hosts, {given.rows // part} timeline rows: {size:.0f} MB, "
                f"written in {time.perf_counter() - began:.0f} s"
            )
            print(figures.head())
            pages(table, client, live[0], ended)
            ticks(table, world)
        if given.sockets:
            pushes(settings.PATHS.state, live[0], given.sockets)


def _files(database: Path) -> list[Path]:
    """The database and what is not in its file yet."""
    return [one for one in database.parent.glob(f"{database.name}*") if one.suffix != ".lock"]


def begin(world: Any, projects: int, live: int) -> tuple[list[Any], Any]:
    """Projects with a ready issue each, their live runs on the hosts in turn, and one that ended."""
    from django.db import transaction

    from runs.models import Host, Settings
    from tests.make import a_group, a_run
    from tests.web import board_rows as rows
    from trackers import registry

    world.lab = dataclasses.replace(world.lab, tracker_for=registry.tracker)
    settings = Settings.current()
    settings.session_cap, settings.run_budget_minutes = 500, 10080
    settings.save()
    with transaction.atomic():
        for name in HOSTS:
            Host.objects.update_or_create(name=name, defaults={"last_tick_at": world.clock.now})
        made = [rows.a_tracked_project(f"p{number:04}") for number in range(projects)]
        for project in made:
            rows.a_ready_issue(project, "Add retries")
        runs = []
        for number in range(live):
            project = made[number % projects]
            run = a_run(project, f"live-{number}", slot=number + 1, prompt="x" * 3000)
            run.host = HOSTS[number % len(HOSTS)]
            run.save(update_fields=["host"])
            world.live(run)
            runs.append(run)
        ended = a_run(made[0], "0", outcome="died", prompt="x" * 3000, slot=live + 1)
        a_group(made[0], "wave")
    return runs, ended


def write_runs(world: Any, like: Any, count: int) -> None:
    """Runs of three years like the one that ended, spread over all projects."""
    from django.db import connection

    from runs.models import Project, Run

    projects = Project.objects.count()
    names = [one.column for one in Run._meta.concrete_fields if one.column != "id"]
    start = world.clock.now - timedelta(days=1000)
    step = 86_000_000.0 / max(1, count)
    moment = "datetime(%s, '+' || CAST(i * %s AS INTEGER) || ' seconds')"
    made = {
        "project_id": f"runs_run.project_id + i %% {projects}",
        "issue_key": "'r' || i",
        "issue_title": "'Mend part ' || i",
        **dict.fromkeys(("requested_at", "started_at", "ended_at", "settled_at"), moment),
        "seen_until": moment,
        "took_seconds": "i * 7919 %% 3000",
        "outcome": "CASE WHEN i %% 5 THEN 'succeeded' ELSE 'died' END",
    }
    values = ", ".join(made.get(name, f'"{name}"') for name in names)
    columns = ", ".join(f'"{name}"' for name in names)
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %s) "  # noqa: S608
            f"INSERT INTO runs_run ({columns}) SELECT {values} FROM n, runs_run WHERE runs_run.id = %s",
            [count, *([start, step] * (values.count("%s") // 2)), like.pk],
        )


def write_rows(world: Any, like: Any, count: int) -> None:
    """Timeline rows as they come: mostly steps and passes of monitors, some news, some acts of people."""
    from django.db import connection

    from runs.models import Project, Run, TaskGroup

    projects, runs = Project.objects.count(), Run.objects.count()
    group = TaskGroup.objects.get()
    start, step = world.clock.now - timedelta(days=1000), 86_000_000.0 / max(1, count)
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %s)
            INSERT INTO runs_notice (at, kind, project_id, run_id, group_id, issue_key, text, "by",
                                     outcome, is_news, times)
            SELECT datetime(%s, '+' || CAST(i * %s AS INTEGER) || ' seconds'),
                CASE WHEN i %% 10 < 2 THEN 'monitor.progress' WHEN i %% 10 = 2 THEN 'run.ended'
                     WHEN i %% 1000 = 3 THEN 'auto.changed' ELSE 'run.step' END,
                {like.project_id} + i %% {projects},
                CASE WHEN i %% 10 > 2 THEN {like.pk} + i %% {runs // 2} END,
                CASE WHEN i %% 10 < 2 THEN {group.pk} END,
                '7', 'commit ' || i || ' of long ago',
                CASE WHEN i %% 1000 = 3 THEN 'anna' ELSE '' END, '', i %% 10 = 2,
                CASE WHEN i %% 10 < 2 THEN 2 END FROM n
            """,  # noqa: S608
            [count, start, step],
        )


def pages(table: Table, client: Any, live: Any, ended: Any) -> None:
    """What people and programs open, each by the ordinary door."""
    from django.contrib.auth.models import User

    from runs.models import ApiToken, Notice
    from runs.people import api_tokens
    from runs.timeline import queries
    from runs.wiring import lab

    def get(address: str, **headers: str) -> Callable[[], None]:
        def ask() -> None:
            answer = client.get(address, headers=headers)
            assert answer.status_code == 200, (address, answer.status_code)
            b"".join(answer) if answer.streaming else answer.content

        return ask

    table.row("floor: a page without a database", get("/healthz"))
    for name, address in {
        "overview": "/",
        "needs you": "/needs/",
        "a project": f"/projects/{live.project_id}/",
        "a live run": f"/runs/{live.pk}/",
        "a run of three years ago": f"/runs/{ended.pk + 5}/",
        "history": "/history/",
        "history of a project": f"/history/?project={live.project_id}",
        "audit log": "/audit/",
        "search": "/search/?q=retries",
        "digest": "/digest/",
        "parked work": f"/projects/{live.project_id}/parked/",
        "settings": "/settings/",
        "metrics": "/metrics",
    }.items():
        answer = client.get(address, follow=True)
        if answer.status_code == 200:
            table.row(name, get(answer.redirect_chain[-1][0] if answer.redirect_chain else address))
        else:
            print(f"{name}: {answer.status_code}")
    user = User.objects.get()
    if not table.token:
        table.token = api_tokens.make(lab(), user, "bench", ApiToken.Scope.LOOK)[1]
    key = f"Bearer {table.token}"
    middle = Notice.objects.order_by("-pk").values_list("pk", flat=True)[0] // 2
    for name, address in {
        "API: runs": "/api/v1/runs",
        "API: timeline from the middle": f"/api/v1/timeline?after={middle}",
        "API: timeline of a project": f"/api/v1/timeline?after={middle}&project={live.project_id}",
    }.items():
        table.row(name, get(address, authorization=key))
    table.row("what is new, for the feed", lambda: queries.read(queries.newest(), 500))


def ticks(table: Table, world: Any) -> None:
    """A whole look of each host, on a faked outside: what is left is ours and the database's."""
    from runs import offers, tick
    from runs.timeline.folding import Folding

    table.row("what is due", lambda: offers.Offers()._ask(world.lab))
    for host in HOSTS:
        lab = dataclasses.replace(world.lab, host=host)

        def look(lab: Any = lab) -> None:
            report = tick.tick(lab, force=True)
            assert not report.was_skipped, report
            assert not report.errors, report.errors

        table.row(f"a tick of host {host}", look)
    table.row("a turn of folding", lambda: Folding().tend(world.lab))


def pushes(state: Path, live: Any, sockets: int) -> None:
    """Commit of an entry to the frame at each of many pages of a run, from a real web process."""
    from django.db import connections

    from tests.web.daphne_fixture import Served

    connections.close_all()
    with tempfile.TemporaryDirectory(prefix="lab-load-web-") as folder:
        copy = Path(folder) / "state"
        shutil.copytree(state, copy, ignore=shutil.ignore_patterns("*.sock*", "run"))
        served = Served(copy)
        served.start()
        try:
            cookie = served.cookie("bench")
            clients = [served.page(f"run:{live.pk}", cookie, None) for _ in range(sockets)]
            for one in clients:
                one.frame()
            spent = []
            for number in range(EVENTS):
                told = served.do(TELL.format(number=number, run=live.pk))
                for one in clients:
                    while f"event {number}" not in one.frame()["content"]:
                        pass
                    spent.append(time.time() - told)
            for one in clients:
                one.drop()
            print(figures.line(f"commit -> frame, {sockets} sockets", spent), flush=True)
        finally:
            served.close()


if __name__ == "__main__":
    main()
