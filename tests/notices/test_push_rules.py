"""Where, when and how pushes go out: a table for each rule."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from runs.notices import push_rules
from runs.notices.push_rules import PAYLOAD_BYTES, Pace

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("endpoint", "is_refused"),
    [
        ("https://fcm.googleapis.com/fcm/send/abc", False),
        ("https://updates.push.services.mozilla.com/wpush/v2/x", False),
        ("https://web.push.apple.com:443/Q", False),
        ("http://fcm.googleapis.com/x", True),
        ("https://fcm.googleapis.com:8443/x", True),
        ("https://user:pass@fcm.googleapis.com/x", True),
        ("https://127.0.0.1/x", True),
        ("https://10.0.0.7/x", True),
        ("https://169.254.169.254/latest/meta-data", True),
        ("https://[::1]/x", True),
        ("https://[fd00::1]/x", True),
        ("https://[2a00:1450:4001::1]/x", False),
        ("https://[64:ff9b::808:808]/x", False),
        ("https://[64:ff9b::a9fe:a9fe]/x", True),
        ("https://[::ffff:10.0.0.1]/x", True),
        ("https://[::127.0.0.1]/x", True),
        ("https://[2002:7f00:1::]/x", True),
        ("https://[fec0::1]/x", True),
        ("https://[ff0e::1]/x", True),
        ("https://239.1.1.1/x", True),
        ("https://a..b.example/x", True),
        (f"https://{'a' * 70}.example/x", True),
        ("https://localhost/x", True),
        ("https://router/x", True),
        ("https://printer.local/x", True),
        ("https://metadata.google.internal/x", True),
        ("file:///etc/passwd", True),
        ("https://", True),
        ("https://[/x", True),
        ("", True),
        ("http://push.lan:8080/x", False),
        ("http://push.lan/x", True),
        ("ftp://push.lan:8080/x", True),
    ],
)
def test_only_push_services_outside_and_named_hosts_are_called(
    endpoint: str, is_refused: bool
) -> None:
    assert bool(push_rules.refusal(endpoint, ["push.lan:8080"])) is is_refused


@pytest.mark.parametrize(
    ("due", "sent", "expected"),
    [
        (1, [], Pace()),
        (5, [], Pace()),
        (6, [], Pace(others=True)),
        (40, [], Pace(others=True)),
        (2, [10, 20, 30, 40], Pace(others=True)),
        (1, [10, 20, 30, 40], Pace()),
        (1, [10, 20, 30, 40, 50], Pace(until=NOW + timedelta(seconds=10))),
        (1, [10, 20, 30, 40, 61], Pace()),
        (3, [-5], Pace()),
    ],
)
def test_more_than_five_a_minute_become_one(due: int, sent: list[int], expected: Pace) -> None:
    moments = [NOW - timedelta(seconds=s) for s in sent]
    assert push_rules.pace(NOW, due, moments) == expected


@pytest.mark.parametrize(
    ("at", "start", "end", "zone", "expected"),
    [
        ("2026-11-21T23:00", "22:00", "07:00", "UTC", "2026-11-22T07:00"),
        ("2026-11-21T06:59", "22:00", "07:00", "UTC", "2026-11-21T07:00"),
        ("2026-11-21T07:00", "22:00", "07:00", "UTC", None),
        ("2026-11-21T22:00", "22:00", "07:00", "UTC", "2026-11-22T07:00"),
        ("2026-11-21T13:00", "12:00", "14:00", "UTC", "2026-11-21T14:00"),
        ("2026-11-21T14:00", "12:00", "14:00", "UTC", None),
        ("2026-11-21T21:30", "22:00", "07:00", "Europe/Berlin", "2026-11-22T06:00"),
        ("2026-11-21T20:30", "22:00", "07:00", "Europe/Berlin", None),
        # The night in which clocks are set back has an hour more.
        ("2026-10-24T21:00", "22:00", "07:00", "Europe/Berlin", "2026-10-25T06:00"),
        # Its hours from 2 to 3 come twice, and each of them ends.
        ("2026-10-25T00:10", "22:00", "02:30", "Europe/Berlin", "2026-10-25T00:30"),
        ("2026-10-25T01:10", "22:00", "02:30", "Europe/Berlin", "2026-10-25T01:30"),
        ("2026-10-25T01:40", "22:00", "02:30", "Europe/Berlin", None),
        ("2026-11-01T06:10", "22:00", "01:30", "America/New_York", "2026-11-01T06:30"),
        ("2026-03-29T00:50", "22:00", "02:30", "Europe/Berlin", "2026-03-29T01:30"),
        ("2026-11-21T23:00", "22:00", "07:00", "No/Where", "2026-11-22T07:00"),
        ("2026-11-21T23:00", "22:00", "22:00", "UTC", None),
    ],
)
def test_quiet_hours_end_by_the_clock_of_the_person(
    at: str, start: str, end: str, zone: str, expected: str | None
) -> None:
    now = datetime.fromisoformat(at).replace(tzinfo=UTC)
    found = push_rules.quiet_until(now, time.fromisoformat(start), time.fromisoformat(end), zone)
    assert found == (datetime.fromisoformat(expected).replace(tzinfo=UTC) if expected else None)
    assert push_rules.quiet_until(now, None, None, zone) is None


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
def test_the_end_of_quiet_hours_lies_ahead_at_every_minute_of_every_change(zone: str) -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    hours = [time(0), time(1, 30), time(2), time(2, 15), time(2, 30), time(3), time(22)]
    place = ZoneInfo(zone)
    days = [begin + timedelta(days=n) for n in range(365)]
    changes = [a for a in days if _offset(a, place) != _offset(a + timedelta(days=1), place)]
    assert len(changes) == 2
    for now in (day + timedelta(minutes=5 * n) for day in changes for n in range(24 * 12)):
        for start, end in itertools.permutations(hours, 2):
            until = push_rules.quiet_until(now, start, end, zone)
            assert until is None or now < until <= now + timedelta(hours=25)


def _offset(at: datetime, place: ZoneInfo) -> object:
    return at.astimezone(place).utcoffset()


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["Yes", "Yes, and don’t ask again for: git tag *", "No"], (1, 3)),
        (["Yes, proceed (y)", "Yes, and don't ask again for x (p)", "No, and tell (esc)"], (1, 3)),
        (["Yes, allow once", "Yes, allow always", "No, suggest changes (esc)"], (1, 3)),
        (["Allow once", "Allow always", "Reject"], (1, 3)),
        (["Yes, and auto-accept edits", "Yes, and manually approve edits", "No, stay"], (None, 3)),
        (["Yes, and bypass permissions", "No, keep planning"], (None, 2)),
        (["Yes, I trust this folder", "No, exit"], (None, 2)),
        (["Allow for all projects", "Accept everything", "Deny"], (None, 3)),
        (["Yes", "Allow", "No"], (None, 3)),
        (["Yes", "Yes, and never ask me for git again", "No"], (1, 3)),
        (["Yes", "No, and tell Claude what to do differently"], (1, 2)),
        (["Yes", "Yes, and don't ask again this session", "No (esc)"], (1, 3)),
        (["Yes, allow all edits during this session", "No"], (None, 2)),
        (["Approve", "Deny"], (1, 2)),
        (["No", "No, never"], (None, None)),
        (["Red", "Green"], (None, None)),
        (["Nothing to do", "Yesterday"], (None, None)),
        ([], (None, None)),
    ],
)
def test_allow_and_deny_are_offered_only_where_they_are_plain(
    texts: list[str], expected: tuple[int | None, int | None]
) -> None:
    assert push_rules.allow_and_deny(list(enumerate(texts, 1))) == expected


def test_a_push_fits_whatever_it_tells() -> None:
    told: dict[str, object] = {"title": "demo #7", "body": "ü" * 9000, "acts": []}
    text = push_rules.payload(told)
    assert len(text.encode()) <= PAYLOAD_BYTES
    assert json.loads(text)["body"].endswith("…")
    many = json.loads(push_rules.payload(told, [f"demo #{n}" for n in range(40)]))
    assert many["title"] == "labsite: 40 notices"
    assert many["body"].splitlines()[-1] == "and 36 more"
