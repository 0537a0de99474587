"""The programs that make up the running product, as argument lists for the supervisor."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from labsite import env

ROOT = Path(__file__).resolve().parent.parent
TASK_GRACE_SECONDS = 20
IDLE_STATUS = 90  # a web process ends with it when nobody uses it: the next connection starts one


def all_of(workers: int, only: str = "") -> list[tuple[str, Sequence[str]]]:
    """Name and argument list of one web process and so many workers, or of one part of these."""
    more = [(f"worker {n}", worker_argv(is_first=False)) for n in range(2, workers + 1)]
    web = [("web", web_argv())] if only != "worker" else []
    return [*web, *([("worker", worker_argv()), *more] if only != "web" else [])]


def web_argv(host: str = "", port: int = 0) -> list[str]:
    """Daphne without an access log; behind a proxy it believes the proxy's headers.

    Without a host it has no address yet, and is given a listening socket.
    """
    argv = [sys.executable, "-m", "labsite.web", "-v", "0"]
    if host:
        argv += ["-b", host, "-p", str(port)]
    if env.flag("LAB_BEHIND_PROXY"):
        argv.append("--proxy-headers")
    return [*argv, "labsite.asgi:application"]


def worker_argv(is_first: bool = True) -> list[str]:
    """Huey with threads: on SIGTERM it lets tasks finish, and it forgets locks of a killed one.

    Only the first worker offers ticks and hears wake-ups; the others take work off the queue. An
    idle thread waits to be rung, so it asks by itself every ten minutes only.
    `prepare` has run the system checks; here they would load every page into the worker.
    """
    options = f"-w 15 -k thread -d 0.2 -m 600 -g TERM -t {TASK_GRACE_SECONDS} -f --skip-checks"
    more = [] if is_first else ["-n"]
    return [sys.executable, str(ROOT / "manage.py"), "run_huey", *options.split(), *more]
