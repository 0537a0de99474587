"""Which databases this version can bring up to date, by the names of their migrations."""

from __future__ import annotations

import pytest

from runs.core.upgrading import Gap, gap

KNOWN = [("runs", "0052_first"), ("runs", "0053_more"), ("builtin", "0005_first")]


@pytest.mark.parametrize(
    ("applied", "found"),
    [
        pytest.param([], Gap([], []), id="empty"),
        pytest.param(KNOWN, Gap([], []), id="made by this version"),
        pytest.param(
            [("runs", "0001_old"), ("runs", "0051_old"), ("runs", "0052_first")],
            Gap([], []),
            id="past what is gone",
        ),
        pytest.param([*KNOWN, ("runs", "0054_new")], Gap(["runs.0054_new"], []), id="newer"),
        pytest.param(
            [("runs", "0001_old"), ("runs", "0051_old")], Gap([], ["runs.0051_old"]), id="older"
        ),
        pytest.param(
            [*KNOWN[:2], ("builtin", "0001_old")], Gap([], ["builtin.0001_old"]), id="one app older"
        ),
        pytest.param(
            [("runs", "0001_old"), ("runs", "0060_x")],
            Gap(["runs.0060_x"], ["runs.0001_old"]),
            id="of another line",
        ),
        pytest.param([*KNOWN, ("gone", "0001_first")], Gap([], []), id="an app that is gone"),
    ],
)
def test_what_stands_in_the_way(applied: list[tuple[str, str]], found: Gap) -> None:
    assert gap(applied, KNOWN) == found
