"""Fixtures that every test may ask for. A test that reaches the outside without one fails at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from tests import make
from tests.fakes import World
from tests.real import RealWorld


@pytest.fixture
def world(tmp_path: Path, settings: Any) -> World:
    """A fake outside; `runs.wiring.lab()` gives its Lab."""
    made = World(tmp_path / "state")
    settings.RUNS_LAB = lambda: made.lab
    return made


@pytest.fixture
def real(tmp_path: Path, settings: Any, transactional_db: None) -> Iterator[RealWorld]:
    """Real tmux and git; `runs.wiring.lab()` gives its Lab."""
    made = RealWorld(tmp_path)
    settings.RUNS_LAB = lambda: made.lab
    yield made
    made.close()


@pytest.fixture
def operator(db: None) -> User:
    """Anna, who may act."""
    return make.a_user("anna")


@pytest.fixture
def viewer(db: None) -> User:
    """Vera, who may look."""
    return make.a_user("vera", operator=False)
