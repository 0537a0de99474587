"""Web and worker as forks of a process that has loaded once what they have in common.

They share its memory until they write to it, and start in the time that is left to load. The
process itself serves nothing, has one thread and no connection, so that each fork finds it clean.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import runpy
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from labsite import loading

# Of each part what it needs at work and what opens nothing: no event loop, no thread, no connection.
# Of the web process its pages alone. What serves them, 13 MB, it loads by itself in 0.1 s: while
# nobody uses it there is none (labsite/web/idle.py).
NEEDED = {
    "worker": ("runs.tasks",),
    "web": ("labsite.urls",),
}
FIRST_HANDLE = 3
PR_SET_PDEATHSIG = 1
NAME_BYTES = 15
ARGUMENTS_FROM = 45  # of /proc/self/stat, counted behind the name of the program

_context = multiprocessing.get_context("fork")


class Forked:
    """A fork of this process that goes on as another program. To its parent it is like a Popen."""

    def __init__(self, name: str, become: Callable[[], None], handles: Iterable[int] = ()) -> None:
        """Fork; when this returns, the fork has a session of its own and none of our handles."""
        self._process = _context.Process(
            target=_begin, args=(name, become, os.getpid(), sorted(handles)), name=name
        )
        # Until it has its own answers to signals, the fork would answer with ours.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self.pid = self._process.pid or 0
        select.select([self._process.sentinel], [], [])

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self) -> int | None:
        self._process.join()
        return self._process.exitcode

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()


def load(environment: Mapping[str, str]) -> None:
    """Load Django with these settings; the forks find it. Raises WrongSetting."""
    os.environ.update(environment)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labsite.settings")
    loading.load()
    _let_go()


def load_parts(names: Iterable[str]) -> None:
    """Load what web process or workers need at work."""
    modules = [one for name in names for one in NEEDED[name]]
    with loading.undisturbed():
        for module in modules:
            import_module(module)
    _let_go()
    loading.fill_gaps()


def _let_go() -> None:
    """Close what loading opened: a fork must not share a connection, and would spoil it."""
    from django.conf import settings
    from django.db import connections

    settings.HUEY.let_go()
    connections.close_all()
    loading.give_back()


def program(name: str, argv: Sequence[str], handles: Iterable[int]) -> Forked | None:
    """A fork that goes on as the program with this argument list and these handles of ours.

    None beside other threads: a fork has none of them, but every lock that they held.
    """
    return Forked(name, lambda: _become(argv), handles) if threading.active_count() == 1 else None


def preparing(told_to: int) -> Forked:
    """A fork that makes the state folder ready and ends; see `manage.py prepare --tell`."""
    return Forked("prepare", lambda: loading.prepare_loaded("--tell", str(told_to)), [told_to])


def _become(argv: Sequence[str]) -> None:
    """Go on as a program of Python's: a script, or a module after `-m`."""
    from labsite import database

    _, first, *words = argv
    if first == "-m":
        database.name_after(words[0].rpartition(".")[2])
        sys.argv = [first, *words[1:]]
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    else:
        database.name_after("worker")
        sys.argv = [first, *words]
        runpy.run_path(first, run_name="__main__")


def _begin(name: str, become: Callable[[], None], parent: int, handles: Sequence[int]) -> None:
    """What every fork does first. Closing our end of its pipe tells the parent that it is done."""
    os.setsid()
    _ends_after(parent)
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    _call(f"labsite {name}")
    os.chdir(Path(__file__).resolve().parent.parent)
    start = FIRST_HANDLE
    for handle in (*handles, os.sysconf("SC_OPEN_MAX")):
        os.closerange(start, handle)
        start = handle + 1
    become()


def _ends_after(parent: int) -> None:
    """Have the kernel end this process when its parent ends."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)


def _call(name: str) -> None:
    """Show a name to `ps` and `top` in place of the command line that the fork has from its parent."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        Path("/proc/self/comm").write_text(name.replace(" ", "-")[:NAME_BYTES])
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start, end = (int(field) for field in fields[ARGUMENTS_FROM : ARGUMENTS_FROM + 2])
        if 0 < start < end:
            text = name.encode()[: end - start - 1]
            ctypes.memmove(start, text.ljust(end - start, b"\0"), end - start)
