"""Forges that fail the test at its end when a request broke their description."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.trackers.forge import Gitea, GitHub
from tests.trackers.forge import forgejo as a_forgejo


@pytest.fixture
def github() -> Iterator[GitHub]:
    """github.com in this process."""
    forge = GitHub()
    yield forge
    forge.check()


@pytest.fixture
def gitea() -> Iterator[Gitea]:
    """A Gitea server in this process."""
    forge = Gitea()
    yield forge
    forge.check()


@pytest.fixture
def forgejo() -> Iterator[Gitea]:
    """A Forgejo server in this process."""
    forge = a_forgejo()
    yield forge
    forge.check()
