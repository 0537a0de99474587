"""Keeps what a one-shot agent prints, and shows it in its pane as a person reads it.

Used by the launcher inside a session: standard library only, one thread, and nothing in here may
ever hold up or end the agent, whether the pane is stuck, the disk full, or the record too long.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
from collections.abc import Callable

from runs.core import lenient_json, masking
from runs.core.masking import Mask
from runs.transcript import rendering

NAME = "output.jsonl"
FULL = 20_000_000
SPARE = 2_000_000  # for the few lines that tell how it ends, once the record is full
PIECE = 65_536
BACKLOG = 65_536
DRAIN = 2.0
_TELLING = frozenset({"result", "error", "turn.started", "turn.completed", "turn.failed"})


class Record:
    """The file with the raw lines; once it is full, only what tells the end is still kept."""

    def __init__(self, handle: int | None, full: int = FULL, spare: int = SPARE) -> None:
        self._handle = handle
        self._full = full
        self._most = full + spare
        self._size = 0
        self._is_torn = False
        self._is_cut = False

    def keep(self, line: bytes, kind: object) -> None:
        """Write one line; a disk that is full costs lines and nothing else."""
        if self._size + len(line) >= self._full:
            if not self._is_cut:
                self._is_cut = True
                self._write(json.dumps({"type": rendering.CUT}).encode() + b"\n")
            if kind not in _TELLING or self._size + len(line) >= self._most:
                return
        self._write(line)

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _write(self, line: bytes) -> None:
        if self._handle is None:
            return
        line = b"\n" + line if self._is_torn else line
        done = 0
        try:
            while done < len(line):
                done += os.write(self._handle, line[done:])
            self._is_torn = False
        except OSError:
            # Half a line may be in the file; the next one begins on a line of its own.
            self._is_torn = True
        self._size += done


class Pane:
    """The terminal of the session. When it does not take more, older text is left out there."""

    def __init__(self, handle: int | None) -> None:
        self._handle = handle
        self._waiting = bytearray()

    @property
    def handle(self) -> int | None:
        """What to wait for, while something waits to be shown."""
        return self._handle if self._waiting else None

    def show(self, text: str) -> None:
        if len(self._waiting) > BACKLOG:
            self._waiting[:] = "\x1b[0m\n… some output is not shown here\n".encode()
        self._waiting += text.encode("utf-8", "replace")
        self.flush()

    def flush(self) -> None:
        """Give the terminal what it takes without waiting."""
        if self._handle is None:
            self._waiting.clear()
            return
        try:
            while self._waiting:
                del self._waiting[: os.write(self._handle, self._waiting[:PIECE])]
        except BlockingIOError:
            return
        except OSError:
            self.close()

    def close(self) -> None:
        self._waiting.clear()
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


class Lines:
    """Cuts what comes from one pipe into lines; one that is too long is left out."""

    def __init__(self, hear: Callable[[bytes], None]) -> None:
        self._hear = hear
        self._rest = bytearray()
        self._skips = False

    def feed(self, piece: bytes) -> None:
        *lines, rest = piece.split(b"\n")
        for line in lines:
            self._rest += line
            self._give()
        self._rest += rest
        if len(self._rest) > lenient_json.LINE_LIMIT:
            self._skips = True
            self._rest.clear()

    def end(self) -> None:
        """Nothing more comes: what is left counts as a line."""
        if self._rest:
            self._give()

    def _give(self) -> None:
        line = bytes(self._rest)
        self._rest.clear()
        if not self._skips and line.strip() and len(line) <= lenient_json.LINE_LIMIT:
            self._hear(line)
        self._skips = False


class Recorder:
    """Both pipes of an agent, its record and its pane. No secret of the mask gets any further."""

    def __init__(
        self, record: Record, pane: Pane, out: int, err: int, mask: Mask = masking.NOTHING
    ) -> None:
        self._record = record
        self._mask = mask
        self._pane = pane
        self._open = {out: Lines(self._hear_out), err: Lines(self._hear_err)}
        for pipe in self._open:
            os.set_blocking(pipe, False)
        self._ear, self._mouth = os.pipe()
        os.set_blocking(self._ear, False)
        os.set_blocking(self._mouth, False)
        signal.set_wakeup_fd(self._mouth, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)

    def follow(self, buried: Callable[[], int | None]) -> int:
        """Read until the agent has ended; how it ended, as `buried` says.

        Whoever else holds its pipes then is not waited for.
        """
        while True:
            status = buried()
            if status is not None:
                self.drain()
                return status
            self._wait(None)

    def drain(self) -> None:
        """Take what is in the pipes by now, and what comes meanwhile for at most a moment."""
        end = time.monotonic() + DRAIN
        is_late = False
        while not is_late and self._wait(0.0):
            is_late = time.monotonic() >= end

    def close(self) -> None:
        """Nothing more is read; what was read is shown and kept.

        No handle stays open, so that what the launcher forks afterwards holds no terminal.
        """
        self.drain()
        for pipe in list(self._open):
            self._shut(pipe)
        end = time.monotonic() + DRAIN
        while self._pane.handle is not None and time.monotonic() < end:
            self._wait(0.05)
        self._pane.close()
        self._record.close()
        signal.set_wakeup_fd(-1)
        for handle in (self._ear, self._mouth):
            os.close(handle)

    def _wait(self, timeout: float | None) -> bool:
        """Deal with what is ready; whether there was anything to read."""
        pane = [handle for handle in (self._pane.handle,) if handle is not None]
        ready, can_show, _ = select.select([*self._open, self._ear], pane, [], timeout)
        if can_show:
            self._pane.flush()
        for handle in ready:
            if handle == self._ear:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._ear, PIECE)
            else:
                self._read(handle)
        return any(handle != self._ear for handle in ready)

    def _read(self, pipe: int) -> None:
        try:
            piece = os.read(pipe, PIECE)
        except BlockingIOError:
            return
        if piece:
            self._open[pipe].feed(piece)
        else:
            self._shut(pipe)

    def _shut(self, pipe: int) -> None:
        self._open.pop(pipe).end()
        os.close(pipe)

    def _hear_out(self, line: bytes) -> None:
        line = self._mask.line(line)
        entry = lenient_json.entry(line)
        kind = entry.get("type") if entry is not None else None
        if kind == "system" and entry is not None and entry.get("subtype") == "api_retry":
            kind = "error"
        self._record.keep(line + b"\n", kind if isinstance(kind, str) else "")
        self._pane.show(rendering.render(entry) if entry is not None else rendering.plain(line))

    def _hear_err(self, line: bytes) -> None:
        line = self._mask.line(line)
        text = lenient_json.text(line[:PIECE].decode("utf-8", "replace"))[: lenient_json.TEXT_LIMIT]
        entry = {"type": rendering.STDERR, "text": text}
        self._record.keep(json.dumps(entry).encode() + b"\n", rendering.STDERR)
        self._pane.show(rendering.render(entry))


def open_record(folder: str) -> Record:
    """A new record in the run's folder, for this user alone; without one the agent works all the same."""
    path = os.path.join(folder, NAME)  # noqa: PTH118
    handle = None
    with contextlib.suppress(OSError):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        handle = os.open(path, flags, 0o600)
    return Record(handle)


def read_mask(folder: str) -> Mask:
    """What must not be in record and pane. The file goes away before the agent could read it."""
    path = os.path.join(folder, masking.FILE)  # noqa: PTH118
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            found = masking.mask(json.load(file))
    except FileNotFoundError:
        return masking.NOTHING
    os.unlink(path)  # noqa: PTH108
    return found


def open_pane() -> Pane:
    """The terminal, opened anew: only our own writing to it must never wait."""
    with contextlib.suppress(OSError):
        return Pane(os.open("/dev/tty", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC))
    return Pane(None)
