"""Carries out a validation: puts the work together, runs each command on it, says what that means.

Runs as an ordinary task that may take hours. Every step is guarded by the row: whoever is no
longer its runner, or finds it ended, ends its command and leaves.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q

from runs.core import database
from runs.core.database import NO_DATABASE
from runs.core.ports import Lab, SeamError
from runs.core.states import NoticeKind, ValidationState, ValidationStep
from runs.guard import acts as guard
from runs.models import Fixer, Validation
from runs.validation import (
    clean_room,
    endings,
    fixers,
    integration,
    reports,
    rules,
    run_level,
    specs,
)
from runs.validation.clean_room import ByHand, Lost, Result, Room
from runs.validation.command_rules import Checked
from runs.validation.integration import Together
from runs.validation.rules import Next, Verdict
from runs.validation.specs import E2E, Command, Coverage, Kind, Scope, Spec

logger = logging.getLogger(__name__)

BEAT_EVERY = timedelta(seconds=15)
AGAIN_AFTER = timedelta(seconds=60)
MOST_TROUBLES = 5
FIRST_TRIAL = 100  # output of trials lies beside that of the attempts, of which there are fewer
WAITS = "the database does not answer, and what a validation found waits for it"


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
    if not waiting.filter(pk=validation_id, host=lab.host).update(
        runner=lab.process, beat_at=lab.now()
    ):
        return
    rows = Validation.objects.select_related("project__agent", "project__forge", "run")
    row = rows.get(pk=validation_id)
    found: Verdict | None = None
    beat = _Beat(lab, row, is_stopping)
    try:
        found = _check(lab, row, beat)
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
    _leave(lab, row, found, beat)


def _leave(lab: Lab, row: Validation, found: Verdict | None, beat: _Beat) -> None:
    """Store what was found and let the row go; whatever fails here is found again by `tend`."""
    with contextlib.suppress(*NO_DATABASE):
        if found is not None:
            verdict = found
            beat.patiently(lambda: _finish(lab, row, verdict))
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


def _check(lab: Lab, row: Validation, beat: _Beat) -> Verdict:
    """Put together, then command after command until one fails."""
    lab.checks.end(row.mark)  # what a killed predecessor left running
    why = run_level.not_clean(lab, row)
    if why:
        return Verdict(ValidationState.FAILED, why)
    fix = _fix(row)
    if fix is None and not (row.losses or row.troubles):
        guard.check_shared(lab, row.project, starting=row)
    together = integration.put_together(lab, row, fix)
    _note(lab, row, together)
    made = clean_room.Result()
    if not together.conflict:
        spec = specs.from_json(row.spec) if row.spec is not None else _plain(row)
        journal = _Journal(lab, row, beat)
        made = clean_room.run(lab, _room(lab, row, together), spec, journal)
    found = _verdict(row, together, made)
    if row.session_id is not None and fix is None:
        found = _suspect(lab, row, beat, together, made, found)
    if row.spec is not None and not together.conflict:
        beat.patiently(lambda: _keep(lab, row, made))
    if fix is None and found.state is ValidationState.FAILED:
        row.failure = _failure(together, found, made.checked)
    return found


def _verdict(row: Validation, together: Together, made: Result) -> Verdict:
    if together.conflict:
        return Verdict(ValidationState.FAILED, together.conflict, is_fixable=True)
    if row.spec is None and made.setup_failure:
        return Verdict(ValidationState.FAILED, made.setup_failure, is_fixable=made.is_fixable)
    if row.spec is None:
        return rules.verdict(row.commands, made.checked)
    told = []
    if made.coverage is not None and made.coverage["percent"] is not None:
        told.append(f"coverage {reports.shown(made.coverage['percent'])}")
    if made.e2e is not None:
        told.append("the end-to-end run passed")
    return rules.proven(made.failures, len(made.checked), told, made.is_fixable)


def _suspect(
    lab: Lab, row: Validation, beat: _Beat, together: Together, made: Result, found: Verdict
) -> Verdict:
    """Find out which deliveries break it: run what failed again without each, a bounded number of times.

    The commands are those up to the one that failed, since earlier ones may install what it needs.
    No further trial begins once they took as long together as the failed command may take. Nothing
    is tried where a person wants the worktree of the failure kept. Raises Lost.
    """
    is_kept = made.artifacts.get("worktree_state") == clean_room.KEPT
    has_failed = bool(made.checked) and rules.why_failed(made.commands[-1].argv, made.checked[-1])
    names = rules.list_trials([one.name for one in together.merged])
    if found.state is not ValidationState.FAILED or not has_failed or is_kept or not names:
        return found
    text = f"validation {row.number} fails: {found.reason}. It is tried without each delivery"
    with transaction.atomic():
        _tell(lab, row, text)
    until = lab.now() + timedelta(minutes=made.commands[-1].minutes)
    trials = []
    for number, name in enumerate(names, start=1):
        if lab.now() >= until:
            break
        # A command may end before anybody asks in its middle.
        if not beat():
            raise Lost
        passed = _try_without(lab, row, beat, together, made.commands, (number, name))
        trials.append(rules.Trial(name, passed))
        if not name and passed is not True:
            break
    suspects = rules.name_suspects(trials)
    if suspects is not None:
        made.artifacts["suspects"] = list(suspects)
        if row.spec is None:
            beat.patiently(lambda: _keep_suspects(lab, row, list(suspects)))
    said = rules.describe_suspects(trials, row.project.default_branch)
    return replace(found, reason=f"{found.reason}; {said}" if said else found.reason)


def _keep_suspects(lab: Lab, row: Validation, suspects: list[str]) -> None:
    row.artifacts = {**row.artifacts, "suspects": suspects}
    if not _ours(lab, row).update(artifacts=row.artifacts):
        raise Lost


def _try_without(
    lab: Lab,
    row: Validation,
    beat: _Beat,
    together: Together,
    commands: Sequence[Command],
    trial: tuple[int, str],
) -> bool | None:
    """Run commands without one delivery; None where that could not be tried. Raises Lost."""
    number, name = trial
    try:
        rest = integration.leave_out(lab, row, together, name)
        if rest is None:
            return None
        room = replace(_room(lab, row, rest), attempt=FIRST_TRIAL + number, keep_on_failure=False)
        spec = Spec(tuple(commands), False, False, Coverage(False), E2E(False), Scope.RUN_LEVEL)
        return clean_room.run(lab, room, spec, ByHand(beat)).passed
    except SeamError as error:
        logger.info("a trial was left out", extra={"error": str(error)})
        return None


def _keep(lab: Lab, row: Validation, made: Result) -> None:
    facts = {"coverage": made.coverage, "e2e": made.e2e, "artifacts": made.artifacts}
    if not _ours(lab, row).update(**facts):
        raise Lost
    for name, value in facts.items():
        setattr(row, name, value)


def _room(lab: Lab, row: Validation, together: Together) -> Room:
    return Room(
        project=row.project,
        commit=together.commit,
        base=together.base,
        path=endings.worktree(lab, row),
        folder=row.folder(lab.paths),
        mark=row.mark,
        attempt=row.attempt,
        root=lab.paths.clean_rooms,
        keep_on_failure=bool(row.spec and row.spec["keep_worktrees"]),
        is_plain=row.spec is None,
    )


def _plain(row: Validation) -> Spec:
    """The commands of a project without gates, as a spec in which nothing else is asked."""
    commands = [Command("", tuple(argv), Kind.TEST, minutes=row.minutes) for argv in row.commands]
    return Spec(tuple(commands), False, False, Coverage(False), E2E(False), Scope.RUN_LEVEL)


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
    facts: dict[str, Any] = {
        "base": together.base,
        "commit": together.commit,
        "merged": [asdict(one) for one in together.merged],
        "left_out": together.left_out,
        "results": others,
        "coverage": None,
        "e2e": None,
        "artifacts": {},
    }
    if not _ours(lab, row).update(**facts):
        raise Lost
    for name, value in facts.items():
        setattr(row, name, value)


class _Journal:
    """Keeps the results of a clean room with the validation, beside those of other attempts."""

    def __init__(self, lab: Lab, row: Validation, beat: _Beat) -> None:
        self._lab = lab
        self._row = row
        self._others = [one for one in row.results if one["attempt"] != row.attempt]
        self._beat = beat
        self.goes_on: Callable[[], bool] = beat

    def note(self, results: Sequence[Mapping[str, Any]], text: str = "") -> None:
        self._row.results = [*self._others, *map(dict, results)]
        self._beat.patiently(lambda: self._note(text))

    def _note(self, text: str) -> None:
        row = self._row
        with transaction.atomic():
            if not _ours(self._lab, row).update(results=row.results):
                raise Lost
            if text:
                _tell(self._lab, row, f"validation {row.number} runs {text}")


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

    def patiently(self, act: Callable[[], object]) -> None:
        """Do what writes, again while the database does not answer for some minutes."""
        row = self._row.pk
        database.patiently(self._lab, act, self._is_stopping, WAITS, validation=row)


def _ours(lab: Lab, row: Validation) -> Any:
    """The row, as long as it is running and this process works on this very attempt."""
    return Validation.objects.running().filter(
        pk=row.pk, runner=lab.process, attempt=row.attempt, losses=row.losses
    )


def _fix(row: Validation) -> Fixer | None:
    """The fixer whose branch this attempt is about; None of the session's own work."""
    return Fixer.objects.filter(validation=row, number=row.attempt).first() if row.attempt else None


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
    endings.tell(lab, row, NoticeKind.VALIDATION_STEP, text)
