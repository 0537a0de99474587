"""What the whole product takes while nobody works, measured: each feature may bring a little, unseen."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bench import rest
from tests.house.product import Product

pytestmark = [pytest.mark.long, pytest.mark.real]

# The targets, and a quarter more, since the machine does other work beside this test.
ALLOWED = 1.25
SECONDS = 60
# The target is 110 MB and not reached (docs/performance.md): it may not grow meanwhile.
MEGABYTES = 150


@pytest.mark.parametrize(("projects", "percent"), [(0, 0.10), (200, 0.30)])
def test_a_machine_at_rest_is_left_alone(
    start: Callable[..., Product], tmp_path: Path, projects: int, percent: float
) -> None:
    state = tmp_path / "resting"
    rest.fill(state, projects)
    product = start(state=state)
    time.sleep(rest.SETTLE_SECONDS)
    found = rest.measure(product, SECONDS)
    assert found["all"].percent <= ALLOWED * percent, found
    if not projects:
        assert found["all"].megabytes <= MEGABYTES, found
