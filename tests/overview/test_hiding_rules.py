"""When what somebody hid comes back, and what of a page's words is taken: the tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from runs.overview.attention_rules import Need, NeedKind, needs
from runs.overview.hiding_rules import Choice, Hidden, Named, is_hidden, named, split, until
from runs.overview.need_facts import (
    Picture,
    ProjectNeeds,
    RunNeeds,
    WaitNeeds,
)

NOW = datetime(2026, 11, 22, 2, 3, 4, tzinfo=UTC)
BERLIN, UTC_ZONE, NEW_YORK = (
    ZoneInfo("Europe/Berlin"),
    ZoneInfo("UTC"),
    ZoneInfo("America/New_York"),
)
DIED = Need(NeedKind.RUN, "need-run-1", "bad", "a #1", "died", "", (1,), facts="f1")
PULL = Need(NeedKind.PULL, "need-pull-1-4", "good", "a #4", "waits", "", (1, 4), facts="p1")


def at(day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 11, day, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(
    ("choice", "now", "zone", "expected"),
    [
        (Choice.DISMISS, NOW, UTC_ZONE, None),
        (Choice.HOUR, NOW, UTC_ZONE, at(22, 3, 10)),
        (Choice.HOUR, at(22, 2), UTC_ZONE, at(22, 3)),
        (Choice.CHANGE, NOW, UTC_ZONE, at(29, 2, 10)),
        (Choice.MORNING, at(22, 18), UTC_ZONE, at(23, 7)),
        (Choice.MORNING, at(22, 18), BERLIN, at(23, 6)),
        (Choice.MORNING, at(22, 2), BERLIN, at(22, 6)),
        (Choice.MORNING, at(22, 3), BERLIN, at(23, 6)),
        (Choice.MORNING, at(22, 3), NEW_YORK, at(22, 12)),
        (
            Choice.MORNING,
            datetime(2026, 3, 28, 20, tzinfo=UTC),
            BERLIN,
            datetime(2026, 3, 29, 5, tzinfo=UTC),
        ),
    ],
    ids=[
        "dismissed for good",
        "an hour, to the next ten minutes",
        "an hour on the dot",
        "until it changes, a week at most",
        "tomorrow",
        "tomorrow by their own clock",
        "up late: the same morning",
        "up early: the next one",
        "still the evening before, there",
        "over the change of the clock",
    ],
)
def test_when_something_comes_back(choice, now, zone, expected) -> None:
    assert until(choice, now, zone) == expected


@pytest.mark.parametrize(
    ("mark", "need", "expected"),
    [
        (None, DIED, False),
        (Hidden("need-run-1", "f1"), DIED, True),
        (Hidden("need-run-1", "f0"), DIED, False),
        (Hidden("need-run-1", "f1", NOW + timedelta(seconds=1)), DIED, True),
        (Hidden("need-run-1", "f1", NOW), DIED, False),
        (Hidden("need-run-1", "f0", at(30, 1)), DIED, False),
        (Hidden("need-pull-1-4", "p1"), PULL, False),
    ],
    ids=[
        "never hidden",
        "dismissed",
        "dismissed, and it is another one now",
        "snoozed",
        "snoozed until now",
        "snoozed, and it is another one now",
        "what is not over is never dismissed",
    ],
)
def test_what_stays_off_the_list(mark, need, expected) -> None:
    assert is_hidden(mark, need, NOW) is expected


def test_a_list_is_split_in_its_order() -> None:
    early, late = Hidden("need-pull-1-4", "p1", at(22, 3)), Hidden("need-run-1", "f1", at(22, 4))
    assert split([PULL, DIED], [late, early], NOW) == ([], [(PULL, early), (DIED, late)])
    assert split([PULL, DIED], [Hidden("need-run-1", "f1")], NOW)[0] == [PULL]


@pytest.mark.parametrize(
    ("shown", "choice", "expected"),
    [
        ("", Choice.HOUR, Named([], 0)),
        ("need-run-1.f1 need-pull-1-4.p1", Choice.HOUR, Named([DIED, PULL], 0)),
        ("need-run-1.f1 need-run-1.f1", Choice.HOUR, Named([DIED], 0)),
        ("need-run-1.f0 need-pull-1-4.p1", Choice.HOUR, Named([PULL], 1)),
        ("need-run-9.f1 . x need-run-1 need-run-1.", Choice.HOUR, Named([], 1)),
        ("need-run-1.f1 need-pull-1-4.p1", Choice.DISMISS, Named([DIED], 0)),
    ],
    ids=["nothing", "both", "twice", "one has changed", "nonsense", "only what is over"],
)
def test_what_a_page_named(shown, choice, expected) -> None:
    assert named([DIED, PULL], shown, choice) == expected


def _facts(**picture) -> str:
    (need,) = needs(Picture(**picture))
    return need.facts


def test_facts_change_with_what_happened_and_not_with_how_it_is_told() -> None:
    wait = {"id": 1, "title": "a #1", "what": "asks", "at": NOW}
    asked = _facts(waits=[WaitNeeds(**wait, since="02:03", note="npm i")])
    assert asked == _facts(waits=[WaitNeeds(**wait, since="22 Nov 02:03", advice="answered")])
    assert asked != _facts(waits=[WaitNeeds(**wait | {"at": at(22, 3)})])

    def paused(**more):
        return _facts(projects=[ProjectNeeds(1, "a", is_paused=True, streak=3, **more)])

    assert paused(last_failure=4) == paused(last_failure=4) != paused(last_failure=5)
    died = RunNeeds(1, "a #1", "died", reason="exit 1")
    kept = RunNeeds(1, "a #1", "died", reason="exit 1", is_kept=True)
    assert _facts(runs=[died]) == _facts(runs=[kept])
    assert _facts(is_late=True, late_since=NOW) != _facts(is_late=True, late_since=at(22, 3))
