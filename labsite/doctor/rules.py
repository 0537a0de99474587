"""What is fine, odd or wrong on the machine, from facts that were looked at elsewhere. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from labsite.doctor.lines import Line, ok, warning, wrong
from runs.core.naming import COMMITTER, COMMITTER_ADDRESS

GIB = 1024**3
LOW_BYTES, NO_BYTES = GIB, 100 * 1024**2
LOW_INODES, NO_INODES = 10_000, 500
OLDEST_GIT = (2, 30)  # `worktree repair` follows a repository that was moved
OLDEST_TMUX = (3, 0)  # the configuration holds commands in braces
CLOCK_SLACK = 60.0
STAMP_SLACK = 5.0
FIRST_YEAR_SECONDS = 1_704_067_200  # 2024 began: no clock that is right shows less
FEW_INSTANCES, FEW_WATCHES = 128, 8192


def version_of(text: str) -> tuple[int, int] | None:
    """The first two numbers that a program's version line names; None when there are none."""
    found = re.search(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None


def program(name: str, said: str | None, oldest: tuple[int, int]) -> Line:
    """A program that every run needs; `said` is its version line, None when it is not on PATH."""
    install = f"Install {name} (Debian, Ubuntu: apt install {name})."
    if said is None:
        return wrong(name, f"{name} is not on PATH", install)
    version = version_of(said)
    wanted = ".".join(map(str, oldest))
    if version is None:
        return warning(
            name,
            f"it said {said!r}, which names no version",
            f"labsite needs {wanted} or newer; see by hand.",
        )
    if version < oldest:
        return wrong(name, f"{said}, and labsite needs {wanted} or newer", install)
    return ok(name, said)


def committer(found: str | None) -> Line:
    """Return who commits in agents' worktrees; `found` is what the settings or git say, else None."""
    if found:
        return ok("committer", f"agents commit as {found}")
    return ok(
        "committer",
        f"agents commit as {COMMITTER} <{COMMITTER_ADDRESS}>, since git knows no name for this user; "
        "the settings, a project's page Agents and git config --global user.name set another",
    )


@dataclass(frozen=True, slots=True)
class Room:
    """What a file system has left; `inodes` is None where it does not count them."""

    name: str
    free: int
    inodes: int | None


def disk(room: Room) -> Line:
    """Warns while there is time, and is wrong when the next fetch or commit may fail."""
    seen = f"{room.name}: {_size(room.free)} free"
    if room.inodes is not None:
        seen += f", {room.inodes} more files"
    advice = (
        "Make room: remove worktrees and projects that nobody needs, or move the state folder to a "
        "larger disk."
    )
    inodes = LOW_INODES if room.inodes is None else room.inodes
    if room.free < NO_BYTES or inodes < NO_INODES:
        return wrong("disk", seen, advice)
    if room.free < LOW_BYTES or inodes < LOW_INODES:
        return warning("disk", seen, advice)
    return ok("disk", seen)


def _size(number: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{number:.0f} {unit}"
        number /= 1024
    return f"{number:.1f} TiB"


@dataclass(frozen=True, slots=True)
class ClockFacts:
    """Seconds. `stamp` is the time that the state folder's disk gave a fresh file; `set_by` is how
    far the clock was set since labsite started, None when labsite does not run; `ahead` is how far
    in the future the last tick lies, None when there was none."""

    now: float
    stamp: float | None
    set_by: float | None
    ahead: float | None


def clock(facts: ClockFacts) -> Line:
    """A clock that jumps makes budgets and leases wrong, so each sign of it is told."""
    advice = "Have the machine's clock set (timedatectl, chrony), then restart labsite."
    if facts.now < FIRST_YEAR_SECONDS:
        return wrong("clock", "the clock shows a year before 2024", advice)
    if facts.ahead is not None and facts.ahead > CLOCK_SLACK:
        seen = f"the last tick lies {facts.ahead:.0f} seconds in the future: the clock was set back"
        return warning("clock", seen, advice)
    if facts.stamp is not None and abs(facts.stamp - facts.now) > STAMP_SLACK:
        seen = (
            f"the state folder's disk is {facts.stamp - facts.now:+.0f} seconds away from the clock"
        )
        return warning("clock", seen, "Set the clocks of this machine and its file server alike.")
    if facts.set_by is not None and abs(facts.set_by) > CLOCK_SLACK:
        seen = f"the clock was set by {facts.set_by:+.0f} seconds since labsite started"
        return warning("clock", seen, advice)
    return ok("clock", "no jump seen, and the disk agrees with it")


def limits(hard_files: int | None, wanted: int, inotify: Mapping[str, int]) -> list[Line]:
    """Open files that agents are promised, and file watches that their tools need.

    `hard_files` is None for no limit; `inotify` may lack what the kernel does not tell.
    """
    lines = []
    if hard_files is not None and hard_files < wanted:
        lines.append(
            warning(
                "open_files",
                f"a session may open {hard_files} files, and {wanted} are set for agents",
                f"Raise the limit (systemd: LimitNOFILE={wanted}), or lower “open files per session”.",
            )
        )
    else:
        shown = "no limit" if hard_files is None else f"up to {hard_files}"
        lines.append(ok("open_files", f"{shown}, {wanted} wanted for agents"))
    few = {"max_user_instances": FEW_INSTANCES, "max_user_watches": FEW_WATCHES}
    low = [f"{name} is {inotify[name]}" for name in few if inotify.get(name, few[name]) < few[name]]
    if low:
        sets = " ".join(f"fs.inotify.{name}={number * 4}" for name, number in few.items())
        advice = f"Agents' build tools watch files: sysctl {sets}"
        lines.append(warning("file_watches", ", ".join(low), advice))
    else:
        lines.append(ok("file_watches", "enough for agents' tools"))
    return lines


@dataclass(frozen=True, slots=True)
class PortFacts:
    """`runs`: labsite runs on this state folder. `answer`: the status of its health page, None for
    no answer. `taken`: why the port cannot be listened on, empty when it can."""

    address: str
    runs: bool
    answer: int | None
    taken: str


def port(facts: PortFacts) -> Line:
    """Tells our own product from another program on the port that it would take."""
    if facts.runs and facts.answer == 200:
        return ok("port", f"labsite runs here and answers at {facts.address}")
    if facts.runs:
        said = "nothing" if facts.answer is None else f"status {facts.answer}"
        seen = f"labsite runs, but its page at {facts.address or 'no known address'} answers {said}"
        return wrong("port", seen, "Look at the lines that ./lab up prints; restart it.")
    if facts.taken:
        advice = "labsite does not run on this state folder. End the other program, or choose another port."
        return wrong("port", facts.taken, advice)
    return ok("port", f"labsite does not run; {facts.address} is free")


def packages(wanted: Mapping[str, str], needed: set[str], found: Mapping[str, str]) -> Line:
    """Installed versions against the pins. Names are normalised; `found` lacks what is missing."""
    missing = sorted(name for name in needed if name not in found)
    other = sorted(
        f"{name} {found[name]} in place of {version}"
        for name, version in wanted.items()
        if name in found and found[name] != version
    )
    advice = "Run ./lab up once: it installs what constraints.txt names. With LAB_PYTHON, install them there."
    if missing:
        return wrong("packages", f"missing: {', '.join(missing)}", advice)
    if other:
        return warning("packages", f"other versions than tested: {', '.join(other)}", advice)
    return ok("packages", f"{len(set(wanted) & set(found))} packages, all as pinned")
