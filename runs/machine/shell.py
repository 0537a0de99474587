"""The only place that starts processes: argument lists, a timeout on each, stderr kept."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from runs.core.ports import SeamError

_OWN_PREFIXES = ("LAB_", "DJANGO_", "HUEY_")
_OWN_NAMES = frozenset({"VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "TMUX", "TMUX_PANE"})
# What an agent sets for the programs that it starts. Where labsite was started by one, a session with
# them would take itself for a part of that agent's: Claude Code refuses to start, or reports to it.
_AGENT_NAMES = frozenset(
    {
        *("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_SESSION_ID"),
        *("CLAUDE_CODE_SESSION_ACCESS_TOKEN", "CLAUDE_PROJECT_DIR", "CLAUDE_ENV_FILE"),
        *("CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_THREAD_ID"),
    }
)
KEPT_BYTES = 4000
PIECE = 65536
ERR_BYTES = 65536
STEP = 0.05  # how late the end of a program can be seen whose pipes others hold
DRAIN = 0.5
GRACE = 2.0
SIGN_OF_LIFE = 2.0


def add_variables(base: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return an environment with more variables; one that is given as empty is left out of it."""
    merged = {**base, **{str(name): str(value) for name, value in given.items()}}
    return {name: value for name, value in merged.items() if value or name not in given}


@dataclass(frozen=True, slots=True)
class Finished:
    """A process that ended by itself: status and what it printed.

    `is_cut`: it printed more than was wanted and was ended for that, which is status 0.
    """

    status: int
    stdout: str
    stderr: str
    is_cut: bool = False


def run(
    argv: Sequence[str],
    *,
    timeout: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    on_stderr: Callable[[str], None] | None = None,
    limit: int | None = None,
    given: Path | None = None,
) -> Finished:
    """Run a program to its end, at most `timeout` seconds and `limit` bytes of output.

    `given` is a file that it reads as its standard input. Any exit status is an answer. Raises SeamError when the program cannot run or takes too
    long; then its whole process group is ended. `on_stderr` hears stderr piece by piece, and an
    empty text now and then while the program says nothing.
    """
    try:
        with open(given or os.devnull, "rb") as stdin:  # noqa: PTH123
            process = subprocess.Popen(
                argv,
                cwd=cwd,
                env=dict(env) if env is not None else None,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
    except OSError as error:
        raise SeamError(f"{argv[0]} could not run: {error.strerror}") from error
    reading = _Reading(process, on_stderr, limit)
    is_whole = False
    try:
        is_whole = reading.until(time.monotonic() + timeout)
    finally:
        if not is_whole:
            end_group(process)
        # Not before: a program whose words nobody reads dies of that instead of tidying up.
        reading.close()
    if not is_whole and not reading.is_cut:
        raise SeamError(f"{_shown(argv)} gave no answer within {timeout:g} seconds")
    status = 0 if reading.is_cut else process.returncode
    return Finished(status, _text(reading.out), _words(reading.err), reading.is_cut)


Process = subprocess.Popen[bytes]


def start(
    argv: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    *,
    given: Path | None = None,
    is_apart: bool = False,
    kept: Sequence[int] = (),
) -> Process:
    """A program in a process group of its own, whose two outputs are one pipe, or two if `is_apart`.

    `given` is a file that it reads as its standard input, `kept` are open files that it inherits.
    Whoever starts it bounds it and ends its group. Raises OSError when it cannot be started.
    """
    with open(given or os.devnull, "rb") as stdin:  # noqa: PTH123
        return subprocess.Popen(
            argv,
            cwd=cwd,
            env=dict(env),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if is_apart else subprocess.STDOUT,
            start_new_session=True,
            pass_fds=tuple(kept),
        )


def check(
    argv: Sequence[str],
    *,
    timeout: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    limit: int | None = None,
) -> str:
    """`run`, but any status other than 0 is a SeamError with the program's own words."""
    done = run(argv, timeout=timeout, cwd=cwd, env=env, limit=limit)
    if done.status != 0:
        raise SeamError(words(argv, done))
    return done.stdout


def words(argv: Sequence[str], done: Finished) -> str:
    """What a failed program said, for a person."""
    said = (done.stderr.strip() or done.stdout.replace("\0", " ").strip())[-KEPT_BYTES:]
    return f"{_shown(argv)} failed: {said or f'exit status {done.status}'}"


def scrubbed(environ: Mapping[str, str], own_bin: Path | None = None) -> dict[str, str]:
    """Return an environment for agents and their tmux: nothing of the product's, nor of an agent around it."""
    kept = {
        name: value
        for name, value in environ.items()
        if not name.startswith(_OWN_PREFIXES) and name not in _OWN_NAMES | _AGENT_NAMES
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


def _text(raw: bytes | bytearray) -> str:
    return raw.decode("utf-8", "backslashreplace")


def _words(raw: bytes | bytearray) -> str:
    """What a program says to people: kept as text, which PostgreSQL refuses with a letter 0 in it."""
    return _text(raw).replace("\0", "")


class _Reading:
    """Reads both pipes of a process until it has ended, too much was read, or time is up."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        on_stderr: Callable[[str], None] | None,
        limit: int | None,
    ) -> None:
        assert process.stdout is not None and process.stderr is not None  # noqa: S101  (pipes)
        self._process = process
        self._pipes = {process.stdout: self._hear_out, process.stderr: self._hear_err}
        self._selector = selectors.DefaultSelector()
        for pipe in self._pipes:
            self._selector.register(pipe, selectors.EVENT_READ)
        self._on_stderr = on_stderr
        self._limit = limit
        self._heard_at = time.monotonic()
        self.out = bytearray()
        self.err = bytearray()
        self.is_cut = False

    def until(self, deadline: float) -> bool:
        """Whether the process ended by itself before `deadline`.

        Its pipes may outlive it in programs that it left behind; for those only a moment is waited.
        """
        while not self.is_cut:
            has_ended = self._process.poll() is not None
            if has_ended:
                self._drain(min(deadline, time.monotonic() + DRAIN))
                return not self.is_cut
            if time.monotonic() >= deadline:
                return False
            self._read(deadline)
        return False

    def close(self) -> None:
        self._selector.close()
        for pipe in self._pipes:
            pipe.close()

    def _drain(self, deadline: float) -> None:
        """Read what the ended program left in its pipes.

        At least once, which empties them, however long this machine held us up.
        """
        is_late = False
        while self._selector.get_map() and not is_late and not self.is_cut:
            self._read(deadline)
            is_late = time.monotonic() >= deadline

    def _read(self, deadline: float) -> None:
        left = max(0.0, min(STEP, deadline - time.monotonic()))
        if not self._selector.get_map():
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(left)
        for key, _ in self._selector.select(left) if self._selector.get_map() else ():
            piece = os.read(key.fd, PIECE)
            if piece:
                self._pipes[key.fileobj](piece)  # type: ignore[index]
            else:
                self._selector.unregister(key.fileobj)
        self._give_sign()

    def _hear_out(self, piece: bytes) -> None:
        self.out += piece
        if self._limit is not None and len(self.out) > self._limit:
            del self.out[self._limit :]
            self.is_cut = True

    def _hear_err(self, piece: bytes) -> None:
        self.err += piece
        del self.err[:-ERR_BYTES]
        self._tell(_words(piece))

    def _give_sign(self) -> None:
        if time.monotonic() - self._heard_at >= SIGN_OF_LIFE:
            self._tell("")

    def _tell(self, text: str) -> None:
        self._heard_at = time.monotonic()
        if self._on_stderr is not None:
            self._on_stderr(text)


def end_group(process: Process) -> None:
    """End a process and its group. TERM first: git removes its lock files then, and leaves them when it is killed at once."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        end = time.monotonic() + GRACE
        while time.monotonic() < end:
            if process.poll() is not None and not _is_group(process.pid):
                return
            time.sleep(0.02)


def _is_group(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
