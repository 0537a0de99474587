"""The quota ledger: what was asked is counted once, and processes respect one another."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection

from runs.forges import quota
from runs.forges.trackers import Trackers
from runs.models import Forge, Quota, QuotaHour, Settings
from tests.fakes import START, FakeClock, World
from trackers.account import Account, Purpose
from trackers.http import AnswerCache, Client, Meter
from trackers.http.rules import Quota as Heard
from trackers.registry import Tools

pytestmark = pytest.mark.django_db(transaction=True)

HOST, ACCOUNT = "git.example", "a1b2"
HOUR = START.replace(minute=0)


def _asked(meter: Meter, purpose: Purpose = Purpose.QUEUE, left: int = 90, *, free: bool = False):  # type: ignore[no-untyped-def]
    heard = Heard(100, left, 100 - left, timedelta(minutes=30), "core")
    meter.begin(HOST, ACCOUNT, purpose, START)
    meter.end(HOST, ACCOUNT, purpose, START, heard, was_unchanged=free)


def test_calls_are_added_up_by_hour_and_purpose_and_never_twice(world: World) -> None:
    meter = world.forges.book = Meter(steady=lambda: 0.0)
    _asked(meter)
    _asked(meter, free=True)
    _asked(meter, Purpose.READ, left=80)
    quota.settle(world.lab)
    quota.settle(world.lab)
    other = world.forges.book = Meter(steady=lambda: 0.0)  # another process
    _asked(other, left=70)
    quota.settle(world.lab)
    rows = QuotaHour.objects.values_list("hour", "purpose", "calls", "unchanged")
    assert sorted(rows) == [(HOUR, "reading", 1, 0), (HOUR, "ready queue", 3, 1)]
    row = Quota.objects.get()
    assert (row.host, row.account, row.limit, row.remaining) == (HOST, ACCOUNT, 100, 70)
    assert row.reset_at == START + timedelta(minutes=30)


def test_who_asks_no_forge_makes_no_query(world: World, django_assert_num_queries) -> None:  # type: ignore[no-untyped-def]
    with django_assert_num_queries(0):
        quota.settle(world.lab)
        world.forges.book = Meter(steady=lambda: 0.0)
        quota.settle(world.lab)


def test_what_could_not_be_stored_is_counted_the_next_time(world: World) -> None:
    meter = world.forges.book = Meter(steady=lambda: 0.0)
    _asked(meter)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE runs_quotahour RENAME TO runs_gone")
    try:
        quota.settle(world.lab)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE runs_gone RENAME TO runs_quotahour")
    assert not QuotaHour.objects.exists()
    quota.settle(world.lab)
    assert QuotaHour.objects.get().calls == 1


def test_hours_older_than_thirty_days_are_forgotten(world: World) -> None:
    world.forges.book = Meter(steady=lambda: 0.0)
    _asked(world.forges.book)
    quota.settle(world.lab)
    world.clock.forward(days=30)
    quota.prune(world.lab)
    assert QuotaHour.objects.count() == 1
    world.clock.forward(hours=1)
    quota.prune(world.lab)
    assert QuotaHour.objects.count() == 0


def test_a_process_respects_what_another_one_heard_and_the_share_of_the_settings() -> None:
    clock = FakeClock()
    meter = Meter(steady=lambda: clock.passed)
    forge = Forge.objects.create(
        name="Ours", kind="gitea", web="https://git.example", api="https://git.example/api/v1",
        credential={"token": "tok"}, created_at=START,
    )  # fmt: skip
    mine = forge.account
    Settings.current()
    Settings.objects.update(people_percent=50)
    until = START + timedelta(minutes=10)
    Quota.objects.create(host=mine.host, account=mine.id, blocked_until=until, seen_at=START)
    client = Client(
        None, meter, AnswerCache(None), clock, lambda: clock.passed, lambda s: None, lambda: 0.5
    )  # type: ignore[arg-type]
    trackers = Trackers(Tools(now=clock, client=lambda: client), lambda: clock.passed)
    trackers.tracker_for("gitea")
    assert meter.share == 0.5
    assert meter.may(mine.host, mine.id, Purpose.READ, START) is not None
    Quota.objects.update(
        blocked_until=None, limit=100, remaining=50, reset_at=START + timedelta(minutes=30)
    )
    clock.forward(minutes=11)
    trackers.tracker_for("gitea")
    assert meter.may(mine.host, mine.id, Purpose.QUEUE, clock.now) is not None
    assert meter.may(mine.host, mine.id, Purpose.READ, clock.now) is None
    assert trackers.account_of(f"{forge.pk}/ann/shop") == Account(forge.api, "tok")


def test_accounts_are_read_at_most_every_two_seconds_and_at_once_after_a_change(
    django_assert_num_queries,  # type: ignore[no-untyped-def]
) -> None:
    clock = FakeClock()
    trackers = Trackers(Tools(), lambda: clock.passed)
    for kind in ("builtin", "", "jira"):
        with django_assert_num_queries(0):
            trackers.tracker_for(kind)
    with django_assert_num_queries(1):
        assert trackers.tracker_for("gitea") is None
        assert trackers.tracker_for("github") is None
    forge = Forge.objects.create(
        name="Ours", kind="gitea", web="https://git.example", api="https://git.example/api/v1",
        credential={"token": "tok"}, created_at=START,
    )  # fmt: skip
    assert trackers.account_of(f"{forge.pk}/a/b") is None
    trackers.forget()
    with django_assert_num_queries(1):
        trackers.tracker_for("gitea")
    assert trackers.account_of(f"{forge.pk}/a/b") == forge.account
    clock.forward(seconds=3)
    with django_assert_num_queries(1):
        trackers.tracker_for("gitea")
