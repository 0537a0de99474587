"""The folder of a loop below the folder of its run: what each turn was given, printed and ended with.

Agents write there as well, so nothing is followed that may be a link, and what is gone is made
again. `result.json` of a turn is on disk before anybody is told of it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from labctl import safe_files, turn_output
from labctl.safe_files import Unfit
from labctl.turn_orders import Turn

FOLDER = "loop"
SCRATCHPAD, WAKE, STATE, RUNNING = "scratchpad.md", "wake", "state.json", "running.json"
ORDER, PROMPT, OUTPUT, EVENTS, RESULT = (
    *("order.json", "prompt.md", "output"),
    *("events.jsonl", "result.json"),
)
ASKS = ("stop", "restart")  # files that anybody may touch; the first one counts
MOST_BYTES = 1_000_000
MOST_TIME, MOST_TROUBLE = 1e9, 2000  # of a result that labsite takes
KEPT_WHOLE = 10  # turns whose output is kept as it is; of older ones its beginning and its end
_TURN = re.compile(r"[1-9][0-9]{0,9}-[1-9][0-9]{0,9}", re.ASCII)
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Result:
    """How a turn ended. `trouble` says why it has no exit of its own, or why it was ended."""

    exit_code: int | None = None
    signal: int | None = None
    trouble: str = ""
    started_at: float = 0.0
    seconds: float = 0.0
    output_bytes: int = 0
    is_cut: bool = False
    is_interrupted: bool = False


@dataclass(frozen=True, slots=True)
class State:
    """What outlives the runner: its generation, what was asked for and not told yet, whether a turn
    was ordered, the folders of the turns that were begun last, whose output is whole, and how often
    notes were begun anew."""

    generation: int = 1
    asks: str = ""
    has_begun: bool = False
    turns: tuple[str, ...] = ()
    notes_number: int = 0


class LoopFolder:
    """Everything the runner reads and writes. Its methods raise OSError."""

    def __init__(self, run_folder: str) -> None:
        self._base = os.path.realpath(run_folder)
        self.path = os.path.join(self._base, FOLDER)  # noqa: PTH118
        with self._opened() as at:
            is_new = not _is_there(at, STATE)
            self.state = self._stored(at)
            if is_new:
                safe_files.put(at, SCRATCHPAD, b"")
                self._store(at, self.state)

    def hold(self) -> int:
        """Keep every other runner out until this process ends. Raises BlockingIOError where one is in.

        It is the run's folder that is locked: what lies in it an agent could put another one for.
        """
        handle = os.open(self._base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise
        except OSError:  # of a disk that knows no locks
            pass
        return handle

    def enter(self, generation: int, notes: str = "", notes_number: int = 0) -> None:
        """Begin a generation: its notes are new, and what was asked for is dealt with.

        In one that has begun only `notes_number` counts: where it has grown, `notes` take the place
        of what was written so far. `notes` are also for the first turn of all.
        """
        before = self.state
        if before.has_begun and generation == before.generation:
            if notes_number > before.notes_number:
                with self._opened() as at:
                    _put(at, SCRATCHPAD, notes.encode("utf-8", "replace"))
                    self._store(at, replace(before, notes_number=notes_number))
            return
        first = "" if before.has_begun else notes
        number = max(notes_number, before.notes_number)
        with self._opened() as at:
            _put(at, SCRATCHPAD, first.encode("utf-8", "replace"))
            self._store(at, State(generation, "", True, before.turns, number))

    def take_asks(self) -> str:
        """What a person asked for by a file, which is taken away; it is kept until `told`."""
        with self._opened() as at:
            found = [name for name in ASKS if _is_there(at, name)]
            if found:
                asks = min((*found, self.state.asks or found[0]), key=ASKS.index)
                self._store(at, replace(self.state, asks=asks))
                for name in found:
                    safe_files.remove(at, name)
        return self.state.asks

    def told(self) -> None:
        """labsite knows what was asked for."""
        if self.state.asks:
            with self._opened() as at:
                self._store(at, replace(self.state, asks=""))

    def is_asked(self) -> bool:
        """Whether there is a file by which somebody asks for something."""
        return any(os.path.lexists(os.path.join(self.path, name)) for name in ASKS)  # noqa: PTH118

    def woken_at(self) -> int:
        """When `wake` was touched last; 0 if never."""
        try:
            return os.lstat(os.path.join(self.path, WAKE)).st_mtime_ns  # noqa: PTH118
        except OSError:
            return 0

    def newest(self) -> tuple[int, Mapping[str, Any] | None]:
        """The last turn of this generation with a result; number 0 if there is none."""
        for name in reversed(self.state.turns):
            generation, _, number = name.partition("-")
            if int(generation) == self.state.generation:
                result = self.result(self.state.generation, int(number))
                if result is not None:
                    return int(number), result
        return 0, None

    def running(self) -> Mapping[str, Any]:
        """The agent process that was noted last; empty if there is none."""
        try:
            with self._opened() as at:
                return safe_files.from_json(safe_files.read(at, RUNNING, MOST_BYTES), RUNNING)
        except (OSError, Unfit):
            return {}

    def note_running(self, order: Turn, pid: int, started: str, at_time: float) -> None:
        """Remember an agent process, so that another runner can end it."""
        said = {
            "generation": order.generation,
            "number": order.number,
            "pid": pid,
            "started": started,
            "started_at": at_time,
        }
        with self._opened() as at:
            _put(at, RUNNING, safe_files.to_json(said), sync=False)

    def begin(self, order: Turn) -> str:
        """Make the folder of a turn with its order and prompt. Returns its path."""
        name = f"{order.generation}-{order.number}"
        shown = {n: v for n, v in asdict(order).items() if n not in ("env", "prompt", "notes")}
        with self._opened() as at:
            safe_files.remove(at, name)  # of a runner that was killed before it began the turn
            self._note_begun(at, name)
        with self._opened(name) as at:
            _write(at, ORDER, safe_files.to_json(shown))
            _write(at, PROMPT, order.prompt.encode("utf-8", "replace"))
            _write(at, EVENTS, b"")
        return os.path.join(self.path, name)  # noqa: PTH118

    def open_output(self, order: Turn) -> int:
        """A new file for what the agent prints."""
        with self._opened(f"{order.generation}-{order.number}") as at:
            return os.open(OUTPUT, _NEW, 0o600, dir_fd=at)

    def open_prompt(self, order: Turn) -> int:
        """The prompt, to be read by the agent."""
        with self._opened(f"{order.generation}-{order.number}") as at:
            return safe_files.existing(at, PROMPT)

    def result(self, generation: int, number: int) -> Mapping[str, Any] | None:
        """The stored result of a turn; None when there is none that can be read.

        Agents write here too, so nothing is a result before its turn was begun.
        """
        if f"{generation}-{number}" not in self.state.turns:
            return None
        try:
            with safe_files.below(self._base, (FOLDER, f"{generation}-{number}")) as at:
                said = safe_files.from_json(safe_files.read(at, RESULT, MOST_BYTES), RESULT)
        except (OSError, Unfit):
            return None
        return said if _is_result(said) else None

    def record(self, generation: int, number: int, result: Result) -> Mapping[str, Any]:
        """Store how a turn ended, for good."""
        said, name = asdict(result), f"{generation}-{number}"
        with self._opened() as at:
            self._note_begun(at, name)
        with self._opened(name) as at:
            _put(at, RESULT, safe_files.to_json(said))
        with self._opened() as at:
            safe_files.remove(at, RUNNING)
        return said

    def shorten_old(self) -> None:
        """Cut the output of turns that are no longer among the newest, which labsite has read.

        What cannot be cut is left as it is: a loop does not wait for it. That it was done is stored
        with the next turn; to do it twice does nothing.
        """
        for name in self.state.turns[:-KEPT_WHOLE]:
            path = FOLDER, name
            with contextlib.suppress(OSError), safe_files.below(self._base, path) as at:
                turn_output.shorten(at, OUTPUT)
        self.state = replace(self.state, turns=self.state.turns[-KEPT_WHOLE:])

    def output_of(self, generation: int, number: int) -> tuple[int, float]:
        """How much of a turn's output is there, and when it last changed; zeros if there is none."""
        path = os.path.join(self.path, f"{generation}-{number}", OUTPUT)  # noqa: PTH118
        try:
            facts = os.lstat(path)
        except OSError:
            return 0, 0.0
        return facts.st_size, facts.st_mtime

    def _note_begun(self, at: int, name: str) -> None:
        """Keep the name of a turn that begins, without a sync: the one of its result covers it."""
        turns = tuple(one for one in self.state.turns if one != name)
        self._store(at, replace(self.state, turns=(*turns, name)), sync=False)

    def _stored(self, at: int) -> State:
        """What was stored; the beginning if that cannot be read."""
        try:
            said = safe_files.from_json(safe_files.read(at, STATE, MOST_BYTES), STATE)
        except (OSError, Unfit):
            return State()
        generation, asks = said.get("generation"), said.get("asks")
        if not isinstance(generation, int) or generation < 1:
            generation = 1
        has_begun, turns = said.get("has_begun") is True, said.get("turns")
        names = turns if isinstance(turns, list) else ()
        known = tuple(one for one in names if isinstance(one, str) and _TURN.fullmatch(one))
        number = said.get("notes_number")
        number = number if type(number) is int and number > 0 else 0
        return State(generation, asks if asks in ASKS else "", has_begun, known, number)

    def _store(self, at: int, state: State, *, sync: bool = True) -> None:
        if state != self.state or not _is_there(at, STATE):
            _put(at, STATE, safe_files.to_json(asdict(state)), sync=sync)
        self.state = state

    @contextlib.contextmanager
    def _opened(self, *below: str) -> Iterator[int]:
        """A folder below that of the run, made where an agent took it away or put something else."""
        path = (FOLDER, *below)
        with contextlib.ExitStack() as stack:
            try:
                at = stack.enter_context(safe_files.below(self._base, path, make=True))
            except OSError as error:
                if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                    raise
                self._clear(path)
                at = stack.enter_context(safe_files.below(self._base, path, make=True))
            yield at

    def _clear(self, path: tuple[str, ...]) -> None:
        """Remove the first thing on the path that is no folder."""
        for length, name in enumerate(path):
            with safe_files.below(self._base, path[:length]) as at:
                if not stat.S_ISDIR(_mode(at, name)):
                    safe_files.remove(at, name)
                    return


def _is_result(said: Mapping[str, Any]) -> bool:
    """Whether labsite takes it for one: what it refuses would be reported for ever."""
    code, number, seconds = said.get("exit_code"), said.get("signal"), said.get("seconds", 0.0)
    trouble = said.get("trouble", "")
    return (
        (code is None or (type(code) is int and -1 <= code <= 255))
        and (number is None or (type(number) is int and 1 <= number <= 64))
        and (type(seconds) in (int, float) and 0 <= seconds <= MOST_TIME)
        and (isinstance(trouble, str) and len(trouble) <= MOST_TROUBLE)
        and type(said.get("is_interrupted", False)) is bool
    )


def _is_there(at: int, name: str) -> bool:
    return _mode(at, name) != 0


def _mode(at: int, name: str) -> int:
    """What kind of thing this is; 0 when it is not there."""
    try:
        return os.lstat(name, dir_fd=at).st_mode
    except FileNotFoundError:
        return 0


def _put(at: int, name: str, data: bytes, *, sync: bool = True) -> None:
    """Write a file in place of whatever has its name, atomically unless that is a folder."""
    if stat.S_ISDIR(_mode(at, name)):
        safe_files.remove(at, name)
    safe_files.put(at, name, data, replace=True, sync=sync)


def _write(at: int, name: str, data: bytes) -> None:
    """A file of a new folder; without a sync, since only results have to outlive the machine."""
    file = os.open(name, _NEW, 0o600, dir_fd=at)
    try:
        while data:
            data = data[os.write(file, data) :]
    finally:
        os.close(file)
