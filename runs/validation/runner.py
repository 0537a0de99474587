"""Carries out a validation: puts the work together, runs each command on it, says what that means.

Runs as an ordinary task that may take hours. Every step is guarded by the row: whoever is no
longer its runner, or finds it ended, ends its command and leaves.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Q

from runs.core import database
from runs.core.ports import Lab, SeamError
from runs.core.states import NoticeKind, ValidationState, ValidationStep
from runs.models import Fixer, Validation
from runs.timeline import announce
from runs.validation import command_rules, endings, fixers, integration, rules
from runs.validation.command_rules import Check, Checked
from runs.validation.integration import Together
from runs.validation.rules import Next, Verdict

logger = logging.getLogger(__name__)

BEAT_EVERY = timedelta(seconds=15)
AGAIN_AFTER = timedelta(seconds=60)
MOST_TROUBLES = 5
NO_DATABASE = (OperationalError, InterfaceError)


class Lost(Exception):
    """The validation is not ours to go on with: somebody ended it, or this process ends."""


def _never() -> bool:
    return False


def carry_out(lab: Lab, validation_id: int, is_stopping: Callable[[], bool] = _never) -> None:
    """Run the commands of a validation that waits for it. Safe to call twice.

    Once this process `is_stopping` the command is ended and the validation let go, as if it had
    not begun.
    """
    with endings.at_work(lab, validation_id) as is_alone:
        if is_alone:
            _carry_out(lab, validation_id, is_stopping)


def _carry_out(lab: Lab, validation_id: int, is_stopping: Callable[[], bool]) -> None:
    free = Q(not_before=None) | Q(not_before__lte=lab.now())
    waiting = Validation.objects.running().filter(free, step=ValidationStep.CHECKING, runner="")
    if not waiting.filter(pk=validation_id).update(runner=lab.process, beat_at=lab.now()):
        return
    rows = Validation.objects.select_related("project__agent", "project__forge")
    row = rows.get(pk=validation_id)
    found: Verdict | None = None
    try:
        with _tidied(lab, row):
            found = _check(lab, row, _Beat(lab, row, is_stopping))
    except SeamError as error:
        found = _trouble(lab, row, str(error))
    except Lost:
        logger.info("validation was taken away", extra={"validation": row.pk})
    except NO_DATABASE as error:
        logger.warning("validation was not stored", extra={"error": str(error)})
        database.renew_connection()
    except Exception as error:
        logger.exception("validation failed by a mistake of ours")
        mistake = f"labsite made a mistake ({type(error).__name__}); it is in the log"
        found = rules.verdict(row.commands, [], trouble=mistake)
    _leave(lab, row, found)


def _leave(lab: Lab, row: Validation, found: Verdict | None) -> None:
    """Store what was found and let the row go; whatever fails here is found again by `tend`."""
    with contextlib.suppress(*NO_DATABASE):
        if found is not None:
            _finish(lab, row, found)
        Validation.objects.filter(pk=row.pk, runner=lab.process).update(runner="")
        if not Validation.objects.filter(pk=row.pk).exists():
            return  # its project is gone, and all that the row stood for
        row.refresh_from_db()
        if row.is_running:
            fixers.tend(lab, row)
        else:
            endings.settle(lab, row)


def _finish(lab: Lab, row: Validation, found: Verdict) -> None:
    """End it, or have a fixer try. The first failure is what all of them mend."""
    fix = _fix(row)
    if rules.after(found, row.attempt, row.most_fixers) is Next.END:
        endings.close(lab, row, found, fix=fix)
        return
    with transaction.atomic():
        won = _ours(lab, row).update(
            step=ValidationStep.FIXING, reason=found.reason, failure=row.failure, runner=""
        )
        if won:
            Fixer.objects.filter(validation=row, number=row.attempt).update(checked_at=lab.now())
            text = (
                f"validation {row.number} does not pass: {found.reason}; an agent tries to mend it"
            )
            _tell(lab, row, text)


def _check(lab: Lab, row: Validation, goes_on: Callable[[], bool]) -> Verdict:
    """Put together, then command after command until one fails."""
    lab.checks.end(row.mark)  # what a killed predecessor left running
    fix = _fix(row)
    together = integration.put_together(lab, row, fix)
    _note(lab, row, together)
    results: list[Checked] = []
    if not together.conflict:
        path = endings.worktree(lab, row)
        lab.repos.add_detached(row.project.repo(lab.paths), path, together.commit)
        for argv in row.commands:
            results.append(_run(lab, row, argv, len(results) + 1, goes_on))
            if rules.why_failed(argv, results[-1]):
                break
    found = rules.verdict(row.commands, results, together.conflict)
    if fix is None and found.state is ValidationState.FAILED:
        row.failure = _failure(together, found, results)
    return found


def _failure(together: Together, found: Verdict, results: Collection[Checked]) -> dict[str, Any]:
    """What fixers have to mend, and the commit that all of them begin at."""
    return {
        "commit": together.commit,
        "reason": found.reason,
        "tail": list(results)[-1].tail if results else "",
        "branches": [f"{one.tip} ({one.name}, branch {one.branch})" for one in together.rest],
    }


def _note(lab: Lab, row: Validation, together: Together) -> None:
    """What is about to be proved. Results of a predecessor that died are done away with."""
    others = [one for one in row.results if one["attempt"] != row.attempt]
    facts = {
        "base": together.base,
        "commit": together.commit,
        "merged": [asdict(one) for one in together.merged],
        "left_out": together.left_out,
        "results": others,
    }
    if not _ours(lab, row).update(**facts):
        raise Lost
    for name, value in facts.items():
        setattr(row, name, value)


def _run(
    lab: Lab, row: Validation, argv: list[str], number: int, goes_on: Callable[[], bool]
) -> Checked:
    """One command; its row in the results is there while it runs."""
    name = f"{row.attempt}-{number}.txt"
    entry = {"attempt": row.attempt, "name": name, "argv": argv, "is_running": True}
    empty = asdict(Checked(None, 0.0))
    row.results.append({**empty, **entry, "began_at": lab.now().isoformat()})
    with transaction.atomic():
        if not _ours(lab, row).update(results=row.results):
            raise Lost
        text = f"validation {row.number} runs {command_rules.shown(argv)[:200]}"
        _tell(lab, row, text)
    check = Check(
        argv=argv,
        cwd=endings.worktree(lab, row),
        folder=row.folder(lab.paths),
        name=name,
        mark=row.mark,
        limit=timedelta(minutes=row.minutes),
        secrets=_secrets(row),
    )
    result = lab.checks.run(check, goes_on)
    if result.is_given_up:
        raise Lost
    row.results[-1] |= {**asdict(result), "is_running": False}
    if not _ours(lab, row).update(results=row.results):
        raise Lost
    return result


class _Beat:
    """Whether a validation is still ours to work on; says now and then that we do."""

    def __init__(self, lab: Lab, row: Validation, is_stopping: Callable[[], bool]) -> None:
        self._lab = lab
        self._is_stopping = is_stopping
        self._row = row
        self._next: datetime = lab.now() + BEAT_EVERY

    def __call__(self) -> bool:
        """A database that does not answer has not taken it away."""
        if self._is_stopping():
            return False
        try:
            if self._lab.now() < self._next:
                return bool(_ours(self._lab, self._row).exists())
            self._next = self._lab.now() + BEAT_EVERY
            return bool(_ours(self._lab, self._row).update(beat_at=self._lab.now()))
        except NO_DATABASE:
            database.renew_connection()
            return True


def _ours(lab: Lab, row: Validation) -> Any:
    """The row, as long as it is running and this process works on this very attempt."""
    return Validation.objects.running().filter(
        pk=row.pk, runner=lab.process, attempt=row.attempt, losses=row.losses
    )


def _fix(row: Validation) -> Fixer | None:
    """The fixer whose branch this attempt is about; None of the session's own work."""
    return Fixer.objects.filter(validation=row, number=row.attempt).first() if row.attempt else None


def _secrets(row: Validation) -> list[str]:
    """What no output may show: the token that git has, and what the forge is asked with."""
    forge = row.project.forge
    known = [str(value) for value in forge.credential.values()] if forge is not None else []
    return [one for one in (row.project.git_token, *known) if one]


@contextlib.contextmanager
def _tidied(lab: Lab, row: Validation) -> Iterator[None]:
    """However it goes, the worktree is gone afterwards, or left to the next look."""
    try:
        yield
    finally:
        try:
            path = endings.worktree(lab, row)
            lab.repos.force_remove(row.project.repo(lab.paths), path)
        except SeamError as error:
            logger.warning("a validation's worktree was left", extra={"error": str(error)})


def _trouble(lab: Lab, row: Validation, why: str) -> Verdict | None:
    """What could not be prepared is tried again some times before that fails the validation."""
    troubles = row.troubles + 1
    if troubles >= MOST_TROUBLES:
        return rules.verdict(row.commands, [], trouble=why)
    with transaction.atomic():
        if _ours(lab, row).update(troubles=troubles, not_before=lab.now() + AGAIN_AFTER):
            text = f"validation {row.number} is tried again in a minute: {why}"
            _tell(lab, row, text)
    return None


def _tell(lab: Lab, row: Validation, text: str) -> None:
    kind = NoticeKind.VALIDATION_STEP
    announce.tell(lab, kind, text, project=row.project, watch_id=row.session_id)
