"""While you were away: told once to whoever comes back, and cheap for everybody who is here."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from runs.forges import tracker_health
from runs.forges.fan_out import Silence
from runs.models import Checkpoint, Monitor, Project, Run, TaskGroup, Visit
from runs.overview import away
from tests import make
from tests.fakes import World
from tests.web import board_rows as rows
from tests.web.people import text_of

pytestmark = pytest.mark.django_db
INDEXES = ("monitor_ended", "notice_outage", "run_ended")
TITLE = "While you were away"
START = datetime(2026, 7, 1, tzinfo=UTC)


@pytest.fixture
def anna(client: Client, operator: User) -> Client:
    client.force_login(operator)
    return client


@pytest.fixture
def project(world: World) -> Project:
    return rows.a_tracked_project()


def ended(project: Project, world: World, key: str, outcome: str, **fields: Any) -> None:
    make.a_run(project, key, outcome=outcome, ended_at=world.clock.now, **fields)


def page(client: Client) -> str:
    answer = client.get("/")
    assert answer.status_code == 200
    return text_of(answer)


def goes_away(client: Client, world: World, **delta: float) -> None:
    assert TITLE not in page(client)
    world.clock.forward(**(delta or {"hours": 8}))


def test_whoever_comes_back_is_told_what_ended_how(
    anna: Client, world: World, project: Project
) -> None:
    ended(project, world, "1", "died")
    world.clock.forward(minutes=1)
    goes_away(anna, world, hours=2)
    ended(project, world, "2", "succeeded", pull_number=4, cost_usd=Decimal("1.5"), tokens_in=2000)
    ended(project, world, "3", "died", issue_title="<b>bold</b>")
    ended(project, world, "4", "failed", started_at=None)
    world.clock.forward(hours=2)

    html = page(anna)
    card = html[html.index('id="away"') : html.index("Dismiss<")]
    for words in (
        "1 succeeded",
        "1 died",
        "2 runs ended, 1 with a pull request",
        "$1.50 (1 of 2 runs reported cost)",
    ):
        assert words in card, words
    assert "2 k tokens" in card
    assert 'href="/history/?since=2026-11-21"' in card
    # What needs somebody stands in the list of what does, and there alone.
    assert "demo #" not in card
    assert 'id="need-run-' in html
    assert TITLE in page(anna)  # until it is put away


def a_monitor(project: Project, name: str, state: str, at: datetime, **fields: Any) -> Monitor:
    group, _ = TaskGroup.objects.get_or_create(
        project=project, name=name, defaults={"made_at": START}
    )
    ended_at = None if state == "running" else at
    look_at = at if ended_at is None else None
    return Monitor.objects.create(
        group=group,
        host="here",
        expected=4,
        state=state,
        started_at=at,
        ended_at=ended_at,
        look_at=look_at,
        **fields,
    )


def investigates(monitor: Monitor, n: int, at: datetime, decision: str = "INVESTIGATE") -> None:
    Checkpoint.objects.create(
        monitor=monitor, n=n, at=at, completed=1, total=4, percentage=25, decision=decision
    )


def test_groups_that_ended_are_counted(
    anna: Client, world: World, project: Project, django_assert_num_queries: Any
) -> None:
    before = world.clock.now
    a_monitor(project, "old", "complete", before)
    goes_away(anna, world, hours=2)
    now = world.clock.now
    for number in range(20):
        a_monitor(project, f"more-{number}", "complete", now, completed=["1", "2"])
    a_monitor(project, "wave", "timed out", now, completed=["1"], incomplete=["2", "3", "4"])
    a_monitor(project, "broken", "error", now, error="no such table")
    a_monitor(project, "left", "stopped", now, ended_by="ben")
    a_monitor(project, "again", "error", now)
    a_monitor(project, "again", "running", now)
    world.clock.forward(hours=2)
    page(anna)  # begins the visit
    # Session and user, the overview, what groups need somebody, the visit, what ended and outages.
    with django_assert_num_queries(2 + 6 + 1 + 1 + 3):
        html = page(anna)
    card = html[html.index('id="away"') : html.index("Dismiss<")]
    said = " ".join(re.sub(r"<[^>]+>", " ", card).split())
    assert "23 groups ended: 20 complete, 1 timed out, 1 failed, 1 stopped." in said
    assert "0 runs" not in said


@pytest.mark.row("LAB-132", level="contract")
def test_the_card_is_put_away_in_both_request_styles(
    anna: Client, world: World, project: Project
) -> None:
    for headers, status in (({}, 303), ({"HX-Request": "true"}, 200)):
        goes_away(anna, world)
        ended(project, world, "1", "died")
        assert TITLE in page(anna)
        answer = anna.post("/away/", headers=headers)
        assert answer.status_code == status
        assert TITLE not in page(anna)
    assert '<div id="away"></div>' in text_of(answer)
    assert anna.get("/away/").status_code == 405


def test_nobody_is_told_nothing(anna: Client, world: World, project: Project) -> None:
    ended(project, world, "1", "died")
    assert TITLE not in page(anna)  # the first visit
    world.clock.forward(hours=8)
    assert TITLE not in page(anna)  # nothing ended meanwhile


def test_somebody_who_is_here_all_the_time_is_told_nothing(
    anna: Client, world: World, project: Project
) -> None:
    page(anna)
    for _ in range(8):
        world.clock.forward(minutes=20)
        ended(project, world, "1", "died")
        anna.get("/settings/")
    assert TITLE not in page(anna)


def test_two_devices_are_one_person(
    anna: Client, world: World, project: Project, operator: User
) -> None:
    phone = Client()
    phone.force_login(operator)
    goes_away(anna, world)
    ended(project, world, "1", "died")
    assert TITLE in page(phone)
    assert TITLE in page(anna)
    anna.post("/away/")
    assert TITLE not in page(phone)


def test_another_request_of_the_same_moment_does_not_take_the_card_away(
    anna: Client, world: World, project: Project, operator: User
) -> None:
    goes_away(anna, world)
    ended(project, world, "1", "died")
    before = dict(anna.session.items())
    anna.get("/live")  # a page that is still open asks first
    session = anna.session  # and whoever read the session before it writes it afterwards
    session.clear()
    session.update(before)
    session.save()
    assert TITLE in page(anna)


def test_what_was_not_put_away_stays_when_nothing_newer_ended(
    anna: Client, world: World, project: Project
) -> None:
    goes_away(anna, world)
    ended(project, world, "1", "died")
    assert "demo #1" in page(anna)
    world.clock.forward(hours=2)
    assert "demo #1" in page(anna)


def test_what_ended_since_the_card_was_shown_is_not_put_away_with_it(
    anna: Client, world: World, project: Project
) -> None:
    goes_away(anna, world)
    ended(project, world, "1", "died")
    html = page(anna)
    shown = html.partition('name="until" value="')[2].partition('"')[0]
    assert shown
    world.clock.forward(hours=8)
    ended(project, world, "2", "died")
    anna.get("/live")  # the tab that was left open comes back first
    anna.post("/away/", {"until": shown})
    assert "demo #2" in page(anna)
    anna.post("/away/", {"until": world.clock.now.isoformat()})
    assert TITLE not in page(anna)


def test_a_card_whose_project_was_removed_since_is_not_shown_empty(
    anna: Client, world: World, project: Project
) -> None:
    goes_away(anna, world)
    ended(project, world, "1", "died")
    assert TITLE in page(anna)
    Run.objects.all().delete()
    assert TITLE not in page(anna)


def test_another_person_has_their_own_visit(
    anna: Client, world: World, project: Project, viewer: User
) -> None:
    vera = Client()
    vera.force_login(viewer)
    goes_away(vera, world)
    page(anna)
    ended(project, world, "1", "died")
    assert TITLE in page(vera)
    assert TITLE not in page(anna)


def test_being_here_costs_nothing_but_every_few_minutes(
    anna: Client, world: World, project: Project
) -> None:
    page(anna)
    for minutes, writes in ((1, 0), (3, 0), (2, 2), (1, 0)):
        world.clock.forward(minutes=minutes)
        with CaptureQueriesContext(connection) as asked:
            anna.get("/live")
        told = [one["sql"] for one in asked.captured_queries]
        assert len([sql for sql in told if sql.startswith("UPDATE")]) == writes, told
    assert Visit.objects.get().seen_at == world.clock.now - timedelta(minutes=1)


def test_a_program_and_a_stranger_are_not_noted(world: World, operator: User) -> None:
    Client().get("/")
    Client().get("/healthz")
    assert not Visit.objects.exists()


@pytest.mark.skipif(connection.vendor != "sqlite", reason="asks SQLite for its plan")
def test_what_ended_is_found_by_an_index(world: World, project: Project) -> None:
    with CaptureQueriesContext(connection) as asked:
        away.away(rows.ago(hours=2), rows.ago(hours=0))
    for query, index in zip(asked.captured_queries, INDEXES, strict=True):
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {query['sql']}")
            plan = " | ".join(row[3] for row in cursor.fetchall())
        assert index in plan, plan


@pytest.mark.row("C-46", level="contract")
def test_an_outage_is_told_whoever_was_away_and_calls_for_nobody_until_it_lasts_long(
    anna: Client, world: World, project: Project
) -> None:
    goes_away(anna, world, hours=1)
    tracker_health.note(world.lab, project, Silence("it answered 502", passes=True))
    project.refresh_from_db()
    world.clock.forward(hours=2)
    html = page(anna)
    card = " ".join(re.sub(r"<[^>]+>", " ", html[html.index('id="away"') :]).split())
    assert "demo gave no answer since 21 Nov 2026" in card
    assert "and gives none yet. Starts wait. Nothing was lost." in card
    assert "demo gives no answer since" in html.partition('id="up-next"')[2]
    assert "need-project" not in html
    world.clock.forward(hours=4)
    assert "need-project" in page(anna)  # it is not one that passes by itself
    tracker_health.note(world.lab, project, None)
    make.a_run(project, "8", requested_at=world.clock.now)
    after = page(anna)
    assert "gives no answer since" not in after
    assert "1 start waited." in " ".join(after.split())


def test_what_somebody_has_to_do_about_a_tracker_is_never_a_calm_line(
    anna: Client, world: World, project: Project
) -> None:
    tracker_health.note(world.lab, project, Silence("the token is not valid"))
    html = page(anna)
    assert "need-project" in html
    assert "gives no answer since" not in html
