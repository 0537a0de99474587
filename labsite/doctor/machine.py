"""Looks at the machine: programs, packages, folders, disk, port, limits. Knows no Django."""

from __future__ import annotations

import contextlib
import fcntl
import http.client
import importlib.metadata
import os
import re
import resource
import shutil
import stat
import sys
import tempfile
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

from labsite import env, plain, preflight
from labsite.doctor import rules
from labsite.doctor.lines import Line, ok, warning, wrong
from runs.core.paths import Paths, odd_letters
from runs.core.ports import SeamError
from runs.machine import shell

ROOT = Path(__file__).resolve().parent.parent.parent
ASK_SECONDS = 5.0
DEFAULT_NOFILE = 16384
INOTIFY = Path("/proc/sys/fs/inotify")
MINE = "Make it yours alone: chown -R to your user, chmod 700."


def python() -> Iterator[Line]:
    shown = ".".join(map(str, sys.version_info[:3]))
    yield ok("python", f"Python {shown} at {sys.executable}")


def packages() -> Iterator[Line]:
    """What is installed, against requirements.txt and constraints.txt."""
    pins = dict(
        _plain(line).split("==", 1)
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line and not line.startswith("#")
    )
    needed = {
        _plain(re.split(r"[\[<>=~;]", line)[0])
        for line in (ROOT / "requirements.txt").read_text().splitlines()
        if line.strip() and not line.startswith("#")
    }
    found = {}
    for name in {*pins, *needed}:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    yield rules.packages(pins, needed, found)


def _plain(line: str) -> str:
    """A package's line with its name as indexes compare them."""
    name, sign, version = line.strip().partition("==")
    return re.sub(r"[-_.]+", "-", name).lower() + sign + version


def git() -> Iterator[Line]:
    yield rules.program("git", _version("git", "--version"), rules.OLDEST_GIT)


def committer(chosen: str) -> Iterator[Line]:
    """Say who commits; `chosen` is what the settings say, empty where they say nothing."""
    if chosen:
        yield rules.committer(chosen)
    elif shutil.which("git") is not None:
        argv = ["git", "-C", "/", "var", "GIT_COMMITTER_IDENT"]
        done = shell.run(argv, timeout=ASK_SECONDS, limit=1000)
        named = done.stdout.rpartition(">")[0] + ">" if done.status == 0 else None
        yield rules.committer(named)


def tmux() -> Iterator[Line]:
    yield rules.program("tmux", _version("tmux", "-V"), rules.OLDEST_TMUX)


def _version(program: str, flag: str) -> str | None:
    """What a program calls itself; None when it is not on PATH. Raises SeamError when it hangs."""
    if shutil.which(program) is None:
        return None
    done = shell.run([program, flag], timeout=ASK_SECONDS, limit=200)
    if done.status != 0:
        raise SeamError(shell.words([program, flag], done))
    return done.stdout.strip()


def state_folder(paths: Paths) -> Iterator[Line]:
    """Whether the folder is there, ours, private and writable. Nothing in it stays changed."""
    state, check = paths.state, "state_folder"
    if odd := odd_letters(state):
        yield wrong(
            check, f"{state} holds {odd}", "Set LAB_STATE_DIR to a folder with plain letters."
        )
        return
    try:
        seen = state.stat()
    except FileNotFoundError:
        yield warning(
            check, f"{state} is not there yet", "./lab up makes it; ./lab restore fills it."
        )
        return
    if not stat.S_ISDIR(seen.st_mode):
        yield wrong(check, f"{state} is not a folder", "Set LAB_STATE_DIR to a folder of yours.")
    elif seen.st_uid != os.getuid():
        yield wrong(check, f"{state} belongs to user {seen.st_uid}, not to you", MINE)
    elif stat.S_IMODE(seen.st_mode) != 0o700:
        yield wrong(check, f"{state} has mode {stat.S_IMODE(seen.st_mode):04o}, not 0700", MINE)
    else:
        yield _writable(state)
    yield from _private_files(paths)


def _writable(state: Path) -> Line:
    try:
        with tempfile.NamedTemporaryFile(dir=state, prefix=".doctor-") as probe:
            probe.write(b"probe")
            probe.flush()
    except OSError as error:
        seen = f"{state} cannot be written ({error.strerror})"
        return wrong("state_folder", seen, "Make room, or mount it for writing.")
    return ok("state_folder", f"{state} is private and can be written")


def _private_files(paths: Paths) -> Iterator[Line]:
    """Files that hold secrets, and the sockets that let programs in."""
    files = (paths.database, paths.queue, paths.secret_key, paths.tmux_socket, paths.worker_socket)
    strange, open_ones = [], []
    is_used = paths.shared_place in (paths.socket_folder, paths.temporary.parent)
    folder = [paths.shared_place] if is_used else []
    for path in (*files, *folder):
        with contextlib.suppress(FileNotFoundError):
            seen = path.lstat()
            if seen.st_uid != os.getuid():
                strange.append(f"{path} belongs to user {seen.st_uid}")
            elif stat.S_IMODE(seen.st_mode) & 0o077 and not stat.S_ISSOCK(seen.st_mode):
                open_ones.append(f"{path.name} has mode {stat.S_IMODE(seen.st_mode):04o}")
    if strange:
        yield wrong(
            "files", "; ".join(strange), "Remove what is not yours, or chown it to your user."
        )
    elif open_ones:
        # The folder around them is closed, so this is no leak while that stays so.
        yield warning("files", "; ".join(open_ones), "The next start of labsite closes them.")
    else:
        yield ok("files", "databases, key and sockets are private")


def disk(paths: Paths) -> Iterator[Line]:
    """Room where the state folder and temporary files lie."""
    places = {
        "state folder": _existing(paths.state),
        "temporary files": Path(tempfile.gettempdir()),
    }
    for name, place in places.items():
        room = os.statvfs(place)
        inodes = room.f_favail if room.f_files else None
        yield rules.disk(rules.Room(name, room.f_bavail * room.f_frsize, inodes))
        if room.f_flag & os.ST_RDONLY:
            yield wrong("disk", f"{name}: mounted read-only", "Mount it for writing.")


def _existing(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.exists())


def limits(wanted: int = DEFAULT_NOFILE) -> Iterator[Line]:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    inotify = {}
    for name in ("max_user_instances", "max_user_watches"):
        with contextlib.suppress(OSError, ValueError):
            inotify[name] = int((INOTIFY / name).read_text())
    yield from rules.limits(None if hard == resource.RLIM_INFINITY else hard, wanted, inotify)


def is_running(paths: Paths) -> bool:
    """Whether a `./lab up` holds this state folder, or a part of it."""
    return _is_held(paths.up_lock) or _is_held(paths.web_lock)


def _is_held(lock: Path) -> bool:
    try:
        with os.fdopen(plain.opened(lock)) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def port(paths: Paths) -> Iterator[Line]:
    """The running product's own page, or whether its port could be had."""
    if is_running(paths):
        address = plain.text_of(paths.address) if paths.address.exists() else ""
        yield rules.port(rules.PortFacts(address, True, health(address), ""))
        return
    host = env.text("LAB_HOST") or "127.0.0.1"
    number = env.number("LAB_PORT", 8420, 0, 65535)
    taken, shown = "", preflight.base_url(host, number) if number else f"any port of {host}"
    try:
        preflight.free_port(host, number)
    except preflight.Problem as problem:
        taken = str(problem)
    yield rules.port(rules.PortFacts(shown, False, None, taken))


def health(address: str) -> int | None:
    """The status of the health page at an address; None when nothing answers as it should."""
    parts = urllib.parse.urlsplit(address)
    if not parts.hostname:
        return None
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=ASK_SECONDS)
    try:
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        return answer.status if answer.status != 200 or answer.read(3) == b"ok\n" else None
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
