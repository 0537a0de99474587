"""What must hold before and while the product starts, and the files that a start writes. Knows no Django."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shlex
import shutil
import socket
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from labsite import env, folders
from runs.core.paths import Paths

WEB, WORKER = PARTS = ("web", "worker")
NEEDED = {"git": "git", "tmux": "tmux"}
EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104


class Problem(Exception):
    """The product cannot start; the text is one sentence that says why and what to do."""


def programs(which: Callable[[str], str | None] = shutil.which) -> None:
    """Raise Problem when a program that every run needs is not on PATH."""
    for program, package in NEEDED.items():
        if which(program) is None:
            raise Problem(
                f"labsite needs {program}, which is not on PATH: install it "
                f"(Debian, Ubuntu: apt install {package}), then start again."
            )


def state_folder(paths: Paths) -> None:
    """Make the folders, private to their owner. Raises Problem or WrongSetting when it cannot."""
    folders.prepare(paths)
    try:
        with tempfile.TemporaryFile(dir=paths.state):
            pass
    except OSError as error:
        raise Problem(
            f"The state folder {paths.state} cannot be written ({error.strerror}): "
            "set LAB_STATE_DIR to a folder of yours, then start again."
        ) from error


def parts(paths: Paths, only: str) -> None:
    """Raise Problem for one part alone that could never meet the other."""
    on_server = bool(env.text("LAB_DATABASE_URL").strip())
    several = [name for name in ("LAB_REDIS_URL", "LAB_WEB_URL") if env.text(name).strip()]
    if several and not on_server:
        raise Problem(
            f"{several[0]} is for several machines, which need one database: "
            "set LAB_DATABASE_URL to a PostgreSQL database, then start again."
        )
    if only == WORKER and not on_server and not paths.database.exists():
        raise Problem(
            f"The state folder {paths.state} holds no database that this worker could share with a "
            "web part: start `./lab up --only web` on this folder first, or set LAB_DATABASE_URL "
            "and LAB_REDIS_URL to those of the other machine."
        )


class Locks(contextlib.ExitStack):
    """What a process holds of a state folder, until it is closed."""

    def __init__(self, paths: Paths, locks: Sequence[Path]) -> None:
        super().__init__()
        self.files: list[IO[str]] = []
        try:
            for lock in locks:
                self.files.append(self.enter_context(_locked(paths, lock)))
        except BaseException:
            self.close()
            raise

    def are_in_place(self) -> bool:
        """Whether the folder is still the one that they were taken in."""
        with contextlib.suppress(OSError):
            return all(
                os.path.samestat(Path(file.name).stat(), os.fstat(file.fileno()))
                for file in self.files
            )
        return False


def only_one(paths: Paths, only: str = "") -> Locks:
    """Hold the state folder, or a part of it; two judges on one folder would disturb each other.

    Raises Problem when another process holds it.
    """
    held = {WEB: [paths.web_lock], WORKER: [paths.up_lock]}
    return Locks(paths, held.get(only) or [paths.up_lock, paths.web_lock])


def _locked(paths: Paths, lock: Path) -> IO[str]:
    """A file that is locked until it is closed."""
    file = lock.open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.seek(0)
        holder = file.read().strip() or "unknown"
        file.close()
        raise Problem(
            f"labsite already runs on the state folder {paths.state} (process {holder}): "
            "use that one, end it first, or set LAB_STATE_DIR to another folder."
        ) from error
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()
    return file


def moved(paths: Paths, locks: Locks) -> str:
    """Why no program may be started on the state folder now: it is not the one that was locked."""
    if locks.are_in_place():
        return ""
    return f"The state folder {paths.state} is gone. Agent sessions go on; labsite waits until it is back."


def removed(paths: Paths) -> str:
    """Why no worker may be started now: people took this host out of the others."""
    try:
        return paths.removed.read_text("utf-8").strip()
    except OSError:
        return ""


def listen(host: str, port: int) -> socket.socket:
    """Listen on an address, the port chosen by the system when `port` is 0. Raises Problem when taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        _, kind, protocol, _, address = socket.getaddrinfo(
            host, port, family, socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        made = socket.socket(family, kind, protocol)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(address)
            made.listen()
        except OSError:
            made.close()
            raise
    except OSError as error:
        raise Problem(_why_not(host, port, error)) from error
    return made


def port_of(listening: socket.socket) -> int:
    """The port that a socket listens on."""
    return int(listening.getsockname()[1])


def free_port(host: str, port: int) -> int:
    """The port to listen on, chosen by the system when `port` is 0. Raises Problem when taken."""
    with listen(host, port) as probe:
        return port_of(probe)


def _why_not(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is in use by another program: choose another with --port, or 0 for any free one."
    if error.errno in (errno.EACCES, errno.EPERM):
        return (
            f"Port {port} is kept for the system's own programs: choose one above 1023 with --port."
        )
    return f"This machine cannot listen on {host} ({error.strerror}): use --host 127.0.0.1, or an address of this machine."


def reach(host: str) -> str:
    """The host by which a program on this machine reaches a web process that listens on `host`."""
    return EVERY_ADDRESS.get(host, host)


def answers(host: str, port: int) -> bool:
    """Whether the web process answers a request."""
    request = f"GET /healthz HTTP/1.0\r\nHost: localhost:{port}\r\n\r\n".encode()
    try:
        with socket.create_connection((reach(host), port), timeout=2) as connection:
            connection.sendall(request)
            return connection.recv(5) == b"HTTP/"
    except OSError:
        return False


def base_url(host: str, port: int) -> str:
    """The address of the product, without a slash at its end."""
    name = reach(host)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def write_address(paths: Paths, url: str) -> None:
    """Tell `labctl` where the web process answers now."""
    _write(paths.address, f"{url}\n", 0o600)


def write_labctl(paths: Paths, python: str, root: Path) -> None:
    """Put the agent's command where every session finds it.

    A login shell sets PATH anew, as Debian's /etc/profile does; bash reads the second file after
    that, whatever kind of shell it is, since BASH_ENV names it.
    """
    paths.bin.mkdir(mode=0o700, parents=True, exist_ok=True)
    entry = shlex.quote(str(root / "labctl" / "__main__.py"))
    command = f'exec {shlex.quote(python)} -I -S {entry} "$@"'
    _write(paths.bin / "labctl", f"#!/bin/sh\n{command}\n", 0o700)
    folder = shlex.quote(str(paths.bin))
    lines = (
        "# What BASH_ENV named before. Unset meanwhile, so that no file can name itself.",
        "lab_bash_env=${LAB_BASH_ENV:-}",
        "unset LAB_BASH_ENV",
        'if [ -r "$lab_bash_env" ]; then . "$lab_bash_env"; export LAB_BASH_ENV=$lab_bash_env; fi',
        "unset lab_bash_env",
        f'case ":$PATH:" in *":"{folder}":"*) ;; *) export PATH={folder}:$PATH ;; esac',
    )
    _write(paths.bash_env, "\n".join([*lines, ""]), 0o600)


def _write(path: Path, text: str, mode: int) -> None:
    """Write a file in one step, so that a reader never sees half of it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    with os.fdopen(handle, "w") as file:
        file.write(text)
    Path(name).chmod(mode)
    Path(name).replace(path)
