"""The only place that starts processes: argument lists, a timeout on each, stderr kept."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from runs.domain.ports import SeamError

_OWN_PREFIXES = ("LAB_", "DJANGO_", "HUEY_")
_OWN_NAMES = frozenset({"VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "TMUX", "TMUX_PANE"})
KEPT_BYTES = 4000


@dataclass(frozen=True, slots=True)
class Finished:
    """A process that ended by itself: status and what it printed."""

    status: int
    stdout: str
    stderr: str


def run(
    argv: Sequence[str],
    *,
    timeout: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    on_stderr: Callable[[str], None] | None = None,
) -> Finished:
    """Run a program to its end, at most `timeout` seconds.

    Any exit status is an answer. Raises SeamError when the program cannot run or takes too
    long; then its whole process group is ended.
    """
    try:
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=dict(env) if env is not None else None,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise SeamError(f"{argv[0]} could not run: {error.strerror}") from error
    try:
        if on_stderr is None:
            out, err = process.communicate(timeout=timeout)
        else:
            out, err = _followed(process, timeout, on_stderr)
    except subprocess.TimeoutExpired as error:
        _end_group(process)
        raise SeamError(f"{_shown(argv)} gave no answer within {timeout:g} seconds") from error
    return Finished(process.returncode, _text(out), _text(err))


def check(
    argv: Sequence[str],
    *,
    timeout: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> str:
    """`run`, but any status other than 0 is a SeamError with the program's own words."""
    done = run(argv, timeout=timeout, cwd=cwd, env=env)
    if done.status != 0:
        raise SeamError(words(argv, done))
    return done.stdout


def words(argv: Sequence[str], done: Finished) -> str:
    """What a failed program said, for a person."""
    said = (done.stderr.strip() or done.stdout.strip())[-KEPT_BYTES:]
    return f"{_shown(argv)} failed: {said or f'exit status {done.status}'}"


def scrubbed(environ: Mapping[str, str], own_bin: Path | None = None) -> dict[str, str]:
    """An environment without the product's own settings and secrets, for agents and their tmux."""
    kept = {
        name: value
        for name, value in environ.items()
        if not name.startswith(_OWN_PREFIXES) and name not in _OWN_NAMES
    }
    venv = environ.get("VIRTUAL_ENV", "")
    parts = [part for part in kept.get("PATH", os.defpath).split(os.pathsep) if part]
    parts = [part for part in parts if not venv or not part.startswith(venv)]
    if own_bin is not None:
        parts.insert(0, str(own_bin))
    kept["PATH"] = os.pathsep.join(parts)
    return kept


def _shown(argv: Sequence[str]) -> str:
    """Program and subcommand; the rest may be long or private."""
    plain = [
        word
        for word in argv[1:]
        if not word.startswith("-") and "/" not in word and "=" not in word
    ]
    return " ".join([Path(argv[0]).name, *plain[:2]])


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")


def _end_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=5)


def _followed(
    process: subprocess.Popen[bytes], timeout: float, on_stderr: Callable[[str], None]
) -> tuple[bytes, bytes]:
    """Hand stderr on piece by piece while the process runs (progress of a clone).

    Only for programs that print next to nothing on stdout. Raises TimeoutExpired.
    """
    assert process.stderr is not None and process.stdout is not None  # noqa: S101  (pipes, see above)
    deadline = time.monotonic() + timeout
    pieces: list[bytes] = []
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([process.stderr], [], [], left)[0]:
            raise subprocess.TimeoutExpired(process.args, timeout)
        piece = os.read(process.stderr.fileno(), 4096)
        if not piece:
            break
        pieces.append(piece)
        on_stderr(_text(piece))
    out = process.stdout.read()
    process.wait(timeout=max(1.0, deadline - time.monotonic()))
    process.stdout.close()
    process.stderr.close()
    return out, b"".join(pieces)
