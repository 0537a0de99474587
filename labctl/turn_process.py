"""Runs one agent process of a loop: starts it, reads what it prints, and ends its whole tree.

The runner adopts orphans, so whatever leaves the agent's tree is found and ended with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import select
import signal
import subprocess  # noqa: TID251
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from labctl import show
from labctl.turn_files import EVENTS, OUTPUT, SCRATCHPAD, LoopFolder, Result
from labctl.turn_orders import Turn
from labctl.turn_output import Kept, Screen, Shown

PR_SET_CHILD_SUBREAPER = 36
PIECE = 1_048_576
STEP = 0.05
KILL_SECONDS = 2.0
LEFT_OVER_GRACE = 0.5  # for what an agent that has ended left behind
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Interrupted(Exception):
    """The runner was told to end by a signal."""


class Ears:
    """Hears signals: they end every wait, and an HTTP request while `breakable`."""

    def __init__(self) -> None:
        self._ear, mouth = os.pipe()
        for end in (self._ear, mouth):
            os.set_blocking(end, False)
        self.asked: list[int] = []
        self._can_break = False
        # Ctrl-Z too: a loop that is stopped looks like one that works. Neither is ignored, since the
        # agent would inherit that.
        for number in (signal.SIGCHLD, signal.SIGTSTP):
            signal.signal(number, lambda _number, _frame: None)
        for number in ENDS:
            signal.signal(number, self._hear)
        signal.set_wakeup_fd(mouth, warn_on_full_buffer=False)
        # The runner blocks them before it replaces itself, so that none is lost meanwhile.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDS)

    def _hear(self, number: int, _frame: object) -> None:
        self.asked.append(number)
        if self._can_break:
            self._can_break = False
            raise Interrupted

    @contextlib.contextmanager
    def breakable(self) -> Iterator[None]:
        """Within it a signal raises Interrupted at once; so does one that came before."""
        self._can_break = True
        try:
            if self.asked:
                raise Interrupted
            yield
        finally:
            self._can_break = False

    @contextlib.contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Within it Interrupted is raised when the time is over; signals change nothing."""
        signal.signal(signal.SIGALRM, _give_up)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)

    def wait(self, seconds: float | None, reads: Iterable[int] = (), writes: Iterable[int] = ()) -> set[int]:  # fmt: skip
        """Wait until a signal came or something is ready; what can be read or written."""
        can_read, can_write, _ = select.select([self._ear, *reads], [*writes], [], seconds)
        if self._ear in can_read:
            with contextlib.suppress(BlockingIOError):
                os.read(self._ear, PIECE)
        return {*can_read, *can_write} - {self._ear}


def _give_up(_number: int, _frame: object) -> None:
    raise Interrupted


@dataclass(frozen=True, slots=True)
class Spawned:
    """An agent process, and the end of the pipe that it prints to."""

    process: subprocess.Popen[bytes]
    out: int


def adopt_orphans() -> None:
    """Whatever leaves an agent's tree becomes our child, and so can be found and ended."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def spawn(order: Turn, env: Mapping[bytes, bytes], stdin: int) -> Spawned:
    """Start the agent in a session of its own, without a terminal. Raises OSError, ValueError."""
    out, its_end = os.pipe()
    try:
        with contextlib.suppress(OSError):
            fcntl.fcntl(out, fcntl.F_SETPIPE_SZ, PIECE)
        process = subprocess.Popen(  # noqa: S603
            [word.encode("utf-8", "surrogateescape") for word in order.argv],
            env=env,
            cwd=env.get(b"LAB_WORKTREE") or None,
            stdin=stdin,
            stdout=its_end,
            stderr=its_end,
            start_new_session=True,
        )
    except BaseException:
        os.close(out)
        raise
    finally:
        os.close(its_end)
    os.set_blocking(out, False)
    return Spawned(process, out)


def why_not(error: OSError | ValueError, order: Turn) -> str:
    """Why an agent could not be started, as a sentence."""
    reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
    name = error.filename if isinstance(error, OSError) and error.filename else order.argv[0]
    shown = os.fsdecode(name) if isinstance(name, (str, bytes)) else order.argv[0]
    return f"{show.line(shown)[:200]} could not be started: {reason}"


class AgentProcess:
    """One turn's process, from its start to the end of all that it left behind."""

    def __init__(self, spawned: Spawned, kept: Kept, shown: Shown, screen: Screen, ears: Ears) -> None:  # fmt: skip
        self._process, self._out = spawned.process, spawned.out
        self._is_open = True
        self._kept, self._shown, self._screen, self._ears = kept, shown, screen, ears
        self.status: int | None = None
        self.seconds = 0.0
        self._began = time.monotonic()

    def follow(self, limit: float | None) -> bool:
        """Read until it has ended, a signal came or its time is over; whether the time was over."""
        while self._bury() and self.status is None:
            if self._ears.asked:
                return False
            left = None if limit is None else self._began + limit - time.monotonic()
            if left is not None and left <= 0:
                return True
            self._step(left)
        return False

    def end(self, grace: float) -> None:
        """End what lives of the tree: TERM, `grace` seconds, then KILL; then read what is left."""
        if self._bury():
            grace = grace if self.status is None else min(grace, LEFT_OVER_GRACE)
            self._end_all(signal.SIGTERM, grace)
            self._end_all(signal.SIGKILL, KILL_SECONDS)
        until = time.monotonic() + KILL_SECONDS  # whoever else holds the pipe may write for ever
        while self._is_open and self._read() and time.monotonic() < until:
            pass
        if self._is_open:
            os.close(self._out)
        self._shown.end()

    def _end_all(self, number: int, seconds: float) -> None:
        """Send a signal once to each process, to those that come meanwhile too, until none is left."""
        until, look_at = time.monotonic() + seconds, 0.0
        told: set[int] = set()
        while self._bury() and (now := time.monotonic()) < until:
            if now >= look_at:
                new = [pid for pid in descendants(os.getpid()) if pid not in told]
                _signal_all(new, number)
                told.update(new)
                look_at = now + STEP
            self._step(max(0.0, look_at - now))

    def _step(self, seconds: float | None) -> None:
        """Wait once, and deal with what is ready."""
        reads = [self._out] if self._is_open else []
        shows = [self._screen.handle] if self._screen.handle is not None else []
        ready = self._ears.wait(seconds, reads, shows)
        if self._is_open and self._out in ready:
            self._read()
        self._screen.flush()

    def _read(self) -> bool:
        """Take one piece of the output; whether there may be more by now."""
        try:
            piece = os.read(self._out, PIECE)
        except BlockingIOError:
            return False
        if not piece:
            os.close(self._out)
            self._is_open = False
            return False
        self._kept.keep(piece)
        self._shown.feed(piece)
        return True

    def _bury(self) -> bool:
        """Bury what has ended; whether any child is left, orphans included."""
        while True:
            try:
                pid, raw = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._process.pid:
                self.status = self._process.returncode = os.waitstatus_to_exitcode(raw)
                self.seconds = time.monotonic() - self._began


def descendants(*roots: int) -> list[int]:
    """All processes below these, without them; parents come first.

    So a program learns that it has to end before it sees its own commands die of it.
    """
    children: dict[int, list[int]] = {}
    for pid in _processes():
        fields = _stat(pid)
        if fields:
            children.setdefault(int(fields[1]), []).append(pid)
    found: dict[int, None] = {}
    waiting = list(roots)
    while waiting:
        for pid in children.get(waiting.pop(), ()):
            if pid not in found and pid not in roots:
                found[pid] = None
                waiting.append(pid)
    return list(found)


def started(pid: int) -> str:
    """Start time of a living process, in clock ticks since boot; empty when there is none."""
    fields = _stat(pid)
    return "" if not fields or fields[0] in "ZX" else fields[19]


def end_left_over(mark: bytes, pid: int, its_start: str, grace: float) -> None:
    """End the agent of a runner that was killed: the process, and all that carry the mark in their
    environment, with everything below them."""

    def left() -> set[int]:
        found = {one for one in _processes() if one != os.getpid() and _is_marked(one, mark)}
        if pid > 1 and its_start and started(pid) == its_start:
            found.add(pid)
        return {
            one for one in found.union(descendants(*found)) if one != os.getpid() and started(one)
        }

    _end_until_gone(left, grace)


def _end_until_gone(left: Callable[[], set[int]], grace: float) -> None:
    known = left()
    _signal_all(known, signal.SIGTERM)
    until = time.monotonic() + grace
    while known and time.monotonic() < until:
        time.sleep(STEP)
        known = left()
    until = time.monotonic() + KILL_SECONDS
    while known and time.monotonic() < until:
        _signal_all(known, signal.SIGKILL)
        time.sleep(STEP)
        known = left()


def _signal_all(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208


def _stat(pid: int) -> list[str]:
    """The fields of a process after its name; empty when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as file:  # noqa: PTH123
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def _is_marked(pid: int, mark: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
            return mark in file.read().split(b"\0")
    except OSError:
        return False


def run_turn(order: Turn, folder: LoopFolder, ears: Ears, screen: Screen, grace: float) -> Result:
    """Run one turn to its end. Raises OSError, with nothing started, when its folder is not to be had."""
    path = folder.begin(order)
    began = time.time()
    folder.note_running(order, 0, "", began)
    kept = Kept(folder.open_output(order))
    try:
        spawned = _spawned(order, folder, path)
    except (OSError, ValueError) as error:
        kept.close(os.path.join(path, OUTPUT))  # noqa: PTH118
        return Result(trouble=why_not(error, order), started_at=began)
    with contextlib.suppress(OSError):  # it is found by its environment as well
        folder.note_running(order, spawned.process.pid, started(spawned.process.pid), began)
    agent = AgentProcess(spawned, kept, Shown(screen, is_json=bool(order.output)), screen, ears)
    is_over = agent.follow(order.limit_seconds)
    is_interrupted = agent.status is None and not is_over
    agent.end(grace)
    kept.close(os.path.join(path, OUTPUT))  # noqa: PTH118
    trouble = (
        f"it was ended after {order.limit_seconds:g} s, the limit of a turn" if is_over else ""
    )
    if agent.status is None:
        trouble = "it could not be ended"
    return Result(
        exit_code=agent.status if agent.status is not None and agent.status >= 0 else None,
        signal=-agent.status if agent.status is not None and agent.status < 0 else None,
        trouble=trouble,
        started_at=began,
        seconds=round(agent.seconds, 3),
        output_bytes=kept.total,
        is_cut=kept.is_cut,
        is_interrupted=is_interrupted,
    )


def mark_of(path: str) -> bytes:
    """What the environment of all processes of a turn holds, and of no other's."""
    return b"LAB_LOOP_EVENTS=" + os.fsencode(os.path.join(path, EVENTS))  # noqa: PTH118


def _spawned(order: Turn, folder: LoopFolder, path: str) -> Spawned:
    events, scratchpad = mark_of(path).partition(b"=")[2], os.path.join(folder.path, SCRATCHPAD)  # noqa: PTH118
    env = dict(os.environb)
    for name, value in order.env.items():
        # An empty one is to be left out: the program would not ask its log-in otherwise.
        env.pop(name.encode("utf-8", "surrogateescape"), None)
        if value:
            env[name.encode("utf-8", "surrogateescape")] = value.encode("utf-8", "surrogateescape")
    env |= {b"LAB_SCRATCHPAD": os.fsencode(scratchpad), b"LAB_LOOP_EVENTS": events}
    stdin = folder.open_prompt(order) if order.has_stdin else os.open(os.devnull, os.O_RDONLY)
    try:
        return spawn(order, env, stdin)
    finally:
        os.close(stdin)
