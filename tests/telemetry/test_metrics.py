"""`/metrics`: who may read it, what it tells, at what cost, and what the dashboard asks of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from runs.core.states import Outcome, RunState
from runs.models import Host, Quota, Settings, Tick
from runs.telemetry import exposition, version
from runs.telemetry.exposition import Family
from runs.telemetry.rules import OTHERS, Asker, Share, bounded, may_read
from runs.telemetry.tallies import BOUNDS, Histogram
from tests import make
from tests.fakes import World

DASHBOARD = Path(__file__).resolve().parents[2] / "docs" / "grafana-dashboard.json"
OPERATING = DASHBOARD.with_name("operating.md")
TOKEN = "a-token-of-prometheus"
QUERIES = 11 if connection.vendor == "postgresql" else 10  # it is asked for its size
HERE = Asker("127.0.0.1", "127.0.0.1", is_forwarded=False)


@pytest.mark.parametrize(
    ("asker", "token", "behind_proxy", "may"),
    [
        (HERE, "", False, True),
        (HERE, TOKEN, False, True),
        (HERE, "", True, False),
        (HERE, TOKEN, True, False),
        (Asker("::1", "[::1]", False), "", False, True),
        (Asker("::ffff:127.0.0.1", "localhost", False), "", False, True),
        # What a proxy that nobody declared hands on: its headers, or the name that browsers ask for.
        (Asker("127.0.0.1", "127.0.0.1", True), "", False, False),
        (Asker("127.0.0.1", "lab.example.org", False), "", False, False),
        (Asker("10.0.0.5", "127.0.0.1", False), "", False, False),
        (Asker("", "localhost", False), "", False, False),
        (Asker("no address", "localhost", False), "", False, False),
        (Asker("10.0.0.5", "lab.example.org", True, TOKEN), TOKEN, True, True),
        (Asker("10.0.0.5", "lab.example.org", True, "wrong"), TOKEN, True, False),
        # A token that is shown has to be right, wherever it is shown.
        (Asker("127.0.0.1", "localhost", False, "wrong"), TOKEN, False, False),
        (Asker("127.0.0.1", "localhost", False, "wrong"), "", False, False),
        (Asker("127.0.0.1", "localhost", False, "gerät"), TOKEN, False, False),
    ],
)
def test_metrics_are_for_the_token_or_for_this_machine(
    asker: Asker, token: str, behind_proxy: bool, may: bool
) -> None:
    assert may_read(asker, token, behind_proxy) is may


def test_projects_beyond_the_bound_are_one_line() -> None:
    shares = [Share(f"p{number}", number, 10) for number in range(1, 5)]
    assert bounded(shares, 4) == shares
    assert bounded(shares, 2) == [*shares[:2], Share(OTHERS, 7, 20)]
    assert bounded([], 0) == []


def test_the_text_is_what_prometheus_reads() -> None:
    spread = Histogram()
    for seconds in (-1.0, 0.02, 0.025, 99.0):
        spread.observe(seconds)
    odd = 'a "quoted" \\ name\nin two lines'
    text = exposition.text(
        [
            Family("a_total", "counter", "One\nline.", [({"name": odd}, 3)]),
            exposition.gauge("b", "None of it.", None),
            exposition.gauge("c", "A fraction.", 0.125),
            Family("d_seconds", "histogram", "Times.", spread=spread.read()),
        ]
    )
    found = {family.name: family for family in text_string_to_metric_families(text)}
    assert [(s.labels, s.value) for s in found["a"].samples] == [({"name": odd}, 3.0)]
    assert found["b"].samples == []
    assert found["c"].samples[0].value == 0.125
    told = {s.labels.get("le", s.name): s.value for s in found["d_seconds"].samples}
    assert (told["0.01"], told["0.025"], told["10"], told["+Inf"]) == (1, 3, 3, 4)
    assert told["d_seconds_count"] == 4
    assert len(told) == len(BOUNDS) + 3


def _full(world: World) -> None:
    """Something of everything, so that no family is empty."""
    world.lab.paths.state.mkdir(exist_ok=True)
    Settings.current()
    host = Host.objects.create(name="local", last_tick_at=world.clock.now, session_cap=5)
    Tick.objects.create(host=host, at=world.clock.now, milliseconds=125)
    Tick.objects.create(host=host, at=world.clock.now, was_skipped=True)
    project = make.a_project("shop")
    make.a_run(project, "1", slot=1)
    make.a_run(project, "2", slot=2, state=RunState.HELD, held_at=world.clock.now)
    make.a_run(project, "3", outcome=Outcome.SUCCEEDED)
    Quota.objects.create(
        host="api.example.org", account="shop", limit=5000, remaining=4000, seen_at=world.clock.now
    )


def _told(client: Client, **headers: str) -> dict[tuple[str, ...], float]:
    answer = client.get("/metrics", headers={"host": "localhost", **headers})
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == exposition.CONTENT_TYPE
    families = text_string_to_metric_families(answer.content.decode())
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }


@pytest.mark.django_db
def test_a_scrape_tells_hosts_runs_and_quota(
    client: Client, world: World, django_assert_num_queries: Any, settings: Any
) -> None:
    _full(world)
    world.clock.forward(seconds=7)
    with django_assert_num_queries(QUERIES):
        told = _told(client)
    wanted = {
        ("labsite_tick_age_seconds", "local"): 7,
        ("labsite_tick_duration_seconds", "local"): 0.125,
        ("labsite_tick_failed", "local"): 0,
        ("labsite_slots", "local"): 5,
        ("labsite_slots_used", "local"): 1,
        ("labsite_runs_active", "working"): 1,
        ("labsite_runs_active", "held"): 1,
        ("labsite_runs_active", "starting"): 0,
        ("labsite_runs_ended_total", "succeeded"): 1,
        ("labsite_runs_ended_total", "died"): 0,
        ("labsite_notices", "failed"): 0,
        ("labsite_forge_quota_remaining", "api.example.org", "shop"): 4000,
        ("labsite_project_runs_active", "shop"): 2,
    }
    assert {key: told.get(key) for key in wanted} == wanted


@pytest.mark.django_db
def test_a_host_that_was_removed_is_told_no_more_and_no_cap_is_above_the_general_one(
    client: Client, world: World
) -> None:
    _full(world)
    last = world.clock.now
    Host.objects.create(name="gone", last_tick_at=last, removed_at=last)
    Host.objects.create(name="large", last_tick_at=last, session_cap=50)
    Settings.objects.filter(pk=1).update(session_cap=9)
    told = _told(client)
    assert {key[1] for key in told if key[0] == "labsite_tick_age_seconds"} == {"local", "large"}
    assert told["labsite_slots", "large"] == 9


@pytest.mark.django_db
def test_a_queue_that_is_away_leaves_its_figures_out_and_no_others(
    client: Client, world: World, settings: Any
) -> None:
    class Away:
        def pending_count(self) -> int:
            raise ConnectionError("redis://user:secret@host does not answer")

        scheduled_count = pending_count

    _full(world)
    settings.HUEY = Away()
    told = _told(client)
    assert ("labsite_queue_tasks",) not in told
    assert ("labsite_queue_scheduled",) not in told
    assert told["labsite_runs_active", "working"] == 1


@pytest.mark.django_db
def test_labels_and_queries_stay_few_however_much_there_is(
    client: Client, world: World, django_assert_num_queries: Any, settings: Any
) -> None:
    settings.METRICS_PROJECTS = 3
    _full(world)
    for number in range(6):
        make.a_run(make.a_project(f"more{number}"), "1", slot=10 + number)
    with django_assert_num_queries(QUERIES):
        told = _told(client)
    active = {
        key[1]: value for key, value in told.items() if key[0].startswith("labsite_project_runs")
    }
    assert active == {"shop": 2, "more0": 1, "more1": 1, OTHERS: 4}


@pytest.mark.django_db
def test_nobody_else_is_told_anything(client: Client, world: World, settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    _full(world)
    for headers in (
        {"host": "lab.example.org"},
        {"host": "localhost", "x-forwarded-for": "10.1.1.1"},
        {"host": "localhost", "authorization": "Bearer wrong"},
        {"host": "localhost", "authorization": "Basic Zm9v"},
    ):
        answer = client.get("/metrics", headers=headers)
        assert (answer.status_code, answer.content) == (404, b"Not found\n")
    assert client.post("/metrics").status_code == 405
    settings.CSRF_TRUSTED_ORIGINS = ["https://lab.example.org"]  # a proxy that changes the name
    assert client.get("/metrics", headers={"host": "127.0.0.1:8420"}).status_code == 404
    settings.CSRF_TRUSTED_ORIGINS, settings.BEHIND_PROXY = [], True
    assert client.get("/metrics", headers={"host": "localhost"}).status_code == 404
    settings.METRICS_TOKEN = TOKEN
    told = _told(client, host="lab.example.org", authorization=f"Bearer {TOKEN}")
    assert ("labsite_queue_tasks",) in told


@pytest.mark.django_db
def test_what_cannot_be_read_is_503_without_a_word_of_why(
    client: Client, world: World, settings: Any
) -> None:
    def broken() -> None:
        raise RuntimeError("database is locked, password=secret")

    settings.RUNS_LAB = broken
    answer = client.get("/metrics", headers={"host": "localhost"})
    assert (answer.status_code, answer.content) == (503, b"Not available\n")


def _named(text: str) -> set[str]:
    names = re.findall(r"\b((?:labsite|process)_[a-z_]+)\b", text)
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in names}


@pytest.mark.django_db
def test_dashboard_and_alerts_ask_for_what_is_told(client: Client, world: World) -> None:
    _full(world)
    text = client.get("/metrics", headers={"host": "localhost"}).content.decode()
    told = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    panels = json.loads(DASHBOARD.read_text())["panels"]
    asked = [target["expr"] for panel in panels for target in panel.get("targets", [])]
    assert len(asked) >= 12
    assert _named(" ".join(asked)) <= told
    alerts = re.findall(r"^\s*expr: (.+)$", OPERATING.read_text(), re.MULTILINE)
    assert len(alerts) >= 4
    assert _named(" ".join(alerts)) <= told


def test_the_version_is_the_commit_of_the_checkout(tmp_path: Path) -> None:
    commit = "0123456789" * 4
    git = tmp_path / ".git"
    assert version.commit_of(tmp_path) == ""
    git.mkdir()
    (git / "HEAD").write_text(f"{commit}\n")
    assert version.commit_of(tmp_path) == commit
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    assert version.commit_of(tmp_path) == ""
    (git / "packed-refs").write_text(f"# pack-refs\n{commit} refs/heads/main\n")
    assert version.commit_of(tmp_path) == commit
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "refs" / "heads" / "main").write_text("no commit\n")
    assert version.commit_of(tmp_path) == ""
