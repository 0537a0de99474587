"""The morning digest: once a day at a person's hour, whatever the clock does; its notice and its page."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.test import Client

from runs.core.states import Outcome
from runs.models import Delivery, NoticeAddress, NoticeTimes
from runs.notices import addresses, digest_rules, digests
from runs.notices.addresses import Hours
from runs.notices.digest_rules import Told, due, words
from runs.overview import morning
from tests import make
from tests.fakes import World
from tests.notices.push_service import Browser
from tests.web import board_rows as rows
from tests.web.people import text_of

BERLIN = ZoneInfo("Europe/Berlin")
SEVEN, HALF_PAST_TWO = time(7), time(2, 30)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


DUE = [
    # The hour is that of the person's clock.
    ("2026-07-01T04:59", SEVEN, date(2026, 6, 30), None),
    ("2026-07-01T05:00", SEVEN, date(2026, 6, 30), date(2026, 7, 1)),
    ("2026-12-01T05:59", SEVEN, date(2026, 11, 30), None),
    ("2026-12-01T06:00", SEVEN, None, date(2026, 12, 1)),
    # Once a day, and not in the evening where the machine was off.
    ("2026-07-01T05:01", SEVEN, date(2026, 7, 1), None),
    ("2026-07-01T10:59", SEVEN, date(2026, 6, 28), date(2026, 7, 1)),
    ("2026-07-01T11:00", SEVEN, date(2026, 6, 28), None),
    # The hours of lateness go over midnight.
    ("2026-07-01T22:30", time(23), date(2026, 6, 30), date(2026, 7, 1)),
    ("2026-07-02T02:59", time(23), date(2026, 6, 30), date(2026, 7, 1)),
    ("2026-07-02T02:59", time(23), date(2026, 7, 1), None),
    ("2026-07-02T03:00", time(23), date(2026, 6, 30), None),
    # Who flew west has this date twice.
    ("2026-07-01T05:01", SEVEN, date(2026, 7, 2), None),
    ("2026-07-01T05:01", None, None, None),
    # The night that has 02:30 twice, and the one that has it not.
    ("2026-10-25T00:30", HALF_PAST_TWO, date(2026, 10, 24), date(2026, 10, 25)),
    ("2026-10-25T01:30", HALF_PAST_TWO, date(2026, 10, 25), None),
    ("2026-03-29T00:59", HALF_PAST_TWO, date(2026, 3, 28), None),
    ("2026-03-29T01:30", HALF_PAST_TWO, date(2026, 3, 28), date(2026, 3, 29)),
]


@pytest.mark.parametrize(("now", "hour", "last", "expected"), DUE)
def test_a_digest_is_due_once_a_day_at_the_persons_hour(
    now: str, hour: time | None, last: date | None, expected: date | None
) -> None:
    assert due(at(now), hour, BERLIN, last) == expected


def test_days_follow_each_other_without_a_gap_or_an_overlap() -> None:
    for first in (date(2026, 3, 27), date(2026, 10, 23)):
        for number in range(4):
            day = first + timedelta(days=number)
            _, until = digest_rules.span(day, HALF_PAST_TWO, BERLIN)
            assert digest_rules.span(day + digest_rules.DAY, HALF_PAST_TWO, BERLIN)[0] == until


def test_it_says_what_was_done_what_waits_and_what_it_cost_in_this_order() -> None:
    told = Told([("succeeded", 5), ("died", 2)], 1, 3, Decimal("8.182"), "4.9 M")
    assert words(told).split("\n") == [
        "Done: 5 succeeded, 2 died, 1 group ended.",
        "Waits for you: 3 agents.",
        "Cost: $8.18, 4.9 M tokens.",
    ]
    assert words(Told([], 0, 1)).split("\n")[::2] == [
        "Done: nothing ended.",
        "Cost: none was reported.",
    ]
    assert words(Told([], 0, 0)) == "Nothing happened since yesterday, and no agent waits for you."


@pytest.fixture
def anna(world: World, operator: User, client: Client) -> Client:
    """Her digest comes at 13:00 UTC, an hour from now, at two addresses of which one is for what she missed."""
    hour = (world.lab.now() + timedelta(hours=1)).time()
    addresses.keep_hours(world.lab, operator, Hours(None, None, "UTC", hour))
    for name, minutes in (("phone", 0), ("pager", 15)):
        NoticeAddress.objects.create(
            user=operator,
            name=name,
            url="json://127.0.0.1:1/x",
            after_minutes=minutes,
            created_at=world.lab.now(),
        )
    client.force_login(operator)
    return client


def _ended(world: World) -> None:
    now = world.lab.now()
    make.a_run(rows.a_tracked_project(), "7", outcome=Outcome.DIED, ended_at=now, cost_usd=1)


@pytest.mark.django_db
def test_it_is_written_once_whoever_asks_and_leads_to_the_page_of_its_day(
    anna: Client, world: World
) -> None:
    _ended(world)
    assert morning.send_due(world.lab) == 0
    world.clock.forward(hours=1)
    # Two workers have read the same row; one was ended before it wrote, and writes now.
    ((times, day),) = digests.due(world.lab)
    assert morning.send_due(world.lab) == 1
    assert not digests.write(world.lab, times, day, "again")
    assert morning.send_due(world.lab) == 0
    row = Delivery.objects.get()
    assert (row.address.name, row.page) == ("phone", f"/digest/{day}/")
    assert "Done: 1 died." in row.text
    shown = text_of(anna.get(row.page))
    headings = ["Done", "Waits for you", "Cost"]
    places = [shown.index(f">{one}</h2>") for one in headings]
    assert places == sorted(places)
    assert "$1.00" in shown
    earlier = text_of(anna.get(f"/digest/{day - digest_rules.DAY}/"))
    assert "Nothing happened in this time." in earlier
    assert anna.get("/digest/")["Location"] == row.page
    for wrong in (str(day + digest_rules.DAY), "1999-01-01", "yesterday", "0001-01-01"):
        assert anna.get(f"/digest/{wrong}/").status_code == 404


@pytest.mark.django_db
def test_who_chooses_an_hour_that_has_passed_is_told_from_tomorrow_on(
    world: World, operator: User
) -> None:
    hour = (world.lab.now() - timedelta(hours=1)).time()
    addresses.keep_hours(world.lab, operator, Hours(None, None, "UTC", hour))
    assert digests.due(world.lab) == []
    world.clock.forward(hours=23)
    assert len(digests.due(world.lab)) == 1
    NoticeTimes.objects.update(digest_at=None)
    assert digests.due(world.lab) == []


@pytest.mark.django_db
def test_a_device_whose_browser_renewed_its_subscription_is_taken_over_by_who_held_the_old_one(
    world: World, operator: User, client: Client, settings: object
) -> None:
    settings.PUSH_HOSTS = ["push.test"]  # type: ignore[attr-defined]
    old, new = Browser("push.test", "old"), Browser("push.test", "new")
    device = addresses.Device(**old.given)
    made = addresses.turn_on(world.lab, operator, "phone", device, [])
    proof = {"old": old.endpoint, "old_auth": old.given["auth"]}
    for given, status in (
        ({**new.given, **proof, "old_auth": "AAAA"}, 404),
        ({**new.given, **proof, "old_auth": ""}, 404),
        ({**new.given, **proof, "old": new.endpoint}, 404),
        ({**new.given, **proof, "endpoint": "http://10.0.0.1/x"}, 400),
        ({**new.given, **proof, "p256dh": "x"}, 400),
        ({**new.given, **proof}, 204),
        ({**new.given, **proof}, 404),
    ):
        assert client.post("/push/renew", given).status_code == status
    after = NoticeAddress.objects.get()
    assert (after.pk, after.name) == (made.pk, "phone")
    assert str(after.url).startswith(new.endpoint)
    assert after.endpoint_digest != made.endpoint_digest
