#!/usr/bin/env python3
"""Runs inside a session as `python -I -S launcher.py FOLDER`; standard library only, on purpose.

Reads the private order in FOLDER, starts the agent as its child, waits, and writes how it ended
to FOLDER/exit, since a tmux server that is killed keeps no status (stack.md section 6).
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys
import time


def main(folder: str) -> int:
    with open(os.path.join(folder, "order.json"), encoding="utf-8") as file:  # noqa: PTH118, PTH123
        order = json.load(file)
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    child = os.fork()
    if child == 0:
        _become_agent(order)
    with contextlib.suppress(PermissionError, ProcessLookupError):
        os.setpgid(child, child)  # the child does it too; whoever is second may be refused
    _give_terminal(child)
    _, raw = os.waitpid(child, 0)
    status = os.waitstatus_to_exitcode(raw)
    _write_exit(folder, status)
    return _die_alike(-status) if status < 0 else status


def _die_alike(number: int) -> int:
    """End by the same signal, so that tmux reports it too; without a core file of our own."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number


def _become_agent(order: dict) -> None:  # type: ignore[type-arg]
    """In the child: limits, folder, environment, then the agent itself; 127 when it cannot run."""
    try:
        os.setpgid(0, 0)
        _give_terminal(os.getpid())
        for number in (
            signal.SIGINT,
            signal.SIGQUIT,
            signal.SIGHUP,
            signal.SIGTERM,
            signal.SIGTTOU,
        ):
            signal.signal(number, signal.SIG_DFL)
        if order["nofile"]:
            _limit_files(order["nofile"])
        os.chdir(order["cwd"])
        os.execvpe(order["argv"][0], order["argv"], {**os.environ, **order["env"]})  # noqa: S606
    except OSError as error:
        print(
            f"{order['argv'][0]} could not be started: {error.strerror}",
            file=sys.stderr,
            flush=True,
        )
    os._exit(127)


def _limit_files(number: int) -> None:
    """The file-descriptor limit, soft and hard, for the whole tree (LAB-72)."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and number > hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (number, number))
            return
        number = hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, number))


def _give_terminal(group: int) -> None:
    """Make the agent's process group the one that the terminal talks to."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.tcsetpgrp(0, group)


def _write_exit(folder: str, status: int) -> None:
    path = os.path.join(folder, "exit")  # noqa: PTH118
    with contextlib.suppress(OSError):
        with open(path + ".part", "w", encoding="utf-8") as file:  # noqa: PTH123
            json.dump({"status": status, "at": time.time()}, file)
        os.rename(path + ".part", path)  # noqa: PTH104


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
