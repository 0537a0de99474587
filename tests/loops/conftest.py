"""Loops that run on a stage of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import World
from tests.loops.staged import Stage


@pytest.fixture
def stage(world: World, live_server: Any, tmp_path: Path) -> Iterator[Stage]:
    """Real runners and agents against the agent API of the test's own database."""
    made = Stage(world, live_server.url, tmp_path / "hand")
    yield made
    made.close()
