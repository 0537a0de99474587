"""`./lab up`: starts web and worker, starts a crashed one again, ends both on Ctrl-C.

They are forks of this process, which has loaded what they share and then only waits. Agent sessions
are tmux's children, not ours: ending this process never ends one.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from labsite import env, preflight, programs
from runs.core.paths import Paths
from runs.core.terminal import say

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_PORT = 8420
FIRST_DELAY = 0.2
LONGEST_DELAY = 30.0
CALM_SECONDS = 60.0
IDLE_SECONDS = 60
LONGEST_IDLE = 3600.0
WORTHWHILE_SECONDS = 600.0  # of rest: a start costs what a web process takes in half an hour
STOP_SECONDS = programs.TASK_GRACE_SECONDS + 5
PREPARE_SECONDS = 600
PROBE_SECONDS = 0.1
HOLD_SECONDS = 1.0
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PR_SET_PDEATHSIG = 1


def next_delay(before: float, lived: float) -> float:
    """The wait before a child that lived this long is started again.

    It doubles from crash to crash up to a limit, and begins anew after a calm time.
    """
    if before <= 0 or lived >= CALM_SECONDS:
        return FIRST_DELAY
    return min(LONGEST_DELAY, before * 2)


def how_it_ended(status: int) -> str:
    """A child's exit status in words; a negative one is a signal."""
    if status >= 0:
        return f"ended with status {status}"
    return f"was ended by {signal.Signals(-status).name}"


def _dies_with_us() -> Callable[[], None]:
    """What a child does before it becomes its program: ask the kernel to end it after us."""
    libc = ctypes.CDLL(None, use_errno=True)
    prctl = getattr(libc, "prctl", None)
    supervisor = os.getpid()

    def ask() -> None:
        if prctl is not None:
            prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != supervisor:
                os._exit(1)

    return ask


class Process(Protocol):
    """A child process, however it was started."""

    pid: int

    def poll(self) -> int | None: ...
    def wait(self) -> int | None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


def next_idle(least: float, before: float, rested: float) -> float:
    """The time without connections after which a program ends, once one has started it again.

    Who asks every few minutes, as a monitor does, would have it start again and again, which costs
    more than it saves: so the time doubles, until it is longer than those minutes. After a rest that
    was worth it the time is again what was set.
    """
    return least if rested >= WORTHWHILE_SECONDS else max(before, min(LONGEST_IDLE, before * 2))


@dataclass
class OnDemand:
    """What a program has that ends while nobody uses it, and is started by the next connection.

    `listening` is its socket, which stays open here meanwhile. `least_seconds` is the time without
    connections that was set, 0 for never, and `idle_seconds` the one after which it ends next; `since`
    is when it did.
    """

    listening: socket.socket
    least_seconds: float
    idle_seconds: float = field(init=False)
    since: float | None = None

    def __post_init__(self) -> None:
        self.idle_seconds = self.least_seconds

    @property
    def argv(self) -> list[str]:
        handle, seconds = str(self.listening.fileno()), f"{self.idle_seconds:g}"
        return ["--fd", handle, "--idle-seconds", seconds]

    def wake(self, now: float) -> None:
        """Somebody has connected."""
        if self.since is not None:
            rested = now - self.since
            self.idle_seconds = next_idle(self.least_seconds, self.idle_seconds, rested)
        self.since = None


@dataclass
class Child:
    """One of the programs, and when it is started again after it ended.

    `fork` goes on as the program in a fork of this process; without it, and where the last two
    ended too soon, the program is started afresh, in case that what was loaded here is the reason.
    """

    name: str
    argv: Sequence[str]
    fork: Callable[[str, Sequence[str], Sequence[int]], Process | None] | None = None
    on_demand: OnDemand | None = None
    process: Process | None = None
    started: float = 0.0
    delay: float = 0.0
    due: float = 0.0
    is_held: bool = False
    obstacle: Callable[[], str] = str

    def hold(self, why: str, now: float) -> None:
        """Not yet: say so once, and look again in a moment."""
        if not self.is_held:
            say(why)
        self.is_held, self.due = True, now + HOLD_SECONDS

    def start(self, environment: Mapping[str, str], now: float) -> None:
        argv = [*self.argv, *(self.on_demand.argv if self.on_demand else ())]
        handles = [self.on_demand.listening.fileno()] if self.on_demand else []
        forked = self.fork and self.delay <= FIRST_DELAY and self.fork(self.name, argv, handles)
        self.process = forked or subprocess.Popen(
            argv,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=handles,
            preexec_fn=_dies_with_us(),
        )
        self.started, self.is_held = now, False

    def bury(self, now: float) -> bool:
        """Notice that the program has ended and plan its next start; True when it had."""
        status = self.process.poll() if self.process else None
        if self.process is None or status is None:
            return False
        self.process = None
        if self.on_demand and status == programs.IDLE_STATUS:
            self.on_demand.since, self.delay = now, 0.0
            return False
        self.delay = next_delay(self.delay, now - self.started)
        self.due = now + self.delay
        say(
            f"The {self.name} process {how_it_ended(status)}; it is started again in {self.delay:g} s."
        )
        return True

    @property
    def is_idle(self) -> bool:
        """Whether it has ended because nobody used it."""
        return self.on_demand is not None and self.on_demand.since is not None

    def ask_to_end(self) -> None:
        if self.process is not None:
            self.process.terminate()

    def end_at_once(self) -> None:
        """Kill the program and what it started itself; tmux left its session long ago."""
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)

    def is_gone(self) -> bool:
        return self.process is None or self.process.poll() is not None


@dataclass
class Supervisor:
    """Waits for signals, the end of a child, and the first answer of the web process."""

    children: Sequence[Child]
    environment: Mapping[str, str]
    probe: Callable[[], bool]
    on_ready: Callable[[], None]
    obstacle: Callable[[], str] = str
    clock: Callable[[], float] = time.monotonic
    is_ready: bool = field(default=False, init=False)

    def run(self) -> int:
        """Until a stop signal; the answer is the exit code."""
        reading, writing = socket.socketpair()
        writing.setblocking(False)
        signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
        for number in (*STOPS, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        while not self._stop_was_asked(reading, self._patience()):
            self.look_after()
            if not self.is_ready and self.probe():
                self.is_ready = True
                self.on_ready()
        return self._end(reading)

    def look_after(self) -> None:
        """Notice what has ended, and start what is due."""
        for child in self.children:
            if child.bury(self.clock()) and child.obstacle():
                self._end_others()
            if child.process is None and not child.is_idle and self.clock() >= child.due:
                self._start(child)

    def _end_others(self) -> None:
        """What holds up one worker holds up those beside it, which only take work off its queue."""
        for child in self.children:
            if child.process is not None and child.obstacle():
                child.ask_to_end()

    def _start(self, child: Child) -> None:
        """A child that found no state folder would make a new, empty one and serve that."""
        if why := self.obstacle() or child.obstacle():
            child.hold(why, self.clock())
        else:
            child.start(self.environment, self.clock())

    def _patience(self) -> float | None:
        """How long nothing can be due; None waits for a signal alone."""
        now = self.clock()
        waits = [
            max(0.0, child.due - now)
            for child in self.children
            if child.process is None and not child.is_idle
        ]
        if not self.is_ready:
            waits.append(PROBE_SECONDS)
        return min(waits) if waits else None

    def _stop_was_asked(self, reading: socket.socket, seconds: float | None) -> bool:
        """Wait for a signal, and for whoever connects to a program that is idle."""
        idle = {
            child.on_demand.listening: child.on_demand
            for child in self.children
            if child.on_demand and child.is_idle
        }
        ready, _, _ = select.select([reading, *idle], [], [], seconds)
        for listening in ready:
            if listening in idle:
                idle[listening].wake(self.clock())
        return reading in ready and any(number in STOPS for number in reading.recv(64))

    def _end(self, reading: socket.socket) -> int:
        say("Stopping. Agent sessions go on. (Ctrl-C again ends at once.)")
        for child in self.children:
            child.ask_to_end()
        limit = self.clock() + STOP_SECONDS
        while not all(child.is_gone() for child in self.children):
            if (
                self._stop_was_asked(reading, max(0.0, limit - self.clock()))
                or self.clock() >= limit
            ):
                for child in self.children:
                    if not child.is_gone():
                        child.end_at_once()
                limit = self.clock() + STOP_SECONDS
        return 0


def prepared(begin: Callable[[int], Process], meanwhile: Callable[[], None]) -> str | None:
    """Have a child make database and static files ready; the path of the set-up link if any.

    None when it could not; it has said why. What it loads for that nobody else has to keep.
    """
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as told:
        try:
            process = begin(writing)
        finally:
            os.close(writing)
        try:
            meanwhile()
            is_told = select.select([told], [], [], PREPARE_SECONDS)[0]
            line = told.readline() if is_told else b""
        except BaseException:
            process.kill()
            process.wait()
            raise
        if not is_told:
            say(f"The state folder was not ready after {PREPARE_SECONDS} seconds.")
            process.kill()
        failed = process.wait()
        return None if failed or not line else line.decode().strip()


def up(host: str, port: int, only: str = "") -> int:
    """Check, prepare, start, wait. Raises Problem or WrongSetting before anything was started."""
    paths = Paths(env.state_dir())
    workers = env.number("LAB_WORKERS", 1, 1, 8)
    preflight.programs()
    preflight.state_folder(paths)
    preflight.parts(paths, only)
    with preflight.only_one(paths, only) as locks, contextlib.ExitStack() as after:
        has_web = only != preflight.WORKER
        on_demand = None
        if has_web:
            listening = after.enter_context(preflight.listen(host, port))
            port = preflight.port_of(listening)
            on_demand = OnDemand(
                listening, env.number("LAB_WEB_IDLE_SECONDS", IDLE_SECONDS, 0, 86400)
            )
        url = preflight.base_url(host, port) if has_web else env.text("LAB_WEB_URL").rstrip("/")
        environment = {
            **os.environ,
            "LAB_STATE_DIR": str(paths.state),
            **({"LAB_PART": only} if only else {}),
            "LAB_HOST": host,
            "LAB_PORT": str(port or DEFAULT_PORT),
        }
        # Before the worker, which begins its work once the folder is ready.
        preflight.write_labctl(paths, sys.executable, ROOT)
        if url:
            preflight.write_address(paths, url)
            after.callback(paths.address.unlink, missing_ok=True)
        from labsite import forking, loading

        forking.load(environment)
        setup_path = prepared(
            forking.preparing, lambda: forking.load_parts([only] if only else preflight.PARTS)
        )
        if setup_path is None:
            return 1

        def announce() -> None:
            _announce(url if has_web else "", setup_path, paths)
            loading.drop_libraries()

        children = [
            Child(
                name,
                argv,
                forking.program,
                on_demand if name == "web" else None,
                obstacle=str if name == "web" else lambda: preflight.removed(paths),
            )
            for name, argv in programs.all_of(workers, only)
        ]
        return Supervisor(
            children,
            environment,
            lambda: not has_web or preflight.answers(host, port),
            announce,
            lambda: preflight.moved(paths, locks),
        ).run()


def _announce(url: str, setup_path: str, paths: Paths) -> None:
    if not url:
        print(f"labsite's worker is ready on {paths.state}.", flush=True)
        return
    lines = [f"labsite is ready: {url}/"]
    if setup_path:
        link = f"{url}{setup_path}"
        lines.append(f"First start: make your account at {link} (the link works once).")
    print("\n".join(lines), flush=True)  # at once: who waits for the first line has both


def main(argv: Sequence[str]) -> int:
    """`./lab up`: 0 after a stop, 1 after one sentence that says what to do."""
    parser = argparse.ArgumentParser(
        prog="./lab up", description="Start labsite in the foreground."
    )
    parser.add_argument("--host", help="address to listen on (LAB_HOST, default 127.0.0.1)")
    parser.add_argument(
        "--port", type=int, help=f"port, 0 for any free one (LAB_PORT, default {DEFAULT_PORT})"
    )
    parser.add_argument(
        "--only", choices=preflight.PARTS, help="one part, where another `./lab up` has the other"
    )
    given = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        port = env.number("LAB_PORT", DEFAULT_PORT, 0, 65535) if given.port is None else given.port
        if not 0 <= port <= 65535:
            raise env.WrongSetting(f"--port is {port}; use a number from 0 to 65535.")
        if given.only == preflight.WORKER and (given.host or given.port is not None):
            raise env.WrongSetting("--host and --port are of the web part; leave them out here.")
        return up(given.host or env.text("LAB_HOST") or "127.0.0.1", port, given.only or "")
    except (preflight.Problem, env.WrongSetting) as problem:
        say(str(problem))
        return 1
    except KeyboardInterrupt:
        return 0
