"""Products that a test starts, and that are ended after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.house.product import Product


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Product]]:
    """Start `./lab up` on a state folder; ready when the answer comes."""
    started: list[Product] = []

    def go(*argv: str, state: Path = tmp_path / "state", **more: str) -> Product:
        started.append(Product(state, *argv, **more))
        return started[-1].wait_until_ready()

    yield go
    for product in started:
        product.close()
