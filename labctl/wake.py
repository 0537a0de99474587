"""`labctl wake`: wake the worker for one project. Run by a tmux hook, so it imports little."""

from __future__ import annotations

import _socket  # what `socket` is made of, which takes longer to load than all of Python
import os
import sys

USAGE = "usage: labctl wake [--socket PATH] [PROJECT]"


def run(arguments: list[str]) -> int:
    """Send one datagram. Returns 0 even when nobody listens: the next tick finds everything anyway."""
    path = os.environ.get("LAB_WAKE_SOCKET", "")
    if arguments[:1] == ["--socket"]:
        path, arguments = "".join(arguments[1:2]), arguments[2:]
    project = "".join(arguments[:1]) or os.environ.get("LAB_PROJECT", "")
    if len(arguments) > 1 or project.startswith("-") or not path:
        print(USAGE, file=sys.stderr)
        return 2
    send(path, project)
    return 0


def send(path: str, project: str) -> None:
    """Send it without blocking; a missing, full or foreign socket is ignored."""
    sender = _socket.socket(_socket.AF_UNIX, _socket.SOCK_DGRAM)
    try:
        sender.setblocking(False)
        sender.sendto(project.encode("utf-8", "surrogateescape"), path)
    except (OSError, ValueError):
        return
    finally:
        sender.close()
