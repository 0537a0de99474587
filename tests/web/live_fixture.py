"""Django's own server for page tests, at rest before the next test begins."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.patience import PATIENCE


@pytest.fixture
def page_server(live_server: Any) -> Iterator[Any]:
    """The server of the whole run. The pages of a test are closed by now, its requests may go on.

    They would write into the emptied tables, and ask the next test's world.
    """
    yield live_server
    for thread in threading.enumerate():
        if "process_request_thread" in thread.name:
            thread.join(PATIENCE)
            assert not thread.is_alive(), "a request does not come to its end"
