"""What an agent of a loop prints: kept up to a size, and shown to who watches the session.

Neither holds the agent up: a full disk costs output, and a screen that takes no more is skipped.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import re
import secrets
import select
import stat
import time
from collections.abc import Iterator
from typing import Any

from labctl import safe_files, show

HEAD, TAIL = 8_000_000, 56_000_000
OLD_HEAD, OLD_TAIL = 64_000, 192_000  # of the output of turns that were over long ago
BACKLOG = 64_000
SHOWN_EACH_SECOND = 1_000_000
PIECE = 4096  # a pipe that is ready takes as much without blocking
MOST_LINE = 1_000_000
MOST_TEXT = 2000
FLUSH_SECONDS = 1.0
SKIPPED = "\n… some output is not shown here\n"

_PART = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")


class Kept:
    """The output in a file: its beginning, and once that is full its last part, written in a ring."""

    def __init__(self, handle: int, head: int = HEAD, tail: int = TAIL) -> None:
        self._handle, self._head, self._most = handle, head, head + tail
        self._at = 0
        self._is_lost = False
        self.total = 0

    @property
    def is_cut(self) -> bool:
        """Whether the file has less than what was printed."""
        return self._is_lost or self.total > self._most

    def keep(self, piece: bytes) -> None:
        """Write what was printed; of what does not go onto the disk nothing is kept."""
        self.total += len(piece)
        view = memoryview(piece)
        try:
            while view and not self._is_lost:
                if self._at == self._most:
                    self._at = self._head
                done = os.pwrite(self._handle, view[: self._most - self._at], self._at)
                self._at += done
                view = view[done:]
        except OSError:
            self._is_lost = True

    def close(self, path: str) -> None:
        """End the file at `path`; a ring becomes the beginning, a line on what is left out, the end."""
        if self.total > self._most and not self._is_lost:
            try:
                self._unroll(path)
            except OSError:
                self._is_lost = True
        os.close(self._handle)

    def _unroll(self, path: str) -> None:
        left_out = self.total - self._most
        # A new name, since an agent may have put a pipe in the way of one that it can guess.
        part = f"{path}.{secrets.token_hex(4)}.part"
        whole = os.open(part, _PART, 0o600)
        try:
            _copy(whole, self._handle, 0, self._head)
            os.write(whole, _gap(left_out))
            _copy(whole, self._handle, self._at, self._most)
            _copy(whole, self._handle, self._head, self._at)
            os.rename(part, path)  # noqa: PTH104
        except OSError:
            os.unlink(part)  # noqa: PTH108
            raise
        finally:
            os.close(whole)


def shorten(at: int, name: str) -> None:
    """Leave the beginning and the end of an output in the folder `at`. Raises OSError."""
    whole = safe_files.existing(at, name)
    try:
        facts = os.fstat(whole)
        left_out = facts.st_size - OLD_HEAD - OLD_TAIL
        gap = _gap(left_out)
        if not stat.S_ISREG(facts.st_mode) or left_out <= len(gap):
            return
        temporary, part = safe_files.fresh(at, name)
        try:
            _copy(part, whole, 0, OLD_HEAD)
            os.write(part, gap)
            _copy(part, whole, facts.st_size - OLD_TAIL, facts.st_size)
            os.rename(temporary, name, src_dir_fd=at, dst_dir_fd=at)
        finally:
            os.close(part)
            safe_files.remove(at, temporary)
    finally:
        os.close(whole)


def _gap(left_out: int) -> bytes:
    return f"\n[{left_out:,} bytes of the output are left out here]\n".encode()


def _copy(target: int, source: int, start: int, end: int) -> None:
    while start < end:
        done = os.sendfile(target, source, start, end - start)
        if not done:
            break
        start += done


class Screen:
    """Standard output of the runner. What is not taken at once waits; more than that is skipped."""

    def __init__(self, handle: int = 1) -> None:
        self._handle: int | None = handle
        self._is_ours = False
        if os.isatty(handle):
            # Opened anew: only our own writing must never wait, as for a terminal that was stopped.
            flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            with contextlib.suppress(OSError):
                self._handle, self._is_ours = os.open(os.ttyname(handle), flags), True
        self._waiting = bytearray()
        self._is_line_open = False

    @property
    def handle(self) -> int | None:
        """What to wait for, while something waits to be shown."""
        return self._handle if self._waiting else None

    def say(self, sentence: str) -> None:
        """A sentence of the runner, on a line of its own."""
        self.show(("\n" if self._is_line_open else "") + show.line(sentence) + "\n")

    def show(self, text: str) -> None:
        """Some text as it is."""
        if not text or self._handle is None:
            return
        if len(self._waiting) > BACKLOG:
            self._waiting[:] = SKIPPED.encode()
        self._waiting += text.encode("utf-8", "replace")
        self._is_line_open = not text.endswith("\n")
        self.flush()

    def flush(self, seconds: float = 0.0) -> None:
        """Give the screen what it takes within this time."""
        until = time.monotonic() + seconds
        try:
            while self._waiting and self._handle is not None:
                left = max(0.0, until - time.monotonic())
                if not select.select([], [self._handle], [], left)[1]:
                    return
                del self._waiting[: os.write(self._handle, self._waiting[:PIECE])]
        except BlockingIOError:
            return
        except (OSError, ValueError):
            self._handle = None
            self._waiting.clear()


class Shown:
    """Shows one turn's output: as it comes, or of lines of JSON what the agent says and calls."""

    def __init__(self, screen: Screen, *, is_json: bool, clock: Any = time.monotonic) -> None:
        self._screen, self._is_json, self._clock = screen, is_json, clock
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._left, self._since = float(SHOWN_EACH_SECOND), clock()
        self._skips = False
        self._rest = ""

    def feed(self, piece: bytes) -> None:
        """Show a piece; more than a person can follow is skipped, which costs next to nothing."""
        now = self._clock()
        self._left += (now - self._since) * SHOWN_EACH_SECOND
        self._left, self._since = min(self._left, SHOWN_EACH_SECOND), now
        if self._left < len(piece):
            if not self._skips:
                self._screen.show(SKIPPED)
            self._skips, self._rest = True, ""
            self._decoder.reset()
            return
        self._left -= len(piece)
        text = self._decoder.decode(piece)
        if not self._is_json:
            self._skips = False
            self._screen.show(_plain(text))
            return
        self._feed_lines(text)

    def end(self) -> None:
        """Nothing more comes."""
        if self._rest:
            self._feed_lines("\n")

    def _feed_lines(self, text: str) -> None:
        *lines, rest = (self._rest + text).split("\n")
        if self._skips and lines:
            lines, self._skips = (
                lines[1:],
                False,
            )  # the first one is the end of one that was skipped
        self._rest = rest if len(rest) <= MOST_LINE else ""
        for line in lines:
            shown = "\n".join(of_line(line))
            if shown:
                self._screen.show(shown + "\n")


def of_line(line: str) -> list[str]:
    """What a person reads of one line: words and calls of the agent; of no JSON the line itself."""
    if not line.strip():
        return []
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return [_plain(line)[:MOST_TEXT]]
    return list(_of_entry(entry)) if isinstance(entry, dict) else []


def _of_entry(entry: dict[str, Any]) -> Iterator[str]:
    item, message = entry.get("item"), entry.get("message")
    if entry.get("type") == "item.completed" and isinstance(item, dict):
        if item.get("type") == "agent_message":
            yield from _words(item.get("text"))
        elif isinstance(item.get("command"), str):
            yield f"$ {show.line(item['command'])[:200]}"
    if entry.get("type") == "assistant" and isinstance(message, dict):
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict):
                yield from _words(part.get("text"))
                if part.get("type") == "tool_use":
                    yield f"[{show.line(part.get('name'))[:60]}]"


def _words(text: object) -> Iterator[str]:
    if isinstance(text, str) and text.strip():
        yield _plain(text.strip())[:MOST_TEXT]


def _plain(text: str) -> str:
    """Nothing that a terminal could act on."""
    return show.plain(_SEQUENCE.sub("", text).replace("\r\n", "\n").replace("\r", "\n"))
