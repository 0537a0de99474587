"""Django's own server for page tests, at rest before the next test begins."""

from __future__ import annotations

import threading
import time
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
    end = time.monotonic() + PATIENCE
    for thread in threading.enumerate():
        # Other servers of this process, such as that of a scripted model, answer on.
        server = getattr(getattr(thread, "_target", None), "__self__", None)
        if server is live_server.thread.httpd:
            _join(thread, end)
            assert not thread.is_alive(), "a request does not come to its end"


def _join(thread: threading.Thread, end: float) -> None:
    """Wait for a thread, also for one that is listed already and about to be started."""
    while True:
        try:
            return thread.join(max(0.0, end - time.monotonic()))
        except RuntimeError:
            assert time.monotonic() < end, "a request does not begin"
            time.sleep(0.001)
