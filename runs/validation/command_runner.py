"""Runs a project's own commands: a clean environment, bounded time and output, nothing left behind."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
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
        began = time.monotonic()
        try:
            check.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            record = _Record(check.folder / check.name, check.secrets)
        except OSError as error:
            raise SeamError(f"{check.folder} could not be written: {error.strerror}") from error
        try:
            env = {**self._env, processes.MARKER: check.mark, "PWD": str(check.cwd)}
            done = process_follower.follow(
                shell.start(list(check.argv), check.cwd, env),
                timeout=check.limit.total_seconds(),
                hear=record.hear,
                goes_on=goes_on,
            )
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", "") or str(error)
            return Checked(None, time.monotonic() - began, trouble=why)
        finally:
            record.close()
            # What left the process group carries the mark still.
            self.end(check.mark)
        has_ended = done.was_in_time and done.was_wanted
        return Checked(
            status=done.status if has_ended and done.status >= 0 else None,
            seconds=round(time.monotonic() - began, 2),
            tail=record.tail,
            signal=-done.status if has_ended and done.status < 0 else None,
            is_over_time=not done.was_in_time,
            is_given_up=not done.was_wanted,
        )

    def end(self, mark: str) -> None:
        processes.end_marked(mark, processes.family(mark))

    def output(self, folder: Path, name: str, start: int, limit: int) -> Output | None:
        return files.read_piece(folder / name, start, limit)


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

    def __init__(self, path: Path, secrets: Sequence[str]) -> None:
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
