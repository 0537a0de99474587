"""Products that a test starts, and that are ended after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import databases, prepared
from tests.house.product import Product


@pytest.fixture(scope="session")
def once_used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state folder that has been in use, made once."""
    return prepared.used(tmp_path_factory)


@pytest.fixture
def tables(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Path:
    """A state folder that nobody has used, with the tables that every first command would make."""
    return prepared.copied(tmp_path_factory, tmp_path / "state")


@pytest.fixture
def used(once_used: Path, tmp_path: Path) -> Path:
    """A copy of it, with Anna's account."""
    return databases.copy(once_used, tmp_path / "used")


@pytest.fixture(scope="module")
def running(once_used: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """One product for the tests of a module that only look at it, on a copy of the used folder."""
    product = Product(databases.copy(once_used, tmp_path_factory.mktemp("running") / "state"))
    try:
        yield product.wait_until_ready()
    finally:
        product.close()


@pytest.fixture
def start(used: Path) -> Iterator[Callable[..., Product]]:
    """Start `./lab up` on a state folder, the used one if none is named; the answer is ready."""
    started: list[Product] = []

    def go(*argv: str, state: Path = used, **more: str) -> Product:
        started.append(Product(state, *argv, **more))
        return started[-1].wait_until_ready()

    yield go
    for product in started:
        product.close()
