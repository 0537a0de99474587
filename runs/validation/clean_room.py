"""Runs the commands of a spec in a new worktree at one commit, and says what they prove.

`run` is all there is: the gate of an attempt, the run level of a session, today's validations and
a person's `./lab validate` call it. It writes no row; whoever calls keeps what it is told through a
`Journal` (`ByHand` keeps nothing) and gets a `Result`. To run a project's chain by hand on a commit:
`run(lab, Room(project, commit, base, path, folder, tokens.new_mark()), spec, ByHand(goes_on))`.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
from collections.abc import Mapping
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path, PurePosixPath
from typing import Any

from runs.core.ports import Lab, SeamError, UnfitFileError
from runs.models import Project
from runs.setup import checkout, file_acts
from runs.validation import command_rules, e2e, executed_tests, reports, rules, specs
from runs.validation.command_rules import Check, Checked
from runs.validation.executed_tests import MOST_BYTES, ExecutedTests
from runs.validation.report_files import CoverageGate, ReportFile
from runs.validation.reports import UnfitReport
from runs.validation.rooms import ByHand, Journal, Lost, NoWorktree, Result, Room
from runs.validation.specs import Command, Kind, Scope, Spec

__all__ = ["ByHand", "Journal", "Lost", "NoWorktree", "Result", "Room", "run"]

logger = logging.getLogger(__name__)

KEPT, REMOVED = "kept", "removed"
SHOWN_FILES = 5
# Programs that were started to read write them by the way.
_LOCKS = re.compile(
    r".*\.lock|.*\.lockb|.*-lock\.(json|ya?ml)|go\.(sum|work\.sum)|npm-shrinkwrap\.json"
)
# What git says where trying again does not help: words of the system, and a commit that is gone.
_FINAL = (
    *(os.strerror(n) for n in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT)),
    *(os.strerror(n) for n in (errno.ENOTDIR, errno.ENAMETOOLONG)),
    "invalid reference",
)


def run(lab: Lab, room: Room, spec: Spec, journal: Journal) -> Result:
    """Run a spec on a commit, command after command until one fails, and remove the worktree.

    What a killed predecessor left is ended and removed first. Raises NoWorktree where the worktree
    cannot be written, which no later try mends; Lost, SeamError,
    and what the journal raises; then too nothing is left.
    """
    began = lab.now()
    found = Result(artifacts=_artifacts(room))
    lab.checks.end(room.mark)
    try:
        _make(lab, room)
        _carry_out(lab, room, spec, journal, found)
    except BaseException:
        _remove(lab, room, found)
        raise
    if found.passed or not room.keep_on_failure:
        _remove(lab, room, found)
    else:
        found.artifacts["worktree_state"] = KEPT
    found.seconds = round((lab.now() - began).total_seconds(), 2)
    return found


def _carry_out(lab: Lab, room: Room, spec: Spec, journal: Journal, found: Result) -> None:
    measuring = CoverageGate(lab, room, spec)
    changed = _changed(lab, room, spec)
    _prepare(lab, room, journal, found)
    if found.setup_failure:
        return
    files = _Files(lab, room)
    for command in spec.commands:
        if changed is not None and not specs.is_wanted(command, changed):
            found.results.append(_skipped(lab, room, command, len(found.results) + 1))
            continue
        files.begin(command)
        result = _run(lab, room, command, found, journal)
        why = rules.why_failed(command.argv, result) or files.why_not(command)
        why = why or _describe_no_tests(lab, room, command, found.results[-1])
        if why and not command.allow_fail:
            found.failures.append(why)
            found.is_fixable = not result.trouble
            break
    found.coverage = measuring.judge(found)
    if spec.e2e.enabled and found.passed:
        journal.note(found.results, "the end-to-end check")
        found.e2e = e2e.run(lab, room, spec.e2e, journal.goes_on)
        found.artifacts["e2e_fixture_path"] = found.e2e["fixture_path"]
        if not found.e2e["passed"]:
            found.failures.append(found.e2e["failure_reason"])
            found.is_fixable = False


def _prepare(lab: Lab, room: Room, journal: Journal, found: Result) -> None:
    """Write the files of the project and run its set-up commands, which prove nothing."""
    try:
        file_acts.place(lab, room.project, room.path)
    except UnfitFileError as error:
        found.setup_failure = f"the set-up failed: {error}"
        found.failures.append(found.setup_failure)
        return
    for command in room.setup:
        result = _run(lab, room, command, found, journal, is_setup=True)
        why = rules.why_failed(command.argv, result)
        if why:
            found.setup_failure = f"the set-up failed: {why}"
            found.failures.append(found.setup_failure)
            found.is_fixable = not result.trouble
            return
    found.commands.clear()
    found.checked.clear()


_Others = frozenset[tuple[str, str, int | None, int | None]]


class _Files:
    """The committed files of a worktree, which a command that reads them has to leave as they are.

    One that mends them has proven what nobody committed, and so would the tests behind it.
    """

    def __init__(self, lab: Lab, room: Room) -> None:
        self._lab, self._room = lab, room
        # Those that are not as they were committed, before and now; None: not known.
        self._before: _Others | None = None
        self._now: _Others | None = frozenset()

    def begin(self, command: Command) -> None:
        """Before a command is run."""
        if self._now is None and self._is_asked(command):
            self._now = self._look()
        self._before, self._now = self._now, None

    def why_not(self, command: Command) -> str:
        """Why a command that passed proves nothing; empty where it does, or git cannot tell."""
        if not self._is_asked(command):
            return ""
        self._now = self._look()
        if self._before is None or self._now is None or not self._now - self._before:
            return ""
        names = sorted({one[0] for one in self._now - self._before})
        more = f" and {len(names) - SHOWN_FILES} more" if len(names) > SHOWN_FILES else ""
        told = f"{', '.join(names[:SHOWN_FILES])}{more}"
        line = command_rules.shown(command.argv)[:200]
        return f"{line} changed what is committed ({told}): commit what it makes of it"

    def _is_asked(self, command: Command) -> bool:
        return command.kind in (Kind.LINT, Kind.FORMAT) and not command.allow_fail

    def _look(self) -> _Others | None:
        try:
            rows = self._lab.repos.changes(self._room.path, self._room.commit)
        except SeamError as error:
            logger.info("changed files are unknown", extra={"error": str(error)})
            return None
        known = [one for one in rows if one.kind not in ("?", "A")]
        return frozenset(
            (one.old_path or one.path, one.kind, one.added, one.removed)
            for one in known
            if not _LOCKS.fullmatch(PurePosixPath(one.path).name)
        )


def _make(lab: Lab, room: Room) -> None:
    """Raises NoWorktree where there is no place or no commit, SeamError where git failed otherwise."""
    try:
        project = room.project
        repo, folders = project.repo(lab.paths), project.checked_out_folders
        lab.repos.add_detached(repo, room.path, room.commit, folders)
        checkout.fetch_large_files(lab, project, room.path)
    except SeamError as error:
        if any(words in str(error) for words in _FINAL):
            raise NoWorktree(str(error)) from error
        raise
    except OSError as error:
        raise NoWorktree(f"{error.filename or room.path}: {error.strerror}") from error


def _remove(lab: Lab, room: Room, found: Result) -> None:
    """Remove the worktree and the empty folders above it; one that cannot be has no state yet."""
    try:
        lab.repos.force_remove(room.project.repo(lab.paths), room.path)
    except (SeamError, OSError) as error:
        logger.warning("a clean worktree was left", extra={"error": str(error)})
        return
    found.artifacts["worktree_state"] = REMOVED
    if room.root is not None:
        with contextlib.suppress(OSError):
            for folder in room.path.parents:
                if folder == room.root or not folder.is_relative_to(room.root):
                    break
                folder.rmdir()


def _artifacts(room: Room) -> dict[str, Any]:
    return {
        "log_dir": str(room.folder),
        "worktree_path": str(room.path),
        "worktree_state": None,
        "coverage_report": None,
        "e2e_fixture_path": None,
    }


def _changed(lab: Lab, room: Room, spec: Spec) -> frozenset[str] | None:
    """The files that lock files are looked for among; None when every command is run.

    What a session delivered is always proved in full.
    """
    if spec.scope is Scope.RUN_LEVEL or not any(one.lock_files for one in spec.commands):
        return None
    if not room.base:
        return None
    rows = lab.repos.changes(room.project.repo(lab.paths), room.base, room.commit)
    return frozenset(name for row in rows for name in (row.path, row.old_path) if name)


def _run(
    lab: Lab,
    room: Room,
    command: Command,
    found: Result,
    journal: Journal,
    *,
    is_setup: bool = False,
) -> Checked:
    """One command; its entry in the results is there while it runs."""
    number = len(found.results) + 1
    entry = _entry(lab, room, command, number) | ({"is_setup": True} if is_setup else {})
    found.results.append({**entry, "is_running": True})
    journal.note(found.results, command_rules.shown(command.argv)[:200])
    junit = ReportFile(lab, room.path, reports.junit_path(command.argv))
    result = lab.checks.run(_check(lab, room, command, entry), journal.goes_on)
    if result.is_given_up:
        raise Lost
    found.results[-1] = {**entry, **_stored(result, room.is_plain), "is_running": False}
    if not room.is_plain and not result.trouble:
        found.results[-1] |= read_tests(lab, junit)
    found.commands.append(command)
    found.checked.append(result)
    journal.note(found.results)
    return result


def _describe_no_tests(lab: Lab, room: Room, command: Command, entry: Mapping[str, Any]) -> str:
    """Say why a test command that passed proves nothing; empty where a test ran, or nobody can tell.

    Commands of a project without gates have no kind of their own, so that nobody knows which of
    them are to run tests.
    """
    if room.is_plain or command.kind is not Kind.TEST:
        return ""
    why = describe_no_tests(lab, room.folder, entry)
    return why and f"{command_rules.shown(command.argv)[:200]} {why}"


def describe_no_tests(lab: Lab, folder: Path, entry: Mapping[str, Any]) -> str:
    """Return that no test ran though a test command passed; empty where one did, or nobody can tell.

    Its own report counts, else the summaries that it printed.

    Args:
        lab: what is asked for the output.
        folder: where the output of its commands lies.
        entry: the result of the command, with the file that it printed to.
    """
    tests = entry.get("tests")
    if tests is not None:
        executed = tests["passed"] + len(tests["failed"])
        count: ExecutedTests | None = ExecutedTests(executed, tests["total"] - executed)
    else:
        printed = lab.checks.output(folder, entry["name"], -MOST_BYTES, MOST_BYTES)
        if printed is None:
            return ""
        text = printed.data.decode("utf-8", "replace")
        count = executed_tests.count_tests(text, is_whole=printed.size <= MOST_BYTES)
    return executed_tests.describe_no_tests(count)


def _entry(lab: Lab, room: Room, command: Command, number: int) -> dict[str, Any]:
    """A command that has not ended. A plain one has one file, others one for each output too."""
    name = f"{room.attempt}-{number}"
    entry: dict[str, Any] = {
        **_stored(Checked(None, 0.0), room.is_plain),
        "attempt": room.attempt,
        "name": f"{name}.txt",
        "argv": list(command.argv),
        "is_running": False,
        "began_at": lab.now().isoformat(),
    }
    if room.is_plain:
        return entry
    return {
        **entry,
        "command": command.name,
        "kind": command.kind.value,
        "allow_fail": command.allow_fail,
        "stdout": f"{name}.out.txt",
        "stderr": f"{name}.err.txt",
        "tests": None,
        "report": "",
        "skipped": "",
    }


def _stored(result: Checked, is_plain: bool) -> dict[str, Any]:
    """A result as it is kept: the end of standard error has a file of its own."""
    kept = asdict(result)
    del kept["error_tail"]
    return kept


def _skipped(lab: Lab, room: Room, command: Command, number: int) -> dict[str, Any]:
    names = ", ".join(command.lock_files)
    why = f"{names} {'is' if len(command.lock_files) == 1 else 'are'} unchanged"
    return {
        **_entry(lab, room, command, number),
        "stdout": None,
        "stderr": None,
        "skipped": why,
    }


def _check(lab: Lab, room: Room, command: Command, entry: Mapping[str, Any]) -> Check:
    lock = lab.paths.test_mutex(room.project.pk) if command.use_test_mutex else None
    given = checkout.environment_of(lab, room.project, command.argv)
    return Check(
        argv=command.argv,
        cwd=room.path,
        folder=room.folder,
        name=entry["name"] if room.is_plain else entry["stdout"],
        mark=room.mark,
        limit=timedelta(minutes=command.minutes),
        secrets=[*_secrets(room.project), *filter(None, [given.get("LAB_GIT_TOKEN")])],
        env=given,
        errors="" if room.is_plain else entry["stderr"],
        whole="" if room.is_plain else entry["name"],
        lock=lock,
    )


def _secrets(project: Project) -> list[str]:
    """What no output may show: the token that git has, and what the forge is asked with."""
    forge = project.forge
    known = [str(value) for value in forge.credential.values()] if forge is not None else []
    return [one for one in (project.git_token, *known) if one]


def read_tests(lab: Lab, junit: ReportFile) -> dict[str, Any]:
    """What a command's own report says of its tests, or why that cannot be told."""
    if not junit.name:
        return {}
    try:
        found = reports.read_junit(junit.read()).to_json()
        return {"tests": {**found, "failed": [lab.mask(name) for name in found["failed"]]}}
    except UnfitReport as error:
        return {"report": f"the test report {junit.name} cannot be used: {error}"}
