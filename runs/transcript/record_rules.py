"""Where agents keep their own records of a session, and which record is whose. Pure, and the port.

Claude Code keeps one file a session, `projects/<folder>/<session>.jsonl`, and one for each agent
that it started beside it; Codex keeps `sessions/YYYY/MM/DD/rollout-<time>-<session>.jsonl`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from runs.core import lenient_json

if TYPE_CHECKING:
    from runs.core.ports import Output

HEAD = 256 * 1024  # by then an entry has said where it was worked
DAY = timedelta(days=1)
MOST_DAYS = 40
_SESSION = re.compile(r"[A-Za-z0-9_-]{8,80}", re.ASCII)
_UUID7 = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII)
_ROLLOUT = re.compile(r"rollout-[0-9T-]{10,30}-([0-9a-f-]{36})\.jsonl", re.ASCII)


class Form(StrEnum):
    """How the lines of a record are to be read."""

    CLAUDE = "claude"
    CODEX = "codex"
    CODEX_PRINTED = "codex_printed"


@dataclass(frozen=True, slots=True)
class OwnRecord:
    """One file of a run's conversation: `path` lies below the folder `base`, over no link.

    `agent` and `call`: it is of an agent that the main one started, by that call of a tool where it
    is told. `is_printed`: it is what the program printed, which its launcher wrote down.
    """

    form: Form
    session: str
    base: str
    path: tuple[str, ...]
    agent: str = ""
    call: str = ""
    is_printed: bool = False

    @property
    def name(self) -> str:
        """What tells it from the other records of its run; good in an address."""
        return f"{self.session}.{self.agent}" if self.agent else self.session


@dataclass(frozen=True, slots=True)
class Wanted:
    """Whose records are looked for. `sessions`: ids by which the program knows them, oldest first.

    `told`: paths that its hooks named. `env`: what its profile adds to its environment. Without an
    id, what was begun in this worktree between `since` and `until` is its own.
    """

    worktree: str
    forms: tuple[Form, ...] = (Form.CLAUDE, Form.CODEX)
    sessions: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    since: datetime | None = None
    until: datetime | None = None


class Records(Protocol):
    """The files that agents write for themselves. Nothing in them can hold us up or lead elsewhere."""

    def find(self, wanted: Wanted) -> Sequence[OwnRecord]:
        """The records of these sessions that are there, each followed by those of its agents."""

    def keep(self, folder: Path, name: str, pieces: Iterable[bytes]) -> None:
        """Write a file into a folder of ours, private, whole or not at all. Raises SeamError."""

    def read(self, record: OwnRecord, start: int, limit: int) -> Output | None:
        """At most `limit` bytes from `start` on, from the end for a negative one, and its size.

        None when it is not there any more, or is no plain file. As it was written: not masked.
        """


@runtime_checkable
class AtOnce(Protocol):
    """Records whose owner finds those of a run by itself."""

    def of_run(self, run_id: int) -> Sequence[OwnRecord]:
        """The records of a run. Raises SeamError."""


def is_session(ident: str) -> bool:
    """Whether an id can be part of a file's name."""
    return _SESSION.fullmatch(ident) is not None


def claude_folder(worktree: str) -> str:
    """The name that Claude Code gives to the folder of a working directory, unless it is very long."""
    return re.sub(r"[^A-Za-z0-9]", "-", worktree)


def told_place(path: str) -> tuple[str, str] | None:
    """The folder of all projects and the project's own in a path as a hook named it; None if odd."""
    parts = Path(path).parts
    if not path.startswith("/") or ".." in parts or len(parts) < 4 or parts[-3] != "projects":
        return None
    return str(Path(*parts[:-2])), parts[-2]


def is_claudes(head: bytes, session: str, places: Sequence[str]) -> bool | None:
    """Whether the beginning of a record is of this session in one of these folders.

    None when nothing in it says so.
    """
    for line in head.split(b"\n")[:-1]:
        entry = lenient_json.entry(line) or {}
        if entry.get("sessionId", session) != session:
            return False
        place = entry.get("cwd")
        if isinstance(place, str):
            return is_at(place, places)
    return None


def is_codexs(head: bytes, session: str, places: Sequence[str]) -> bool:
    """The same for Codex, which says both in its first line."""
    meta = lenient_json.at(lenient_json.entry(head.partition(b"\n")[0]), "payload")
    place = lenient_json.at(meta, "cwd")
    is_its = session in (lenient_json.at(meta, "id"), lenient_json.at(meta, "session_id"))
    return is_its and isinstance(place, str) and is_at(place, places)


def is_at(place: str, places: Sequence[str]) -> bool:
    """Whether a folder is one of these or lies in one."""
    return any(place == one or place.startswith(f"{one}/") for one in places if one)


def rollout_session(name: str) -> str:
    """The session in the name of one of Codex's files; empty when it is none."""
    found = _ROLLOUT.fullmatch(name)
    return found[1] if found else ""


def may_be(session: str, wanted: Wanted) -> bool:
    """Whether one of Codex's sessions is asked for: by its id, else by when it was begun."""
    if wanted.sessions:
        return session in wanted.sessions
    began = _began(session)
    return bool(began and wanted.since and wanted.until and wanted.since <= began <= wanted.until)


def days(wanted: Wanted) -> list[tuple[str, str, str]]:
    """The folders of days in which Codex may have begun these sessions, newest first.

    An id that holds its time tells the day, whichever time zone it was named in; else it is one on
    which the run was at work.
    """
    spans = []
    for ident in wanted.sessions:
        began = _began(ident)
        spans += [(began, began)] if began else []
    if len(spans) < max(1, len(wanted.sessions)) and wanted.since and wanted.until:
        spans.append((wanted.since, wanted.until))
    found = {
        first.date() + DAY * number
        for first, last in spans
        for number in range(-1, min(MOST_DAYS, (last.date() - first.date()).days + 2))
    }
    return [(f"{d:%Y}", f"{d:%m}", f"{d:%d}") for d in sorted(found, reverse=True)]


def _began(ident: str) -> datetime | None:
    found = _UUID7.fullmatch(ident)
    if found is None:
        return None
    return datetime.fromtimestamp(int(found[1] + found[2], 16) / 1000, UTC)
