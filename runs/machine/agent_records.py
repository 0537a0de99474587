"""Finds and reads the records that agents write for themselves, over no link and waiting for none."""

from __future__ import annotations

import contextlib
import heapq
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from labctl import safe_files
from runs.core import lenient_json
from runs.core.ports import Output, SeamError
from runs.machine import shell
from runs.transcript import record_rules
from runs.transcript.record_rules import HEAD, Form, OwnRecord, Wanted

MOST_FOLDERS = 5000
MOST_OPENED = 50
MOST_AGENTS = 200
META_BYTES = 64 * 1024


class AgentRecords:
    """`Records` on this machine; `environ` is what sessions of this host are started in."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._env = shell.scrubbed(environ)

    def find(self, wanted: Wanted) -> Sequence[OwnRecord]:
        found: list[OwnRecord] = []
        if Form.CLAUDE in wanted.forms:
            found += self._of_claude(wanted)
        if Form.CODEX in wanted.forms and not found:
            found += self._of_codex(wanted)
        return found

    def read(self, record: OwnRecord, start: int, limit: int) -> Output | None:
        *folders, name = record.path
        try:
            with safe_files.below(record.base, folders) as at:
                return _piece(at, name, start, limit)
        except (OSError, ValueError, OverflowError):
            return None

    def keep(self, folder: Path, name: str, pieces: Iterable[bytes]) -> None:
        part = folder / f"{name}.{os.getpid()}.part"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            part.unlink(missing_ok=True)
            with open(part, "xb", opener=_private) as file:
                for piece in pieces:
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            part.replace(folder / name)
        except OSError as error:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            raise SeamError(f"{name} could not be kept: {error.strerror}") from error

    def _of_claude(self, wanted: Wanted) -> Iterator[OwnRecord]:
        own = str(self._home(wanted, "CLAUDE_CONFIG_DIR", ".claude") / "projects")
        folder = record_rules.claude_folder(os.path.realpath(wanted.worktree))
        told = [record_rules.told_place(path) for path in wanted.told]
        places = list(dict.fromkeys([(own, folder), *(one for one in told if one)]))
        for session in filter(record_rules.is_session, wanted.sessions):
            record = self._first(session, places, wanted) or self._first(
                session, [(own, name) for name in _folders(own)], wanted
            )
            if record is not None:
                yield record
                yield from self._agents(record)

    def _first(
        self, session: str, places: Sequence[tuple[str, str]], wanted: Wanted
    ) -> OwnRecord | None:
        """The session's record in the first of these folders that has it, if it is this run's."""
        for base, folder in places:
            record = OwnRecord(Form.CLAUDE, session, base, (folder, f"{session}.jsonl"))
            head = self.read(record, 0, HEAD // 4)
            if head is None:
                continue
            is_its = record_rules.is_claudes(head.data, session, _names(wanted.worktree))
            is_here = folder == record_rules.claude_folder(os.path.realpath(wanted.worktree))
            if is_its or (is_its is None and is_here):
                return record
        return None

    def _agents(self, main: OwnRecord) -> Iterator[OwnRecord]:
        """The records of agents that it started, in the order of their names."""
        folder = (*main.path[:-1], main.session, "subagents")
        try:
            with safe_files.below(main.base, folder) as at:
                names = sorted(safe_files.names(at, files=True))
        except (OSError, ValueError):
            return
        for name in [one for one in names if one.endswith(".jsonl")][:MOST_AGENTS]:
            agent = name.removeprefix("agent-").removesuffix(".jsonl")
            if not record_rules.is_session(agent):
                continue
            meta = OwnRecord(main.form, "", main.base, (*folder, f"agent-{agent}.meta.json"))
            said = self.read(meta, 0, META_BYTES)
            entry = lenient_json.entry(said.data) if said else None
            call = lenient_json.word(entry, "toolUseId")
            yield OwnRecord(main.form, main.session, main.base, (*folder, name), agent, call)

    def _of_codex(self, wanted: Wanted) -> list[OwnRecord]:
        base = str(self._home(wanted, "CODEX_HOME", ".codex") / "sessions")
        found = []
        for day in record_rules.days(wanted):
            for name in sorted(_files(base, day), reverse=True):
                session = record_rules.rollout_session(name)
                if not session or not record_rules.may_be(session, wanted):
                    continue
                record = OwnRecord(Form.CODEX, session, base, (*day, name))
                head = self.read(record, 0, HEAD)
                if head and record_rules.is_codexs(head.data, session, _names(wanted.worktree)):
                    found.append(record)
        return sorted(found, key=lambda one: one.path)

    def _home(self, wanted: Wanted, variable: str, usual: str) -> Path:
        """The agent's own folder, as its environment names it."""
        env = shell.add_variables(self._env, wanted.env)
        given = env.get(variable)
        return Path(given) if given else Path(env.get("HOME") or "/nonexistent") / usual


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _piece(at: int, name: str, start: int, limit: int) -> Output | None:
    file = safe_files.existing(at, name)
    try:
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode):
            return None
        begin = start if start >= 0 else max(0, facts.st_size + start)
        data = os.pread(file, limit, begin)
        return Output(data, facts.st_size, datetime.fromtimestamp(facts.st_mtime, UTC))
    finally:
        os.close(file)


def _names(worktree: str) -> list[str]:
    """A folder as we call it, and as the program does that was started in it."""
    return [worktree, os.path.realpath(worktree)] if worktree else []


def _folders(base: str) -> list[str]:
    """The folders that changed last: each is opened, and that again and again while a record is missing."""
    with contextlib.suppress(OSError, ValueError), safe_files.below(base, ()) as at:

        def changed_at(name: str) -> int:
            return os.stat(name, dir_fd=at, follow_symlinks=False).st_mtime_ns

        names = safe_files.names(at, folders=True)[:MOST_FOLDERS]
        return heapq.nlargest(MOST_OPENED, names, key=changed_at)
    return []


def _files(base: str, day: Sequence[str]) -> list[str]:
    with contextlib.suppress(OSError, ValueError), safe_files.below(base, day) as at:
        return safe_files.names(at, files=True)
    return []
