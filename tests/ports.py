"""A port for a server that a test starts a moment later, and maybe again on the same one."""

from __future__ import annotations

import random
import socket

# Below what the system gives away itself, so that no other socket is put there in the meantime.
OURS = range(20_000, 30_000)


def free_port() -> int:
    """A port of this machine on which nobody listens."""
    while True:
        port = random.choice(OURS)  # noqa: S311
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
