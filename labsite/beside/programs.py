"""The programs of the product, started beside the command while nobody else runs a worker.

Each has a process group of its own, so Ctrl-C reaches the command alone. A product that is
started meanwhile is harmless: the lease decides who ticks.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from types import TracebackType

from labsite import preflight, programs, supervisor
from labsite.supervisor import Child
from runs.core.paths import Paths
from runs.machine import bell

LOOK_SECONDS = 2.0
HOST = "127.0.0.1"


class Programs:
    """A context that ends what it started; agent sessions are tmux's and go on."""

    def __init__(self, paths: Paths, say: Callable[[str], None]) -> None:
        self._paths = paths
        self._say = say
        self._children: list[Child] = []
        self._address = ""
        self._next_look = 0.0

    def __enter__(self) -> Programs:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def prepare(self) -> None:
        """Make a fresh or an older state folder usable, unless a product runs on it.

        Raises Problem, WrongSetting.
        """
        if bell.is_heard(self._paths.worker_socket):
            return
        preflight.programs()
        preflight.state_folder(self._paths)
        if supervisor.prepare(self._environment()) is None:
            raise preflight.Problem("The state folder could not be prepared; the reason is above.")

    def tend(self) -> None:
        """Start what is missing, at most every two seconds."""
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + LOOK_SECONDS
        for child in self._children:
            child.bury(now)
            if child.process is None and now >= child.due:
                child.start(self._environment(), now)
        if not self._children and not bell.is_heard(self._paths.worker_socket):
            self._start(now)

    def _start(self, now: float) -> None:
        self._say("No worker runs on this state folder, so one is started until this ends.")
        self._children = [Child("worker", programs.worker_argv())]
        if not self._is_served():
            port = preflight.free_port(HOST, 0)
            preflight.write_labctl(self._paths, sys.executable, supervisor.ROOT)
            self._address = preflight.base_url(HOST, port)
            # For the agents: their command asks the web process.
            preflight.write_address(self._paths, self._address)
            self._children.append(Child("web", programs.web_argv(HOST, port)))
        for child in self._children:
            child.start(self._environment(), now)

    def _is_served(self) -> bool:
        """Whether `./lab up` holds the state folder, and so serves it or is about to."""
        try:
            preflight.only_one(self._paths).close()
        except preflight.Problem:
            return True
        return False

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "LAB_STATE_DIR": str(self._paths.state)}

    def _end(self) -> None:
        for child in self._children:
            child.ask_to_end()
        limit = time.monotonic() + supervisor.STOP_SECONDS
        while not all(child.is_gone() for child in self._children):
            if time.monotonic() > limit:
                for child in self._children:
                    child.end_at_once()
                break
            time.sleep(0.05)
        if self._address and self._told() == self._address:
            with contextlib.suppress(OSError):
                self._paths.address.unlink(missing_ok=True)

    def _told(self) -> str:
        """The address that agents find now; a product started meanwhile wrote its own."""
        try:
            return self._paths.address.read_text().strip()
        except OSError:
            return ""
