"""How often to ask, row by row."""

from __future__ import annotations

from datetime import timedelta

import pytest

from trackers.http.quota import floor, pace

HOUR = timedelta(hours=1)
INTERVAL = timedelta(seconds=45)


@pytest.mark.parametrize(
    ("limit", "remaining", "share", "reset_in", "calls", "seconds"),
    [
        pytest.param(0, 0, 0.4, HOUR, 20, 45, id="a forge without a quota"),
        pytest.param(5000, 5000, 0.4, HOUR, 0, 45, id="polls that cost nothing"),
        pytest.param(5000, 5000, 0.4, HOUR, 20, 45, id="plenty"),
        pytest.param(5000, 2200, 0.4, HOUR, 20, 360, id="ten polls left for an hour"),
        pytest.param(5000, 2200, 0.4, timedelta(minutes=5), 20, 45, id="ten for five minutes"),
        pytest.param(5000, 2020, 0.4, HOUR, 20, 3600, id="exactly one left"),
        pytest.param(5000, 2019, 0.4, HOUR, 20, 3600, id="less than one: the new window"),
        pytest.param(5000, 2000, 0.4, HOUR, 1, 3600, id="at the human's share"),
        pytest.param(5000, 12, 0.4, HOUR, 1, 3600, id="the human is in it"),
        pytest.param(5000, 0, 0.4, timedelta(seconds=5), 1, 45, id="never below the interval"),
        pytest.param(5000, 100, 0.0, HOUR, 10, 360, id="no share"),
        pytest.param(5000, 5000, 1.0, HOUR, 1, 3600, id="all of it is the human's"),
        pytest.param(60, 60, 0.4, HOUR, 1, 100, id="without a token: 36 of 60"),
        pytest.param(5000, 1, 0.4, timedelta(0), 20, 45, id="the window is over"),
        pytest.param(5000, 1, 0.4, timedelta(seconds=-5), 20, 45, id="long over"),
    ],
)
def test_the_time_between_two_polls(
    limit: int, remaining: int, share: float, reset_in: timedelta, calls: int, seconds: float
):
    found = pace(limit, remaining, share, reset_in, calls, INTERVAL)
    assert found.total_seconds() == seconds


@pytest.mark.parametrize(
    ("limit", "share", "kept"),
    [(5000, 0.4, 2000), (60, 0.4, 24), (15, 0.5, 8), (100, 0.07, 7), (5000, 0.0, 0), (3, 1.0, 3)],
)
def test_the_human_s_share_is_rounded_up(limit: int, share: float, kept: int):
    assert floor(limit, share) == kept


def test_polling_at_its_pace_lasts_until_the_window_is_over():
    """Whatever is left: followed to the end, polling never takes more than was its to take."""
    for remaining in range(2000, 5001, 100):
        left, clock = remaining, timedelta(0)
        while clock < HOUR:
            left -= 60
            clock += pace(5000, max(left, 0), 0.4, HOUR - clock, 60, INTERVAL)
        assert left >= min(remaining, 2000) - 60
