"""How validations end: one door, and the tidying after it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from django.db import transaction

from runs.core import budgets, lease, naming
from runs.core.effects import ValidationEnd
from runs.core.ports import Lab, SeamError, UnremovableError
from runs.core.states import NoticeKind, ValidationState
from runs.guard import acts as guard
from runs.models import Fixer, Project, Validation
from runs.timeline import announce
from runs.validation import clean_room, e2e, fixer_endings, run_level, specs
from runs.validation.rooms import Room
from runs.validation.rules import FixEnd, Verdict

STALE = timedelta(minutes=10)
# What this process works on. A row that names it and is not among these was let go while the
# database could not be told.
_AT_WORK: set[tuple[str, int]] = set()
# What proved nothing is told in no colour.
_KINDS = {
    ValidationState.PASSED: NoticeKind.VALIDATION_PASSED,
    ValidationState.FAILED: NoticeKind.VALIDATION_FAILED,
}
_ANSWERS = {
    ValidationState.PASSED: True,
    ValidationState.NOTHING: True,
    ValidationState.FAILED: False,
    ValidationState.CANCELLED: None,
}


def close(
    lab: Lab, row: Validation, found: Verdict, *, fix: Fixer | None = None, by: str = ""
) -> bool:
    """End a validation if nobody has; True when this call did. Its session has its answer then.

    `fix` is the one on whose branch it passed: from then on that counts as accepted work.
    """
    with transaction.atomic():
        won = (
            Validation.objects.running()
            .filter(pk=row.pk)
            .update(state=found.state, reason=found.reason, ended_at=lab.now(), not_before=None)
        )
        if won and fix is not None:
            accepted_at = lab.now() if found.state is ValidationState.PASSED else None
            Fixer.objects.filter(pk=fix.pk).update(checked_at=lab.now(), accepted_at=accepted_at)
        if won:
            text = f"validation {row.number} {found.state}{f': {found.reason}' if found.reason else ''}"
            kind = _KINDS.get(found.state, NoticeKind.VALIDATION_ENDED)
            tell(lab, row, kind, text, by=by)
            answer(lab, row, found.state)
            slug = row.project.slug
            transaction.on_commit(lambda: lab.bell.look(slug), robust=True)
    row.refresh_from_db()
    return bool(won)


def tell(lab: Lab, row: Validation, kind: NoticeKind, text: str, by: str = "") -> None:
    """Tell of a validation on the timeline of its session, or of its run."""
    project, watch = row.project, row.session_id
    announce.tell(lab, kind, text, project=project, run=row.run, watch_id=watch, by=by)


def stop_fixers(lab: Lab, project: Project, by: str) -> int:
    """A person stops the agents that mend validations of a project; how many that were.

    What they were to mend has failed then: another one would be started in the same moment.
    """
    live = Fixer.objects.filter(project=project, end="")
    return sum([_stop(lab, one, by) for one in live.select_related("project", "validation")])


def _stop(lab: Lab, fixer: Fixer, by: str) -> bool:
    row = fixer.validation
    with transaction.atomic():
        if not fixer_endings.end(lab, fixer, FixEnd.CANCELLED):
            return False
        why = f"{row.reason}; the agent that tried to mend it was stopped by {by}"
        close(lab, row, Verdict(ValidationState.FAILED, why), by=by)
    if lease.is_here(lab, row.host):
        settle(lab, row)
    return True


def answer(lab: Lab, row: Validation, state: ValidationState) -> None:
    """Tell whoever waits for it how it ended, in the transaction that stores it."""
    for effect in lab.effects.validation_ended:
        effect(lab, ValidationEnd(row.pk, row.session_id, _ANSWERS[state]))


@contextlib.contextmanager
def at_work(lab: Lab, validation_id: int) -> Iterator[bool]:
    """Note that this thread works on a validation; False when another of this process does."""
    key = (str(lab.paths.state), validation_id)
    is_alone = key not in _AT_WORK
    _AT_WORK.add(key)
    try:
        yield is_alone
    finally:
        if is_alone:
            _AT_WORK.discard(key)


def is_worked_on(lab: Lab, row: Validation) -> bool:
    """Whether the process that a row names works on it still, as far as anybody can tell."""
    if not row.runner:
        return False
    if row.runner == lab.process:
        return (str(lab.paths.state), row.pk) in _AT_WORK
    is_alive = lab.is_process_alive(row.runner) is not False
    return is_alive and budgets.age(lab.now(), row.beat_at) < STALE


def worktree(lab: Lab, row: Validation) -> Path:
    """Where a validation's own worktree lies; nobody's work is ever in it.

    One of a spec may be kept, and lies apart from those that are swept.
    """
    if row.spec is not None:
        return lab.paths.clean_rooms / f"run-level-{row.pk}"
    return lab.paths.worktrees / naming.check_folder(row.project.slug, row.pk)


def settle(lab: Lab, row: Validation) -> bool:
    """End and remove whatever an ended validation left; False when it has to be tried again.

    A run level that failed is written an issue about. While a process works on it, that one tidies up first.
    """
    if is_worked_on(lab, row):
        return False
    for fixer in row.fixers.select_related("project", "validation"):
        fixer_endings.end(lab, fixer, FixEnd.CANCELLED)
        if not fixer_endings.settle(lab, fixer):
            return False
        if fixer.accepted_at is not None and fixer.told_at is None:
            fixer_endings.publish(lab, fixer)
    try:
        lab.checks.end(row.mark)
        guard.check_shared(lab, row.project, has_workers=True)
        warning = _remove_worktree(lab, row)
        _end_fixture(lab, row)
    except SeamError as error:
        text = f"The validation could not be tidied up yet: {error}. It is tried again."
        Validation.objects.filter(pk=row.pk).update(warning=text)
        return False
    if not run_level.follow_up(lab, row):
        return False
    rows = Validation.objects.unsettled().filter(pk=row.pk)
    rows.update(settled_at=lab.now(), warning=warning, runner="")
    row.refresh_from_db()
    return True


def _remove_worktree(lab: Lab, row: Validation) -> str:
    """Remove its worktree unless it is kept; what a person has to do for it. Raises SeamError."""
    if row.artifacts.get("worktree_state") == clean_room.KEPT:
        return ""
    try:
        lab.repos.force_remove(row.project.repo(lab.paths), worktree(lab, row))
    except UnremovableError as error:
        return str(error)
    return ""


def _end_fixture(lab: Lab, row: Validation) -> None:
    """What a killed worker left of the end-to-end check. Raises SeamError when something is left."""
    if row.spec is None or not row.spec["e2e"]["enabled"]:
        return
    room = Room(
        project=row.project,
        commit=row.commit,
        base=row.base,
        path=worktree(lab, row),
        folder=row.folder(lab.paths),
        mark=row.mark,
        attempt=row.attempt,
    )
    e2e.settle(lab, room, specs.from_json(row.spec).e2e)
