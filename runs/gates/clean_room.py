"""The second gate: the project's commands pass on the attempt's commit in a new, clean worktree."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from django.db import transaction

from runs.changed_files.file_kinds import FileKind
from runs.core.ports import Lab
from runs.core.states import Gate, NoticeKind
from runs.gates.hold import Hold
from runs.gates.rules import Decision
from runs.jobs.runner import LostError
from runs.models import Attempt
from runs.timeline import announce
from runs.validation import clean_room, rules, specs
from runs.validation.clean_room import NoWorktree, Result, Room

MOST_CHARACTERS = 4000
SHOWN_TESTS = 20
TAIL_CHARACTERS = 2000
_PART = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}", re.ASCII)
_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[^\S\n]+$", re.M)


class UnfitPlaceError(ValueError):
    """A worktree's path cannot be made of this; says why."""


def judge(lab: Lab, hold: Hold) -> Decision:
    """Run the commands of an attempt on its commit; the decision, which the caller stores.

    May be called again from its beginning: what a predecessor left is ended and removed, and said.
    Raises LostError, SeamError.
    """
    attempt = hold.attempt
    lacking = attempt.spec.get("lacking") or ()
    if lacking and _changes_code(attempt):
        return _refused(f"the project's checks cannot prove changed code: {' '.join(lacking)}")
    try:
        path = build_path(lab.paths.clean_rooms, attempt.run_id, hold.run.issue_key, attempt.number)
    except UnfitPlaceError as error:
        return _refused(f"no clean worktree can be made for this issue: {error}")
    if attempt.results:
        _say_again(lab, hold)
    hold.store(results=[], coverage=None, artifacts={})
    room = Room(
        project=attempt.project,
        commit=attempt.commit,
        base=attempt.base,
        path=path,
        folder=attempt.folder(lab.paths),
        mark=attempt.mark,
        attempt=attempt.number,
        root=lab.paths.clean_rooms,
        keep_on_failure=bool(attempt.spec.get("keep_worktrees")),
    )
    spec = specs.from_json(attempt.spec)
    try:
        found = clean_room.run(lab, room, spec, _Journal(lab, hold))
    except clean_room.Lost as error:
        raise LostError from error
    except NoWorktree as error:
        return _refused(f"the clean worktree could not be made: {error}")
    proven = {"results": found.results, "coverage": found.coverage, "artifacts": found.artifacts}
    hold.persist(lambda: hold.store(**proven))
    return Decision(Gate.CLEAN_ROOM, found.passed, describe_failure(found))


def _changes_code(attempt: Attempt) -> bool:
    files = attempt.context.get("changed_files") or ()
    return any(one.get("label") == FileKind.CODE.value for one in files)


def remove_worktree(lab: Lab, attempt: Attempt) -> None:
    """Remove the worktree that a predecessor of an ended attempt left; idempotent.

    One that is kept because it failed stays. Raises SeamError when something is left.
    """
    if attempt.artifacts.get("worktree_state") == clean_room.KEPT:
        return
    try:
        path = build_path(
            lab.paths.clean_rooms, attempt.run_id, attempt.run.issue_key, attempt.number
        )
    except UnfitPlaceError:
        return
    if path.exists():
        lab.repos.force_remove(attempt.project.repo(lab.paths), path)


def build_path(root: Path, run_id: int, key: str, number: int) -> Path:
    """Return where the worktree of an attempt lies, its own and below the root. Raises UnfitPlaceError."""
    if number < 1:
        raise UnfitPlaceError(f"there is no attempt {number}")
    parts = (str(run_id), key, str(number))
    for part in parts:
        if not _PART.fullmatch(part):
            raise UnfitPlaceError(
                f"{part[:60]!r} may hold only letters, digits, '.', '_' and '-', and not begin "
                "with a dot"
            )
    path = root.joinpath(*parts)
    # A link on the way could lead elsewhere.
    if not path.resolve().is_relative_to(root.resolve()):
        raise UnfitPlaceError(f"{path} leads out of {root}")
    return path


def describe_failure(found: Result) -> tuple[str, ...]:
    """Return why a clean room failed: short enough to be typed into a session, empty when it passed.

    Of a failed command the failing tests and the end of its output are told.
    """
    if found.passed:
        return ()
    said = [_clean(one)[:600] for one in found.failures]
    failed = _failed(found)
    if failed is not None:
        said[0] += _details(failed, MOST_CHARACTERS - sum(map(len, said)) - 200)
    return tuple(said)


def _failed(found: Result) -> Mapping[str, Any] | None:
    """The entry of the command that ended the run, None when all that were needed passed."""
    if not found.checked or found.commands[-1].allow_fail:
        return None
    last = found.checked[-1]
    return found.results[-1] if rules.why_failed(found.commands[-1].argv, last) else None


def _details(entry: Mapping[str, Any], room: int) -> str:
    """Failing tests and the end of the output, in at most so many characters."""
    text = ""
    tests = entry.get("tests") or {}
    names: Sequence[str] = tests.get("failed") or ()
    if names:
        shown = [_clean(name)[:120] for name in names[:SHOWN_TESTS]]
        more = len(names) - len(shown)
        text = ". Failing tests: " + ", ".join(shown) + (f" and {more} more" if more > 0 else "")
        text = text[: room // 2]
    elif entry.get("report"):
        text = f"; {_clean(entry['report'])}"[: room // 2]
    tail = _clean(str(entry.get("tail") or "")).strip()[-min(TAIL_CHARACTERS, room - len(text)) :]
    return f"{text}. The end of its output:\n{tail}" if tail else text


def _clean(text: str) -> str:
    """Without what a terminal would take for a command."""
    plain = _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return "".join(one for one in plain if one.isprintable() or one in "\n\t")


def _refused(why: str) -> Decision:
    """What no agent can mend."""
    return Decision(Gate.CLEAN_ROOM, False, (why,), is_retryable=False)


def _say_again(lab: Lab, hold: Hold) -> None:
    with transaction.atomic():
        number = hold.attempt.number
        text = f"attempt {number}: the commands were interrupted and are run again from the first"
        announce.tell(lab, NoticeKind.GATE_STEP, text, run=hold.run)


class _Journal:
    """Keeps the results with the attempt, as long as that is ours."""

    def __init__(self, lab: Lab, hold: Hold) -> None:
        self._lab = lab
        self._hold = hold
        self.goes_on: Callable[[], bool] = hold.is_held

    def note(self, results: Sequence[Mapping[str, Any]], text: str = "") -> None:
        self._hold.persist(lambda: self._note(results, text))

    def _note(self, results: Sequence[Mapping[str, Any]], text: str) -> None:
        hold = self._hold
        with transaction.atomic():
            hold.store(results=[dict(one) for one in results])
            if text:
                told = f"attempt {hold.attempt.number} runs {text}"
                announce.tell(self._lab, NoticeKind.GATE_STEP, told, run=hold.run)
