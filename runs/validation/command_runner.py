"""Runs a project's own commands: a clean environment, bounded time and output, nothing left behind."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from runs.core import masking
from runs.core.ports import Output, SeamError
from runs.machine import files, processes, shell
from runs.validation import process_follower
from runs.validation.command_rules import Check, Checked

FULL = 4_000_000
LAST = 64_000
TAIL_CHARACTERS = 4000
LINE_BYTES = 64_000
_GIVEN_UP = Checked(None, 0.0, is_given_up=True)
_GAP = "\n… what was printed here is not kept …\n"
_SHORT_SECRET = 6
# Every part is bounded: a line may be one endless word.
_URL_SECRET = re.compile(rb"([a-z][a-z0-9+.-]{1,20}://)[^/\s:@]{0,200}:[^\s\"'<>@]{1,500}@")
_OF_OUR_TERMINAL = ("TERM", "COLORTERM", "LS_COLORS", "PWD", "OLDPWD", "SHLVL", "_")
# They would send the command's own git elsewhere; those of an identity stay.
_GIT_KEPT = ("GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_SSH", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM")


class LocalChecks:
    """`Checks` on this machine."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._env = _environment(environ)

    def run(self, check: Check, goes_on: Callable[[], bool]) -> Checked:
        try:
            with _locked(check, goes_on) as (has_lock, kept):
                return self._run(check, goes_on, kept) if has_lock else _GIVEN_UP
        except _Occupied as error:
            return Checked(None, 0.0, trouble=str(error))

    def _run(self, check: Check, goes_on: Callable[[], bool], kept: Sequence[int]) -> Checked:
        began = time.monotonic()
        with self._records(check) as (record, errors, whole):
            try:
                program = shell.start(
                    list(check.argv),
                    check.cwd,
                    self._environment(check),
                    given=check.given,
                    is_apart=errors is not record,
                    kept=kept,
                )
                done = process_follower.follow(
                    program,
                    timeout=check.limit.total_seconds(),
                    hear=record.hear,
                    goes_on=goes_on,
                    hear_errors=errors.hear,
                )
            except (OSError, ValueError) as error:
                why = getattr(error, "strerror", "") or str(error)
                return Checked(None, time.monotonic() - began, trouble=why)
        has_ended = done.was_in_time and done.was_wanted
        return Checked(
            status=done.status if has_ended and done.status >= 0 else None,
            seconds=round(time.monotonic() - began, 2),
            tail=whole.tail,
            signal=-done.status if has_ended and done.status < 0 else None,
            is_over_time=not done.was_in_time,
            is_given_up=not done.was_wanted,
            error_tail="" if errors is record else errors.tail,
        )

    @contextlib.contextmanager
    def _records(self, check: Check) -> Iterator[tuple[_Record, _Record, _Record]]:
        """The files of both outputs and of the two together, which may be one.

        Afterwards nothing of the command is left.
        """
        with contextlib.ExitStack() as stack:
            # What left the process group carries the mark still.
            stack.callback(self.end, check.mark)
            try:
                check.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                whole = None
                if check.whole:
                    whole = _Record(check.folder / check.whole, ())
                    stack.callback(whole.close)
                record = _Record(check.folder / check.name, check.secrets, whole)
                stack.callback(record.close)
                errors = record
                if check.errors:
                    errors = _Record(check.folder / check.errors, check.secrets, whole)
                    stack.callback(errors.close)
            except OSError as error:
                why = f"{check.folder} could not be written: {error.strerror}"
                raise SeamError(why) from error
            yield record, errors, whole or record

    def _environment(self, check: Check) -> dict[str, str]:
        left_out = tuple(check.without)
        kept = {name: value for name, value in self._env.items() if not name.startswith(left_out)}
        ours = {processes.MARKER: check.mark, "PWD": str(check.cwd)}
        return shell.add_variables(kept, {**check.env, **ours})

    def end(self, mark: str) -> None:
        processes.end_marked(mark, processes.family(mark))

    def output(self, folder: Path, name: str, start: int, limit: int) -> Output | None:
        return files.read_piece(folder / name, start, limit)


class _Occupied(Exception):
    """A lock that somebody has held for longer than any command may; says who."""


@contextlib.contextmanager
def _locked(check: Check, goes_on: Callable[[], bool]) -> Iterator[tuple[bool, list[int]]]:
    """Hold a lock file once nobody else does; False when it was not waited for to the end.

    The command inherits the open file: the lock of a worker that was killed holds while what it
    started lives on. Of a command that ended in order nothing holds it, not even what escaped.
    Raises _Occupied, and SeamError when the file cannot be made.
    """
    path = check.lock
    if path is None:
        yield True, []
        return
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise SeamError(f"{path} could not be made: {error.strerror}") from error
    try:
        has_lock = _wait_for(handle, path, check.limit.total_seconds(), goes_on)
        if has_lock:
            _sign(handle, check)
        yield has_lock, [handle]
        if has_lock:
            # For every process that has inherited the file; closing it would free ours alone.
            fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)


def _wait_for(handle: int, path: Path, limit: float, goes_on: Callable[[], bool]) -> bool:
    """Wait for each holder as long as its own command may take, and at least as long as ours may."""
    asks_at, holder, until = 0.0, b"", time.monotonic() + limit
    while True:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        if time.monotonic() >= asks_at:
            if not goes_on():
                return False
            asks_at = time.monotonic() + process_follower.ASK_EVERY
            if (signed := os.pread(handle, 200, 0)) != holder:
                holder, until = signed, time.monotonic() + max(limit, _seconds(signed))
        if time.monotonic() >= until:
            raise _Occupied(_who_holds(path))
        time.sleep(shell.STEP)


def _sign(handle: int, check: Check) -> None:
    """Write down whose lock it is, and for how many seconds at most."""
    with contextlib.suppress(OSError):  # a full disk: others wait as long as they would run
        os.ftruncate(handle, 0)
        text = f"{check.limit.total_seconds():g} {check.mark} {time.monotonic_ns()}\n"
        os.pwrite(handle, text.encode(), 0)


def _seconds(signed: bytes) -> float:
    """How long a holder may hold it; 0 when that is not told."""
    try:
        return float(signed.split()[0])
    except (ValueError, IndexError):
        return 0.0


def _who_holds(path: Path) -> str:
    found = processes.lock_holders(path)
    who = ", ".join(f"process {pid} ({name})" for pid, name in found[:5]) or "an unknown process"
    return (
        f"the project's test mutex has been held for longer than its command may take, by {who}: "
        "end it if it belongs to no test that still runs"
    )


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The operator's environment without the product's own settings and secrets, and nobody to ask."""
    kept = {
        name: value
        for name, value in shell.scrubbed(environ).items()
        if name not in _OF_OUR_TERMINAL
        and (not name.startswith("GIT_") or name.startswith(_GIT_KEPT))
    }
    return {**kept, "TERM": "dumb", "CI": "true", "GIT_TERMINAL_PROMPT": "0"}


def _text(raw: bytes | bytearray) -> str:
    return raw.decode("utf-8", "surrogateescape")


class _Record:
    """The file with what a command prints, line by line, without secrets.

    Its first megabytes and its end are kept: a failure is told at the end as a rule.
    """

    def __init__(self, path: Path, secrets: Sequence[str], whole: _Record | None = None) -> None:
        self._whole = whole
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._handle = os.open(path, flags, 0o600)
        self._mask = masking.mask(secrets)
        self._short = [one for one in secrets if _SHORT_SECRET <= len(one) < masking.SHORTEST]
        self._longest = 3 * max(map(len, self._mask.secrets), default=1)  # as in a URL
        self._rest = bytearray()
        self._last = bytearray()
        self._size = 0
        self._is_beyond = False

    def hear(self, piece: bytes) -> None:
        self._rest += piece
        end = max(self._rest.rfind(b"\n"), self._rest.rfind(b"\r")) + 1
        if not end and len(self._rest) > LINE_BYTES:
            # A secret that straddles the cut of an endless line is not cut in two.
            end = len(self._rest) - self._longest
        is_long = len(self._rest) > LINE_BYTES
        if end > 0 and (is_long or not self._mask.is_begun(_text(self._rest[:end]))):
            self._keep(bytes(self._rest[:end]))
            del self._rest[:end]

    def close(self) -> None:
        if self._rest:
            self._keep(bytes(self._rest))
        if self._is_beyond:
            self._write(_GAP.encode() + bytes(self._last))
        os.close(self._handle)

    @property
    def tail(self) -> str:
        """The end of what was printed, for a row in the database."""
        text = bytes(self._last).decode("utf-8", "replace").replace("\0", "")
        return text[-TAIL_CHARACTERS:]

    def _keep(self, text: bytes) -> None:
        shown = self._mask(_text(text))
        for secret in self._short:
            shown = shown.replace(secret, masking.HIDDEN)
        text = shown.encode("utf-8", "surrogateescape")
        if b"://" in text and b"@" in text:
            text = _URL_SECRET.sub(rb"\1" + masking.HIDDEN.encode() + b"@", text)
        self._add(text)
        if self._whole is not None:
            # Line by line and masked already: no secret is cut in two by the other output.
            self._whole._add(text)

    def _add(self, text: bytes) -> None:
        self._last += text
        del self._last[:-LAST]
        if self._size + len(text) > FULL:
            self._is_beyond = True
        if not self._is_beyond:
            self._write(text)

    def _write(self, text: bytes) -> None:
        """A full disk costs output and nothing else."""
        self._size += len(text)
        with contextlib.suppress(OSError):
            while text:
                text = text[os.write(self._handle, text) :]
