"""The client as the product uses it."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from trackers.http.client import Client
from trackers.http.meter import Meter
from trackers.http.store import Store
from trackers.http.wire import Wire


def over_network(
    folder: Path | None,
    now: Callable[[], datetime],
    meter: Meter | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> Client:
    """A client on the real network that keeps answers in a folder, if it is given one. One per process is enough."""
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)  # they tell of headers and addresses
    return Client(
        transport=Wire(),
        meter=meter or Meter(),
        store=Store(folder),
        now=now,
        steady=time.monotonic,
        pause=pause,
        random=random.random,
    )
