"""What a step of a tick does with what goes wrong in it."""

from __future__ import annotations

from typing import Any, cast

import pytest
from django.db import OperationalError

from runs.core import lease
from runs.core.tick_context import TickContext


def under_way() -> TickContext:
    nothing = cast("Any", None)
    return TickContext(lab=nothing, number=1, settings=nothing, now=nothing)


def test_a_mistake_is_noted_and_the_tick_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    tick = under_way()
    with tick.going_on("run 7 was left", OperationalError, run_id=7):
        raise KeyError("x")
    assert tick.errors == ["run 7 was left: KeyError('x')"]
    assert caplog.records[0].__dict__["run_id"] == 7


@pytest.mark.parametrize("error", [lease.Lost(), OperationalError("gone")])
def test_a_lost_lease_and_what_is_fatal_end_the_tick(error: Exception) -> None:
    tick = under_way()
    with pytest.raises(type(error)), tick.going_on("run 7 was left", OperationalError):
        raise error
    assert tick.errors == []
