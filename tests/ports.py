"""A port for a server that a test starts a moment later, and maybe again on the same one."""

from __future__ import annotations

import itertools
import os
import random
import socket
from collections.abc import Iterator

# Below what the system gives away itself, so that no other socket is put there in the meantime.
OURS = range(20_000, 30_000)


def _own() -> Iterator[int]:
    """The ports of this process: no other one of the run is given them between choice and start.

    Each comes again only after all others, since a server that a test stopped is to come back.
    """
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    ports = list(OURS[number :: int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))])
    random.SystemRandom().shuffle(ports)
    return itertools.cycle(ports)


_ports = _own()


def free_port() -> int:
    """A port of this machine on which nobody listens."""
    while True:
        port = next(_ports)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
