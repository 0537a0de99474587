"""Follows something of the product from a terminal: `./lab watch`, `loop`, `wait`, `agent try`.

What is followed is the product's: whoever runs a worker works on it, and it goes on when this
command is killed or its terminal closed. While nobody runs a worker the same programs as
`./lab up` has are started beside this command. Each has a process group of its own, so Ctrl-C
reaches the command alone. A product that is started meanwhile is harmless: the lease decides who
ticks.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import ClassVar, Protocol

from labsite import env, loading, preflight, programs, supervisor
from labsite.supervisor import Child
from runs.core.paths import Paths
from runs.core.refusal import ActRefused
from runs.core.terminal import CODE_ARGUMENTS, CODE_HUNG_UP, CODE_INTERRUPTED, say
from runs.machine import bell

ROUND_SECONDS = 0.2
LOOK_SECONDS = 2.0
HOST = "127.0.0.1"


class Followed(Protocol):
    """What is followed, as it is stored. Both may fail while the database is away."""

    def press(self, times: int) -> int | None:
        """Do what so many presses of Ctrl-C ask for; the exit code when the command ends with it."""

    def news(self) -> int | None:
        """Tell what is new; the exit code once it has ended."""


class Command(Protocol):
    """What was typed.

    `left`: what goes on when the terminal is closed. `failed`, `lost`: the exit code of what
    nobody expected, and what that means.
    """

    left: ClassVar[str]
    lost: ClassVar[str]
    failed: ClassVar[int]

    def begin(self) -> Followed | int | None:
        """Begin what was asked for. None: not yet, ask again; a code: it is done. Raises ActRefused."""


class Presses:
    """Counts stop signals; the loop heeds them, so that nothing is done inside a handler."""

    def __init__(self) -> None:
        self.count = 0
        self.is_hung_up = False
        self._heeded = 0

    def listen(self) -> None:
        """Heed Ctrl-C and the like, and a closed terminal unless that was to be ignored (nohup)."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self._press())
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            signal.signal(signal.SIGHUP, lambda *_: self._hang_up())

    @property
    def is_pressed(self) -> bool:
        """Whether anything asks for an end."""
        return self.count > 0 or self.is_hung_up

    def take(self) -> int:
        """How often it was pressed by now; 0 when there was none since the last call."""
        if self._heeded == self.count:
            return 0
        self._heeded = self.count
        return self.count

    def _press(self) -> None:
        self.count += 1

    def _hang_up(self) -> None:
        self.is_hung_up = True


def main(read: Callable[[Sequence[str]], Command], argv: Sequence[str]) -> int:
    """Runs a command; its exit code, which is 2 for what cannot be begun."""
    try:
        command = read(argv)
    except ActRefused as error:
        return _refuse(error)
    presses = Presses()
    presses.listen()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labsite.settings")
    try:
        with Programs(Paths(env.state_dir())) as beside:
            return follow(command, beside, presses)
    except ActRefused as error:
        return _refuse(error)
    except (preflight.Problem, env.WrongSetting) as error:
        say(str(error))
    except Exception as error:  # Python's own code for it would be one of the command's
        say(f"labsite could not go on: {error!r}. {command.lost}".rstrip())
    return command.failed


def follow(command: Command, beside: Programs, presses: Presses) -> int:
    """Begin what was typed and follow it to its end; the exit code. Raises ActRefused."""
    beside.prepare()
    # Here, not above: arguments are checked before anything is read or made.
    loading.set_up()
    followed = _begun(command, beside, presses)
    if isinstance(followed, int):
        return followed
    return _to_the_end(command, followed, beside, presses)


def _begun(command: Command, beside: Programs, presses: Presses) -> Followed | int:
    """What is followed; the exit code where nothing is."""
    followed = None
    while followed is None:
        if presses.is_hung_up or presses.take():
            return CODE_HUNG_UP if presses.is_hung_up else CODE_INTERRUPTED
        followed = command.begin()
        if followed is None:
            beside.tend()
            time.sleep(ROUND_SECONDS)
    return followed


def _to_the_end(command: Command, followed: Followed, beside: Programs, presses: Presses) -> int:
    from django.db import DatabaseError

    from runs.core import database

    while not presses.is_hung_up:
        beside.tend()
        try:
            code = _round(followed, presses.take())
        except DatabaseError:
            database.renew_connection()
            code = None
        if code is not None:
            return code
        time.sleep(ROUND_SECONDS)
    if command.left:
        say(command.left)
    return CODE_HUNG_UP


def _round(followed: Followed, pressed: int) -> int | None:
    code = followed.press(pressed) if pressed else None
    return followed.news() if code is None else code


def _refuse(error: ActRefused) -> int:
    say(error.text)
    return CODE_ARGUMENTS


class Programs:
    """The product's programs, started while nobody else runs a worker.

    A context that ends what it started; agent sessions are tmux's and go on.
    """

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
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
        try:
            loading.prepare()
        except SystemExit as error:
            if isinstance(error.code, str):
                say(error.code)
            raise preflight.Problem(
                "The state folder could not be prepared; the reason is above."
            ) from error

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
        say("No worker runs on this state folder, so one is started until this ends.")
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
