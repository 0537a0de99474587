"""Validations as a watch session asks for them: begin one, see how it stands, call it off.

Whatever takes the place of the project's commands later keeps these verbs.
"""

from __future__ import annotations

import logging
from typing import Any

from django.db import transaction
from django.db.models import Max

from runs.core import lease, tokens
from runs.core.ports import Lab, Output, SeamError
from runs.core.refusal import ActRefused
from runs.core.states import NoticeKind, Outcome, ProjectState, ValidationState, ValidationStep
from runs.hosts import facts
from runs.models import Project, Run, Validation, WatchSession
from runs.validation import endings, fixers, rules, run_level
from runs.validation.rules import RepeatFacts, Verdict

logger = logging.getLogger(__name__)

MOST_LOSSES = 2


class CheckRefused(ActRefused):
    """Nothing was begun; the text says why."""


def begin(lab: Lab, session: WatchSession) -> Validation:
    """Begin the validation of a session at its count; safe to repeat.

    Called in the transaction that stores the session as *validating*. The session has its answer
    by `endings.answer`: here already when there is nothing to check. It never validates twice
    at one count.
    """
    rows = session.validations.select_for_update(of=("self",)).select_related("project")
    row = rows.filter(count=session.completed).first()
    if row is None:
        number = (session.validations.aggregate(last=Max("number"))["last"] or 0) + 1
        fields = {"session": session, "number": number, "count": session.completed}
        fields["host"] = lab.host
        row = _store(lab, session.project, fields, f"with {session.completed} completed")
    return _asked(lab, row)


def validate_again(lab: Lab, session: WatchSession, by: str) -> Validation:
    """Begin another validation of an ended session whose newest one failed; the one at work, if one is.

    No agent mends what it finds. When it passes, the issues are closed that wait for it. Safe to
    repeat and to race. Raises CheckRefused.
    """
    with transaction.atomic():
        Project.objects.hold(session.project_id)
        session = WatchSession.objects.select_related("project").get(pk=session.pk)
        newest = latest(session)
        if newest is not None and newest.is_running and not session.is_open:
            return newest
        project = session.project
        state = ProjectState(project.state)
        why = rules.refuse_repeat(
            RepeatFacts(
                session.is_open,
                ValidationState(newest.state) if newest else None,
                "" if state is ProjectState.READY else state.not_ready,
                project.has_gates or bool(project.commands),
            )
        )
        if newest is None or why:
            raise CheckRefused(why, code="nothing_to_validate")
        fields = {"session": session, "number": newest.number + 1, "count": session.completed}
        fields["host"] = facts.carrier(lab, project, newest.host)
        return _asked(lab, _store(lab, project, fields, "again", by=by))


def begin_for_run(lab: Lab, run: Run) -> Validation:
    """Begin the run level of an accepted run that no watch session started; safe to repeat.

    Called in the transaction that stores its outcome, and by nobody at the same time. It is about
    that run alone and is told on its timeline; no agent mends it.
    """
    row = run.validations.select_related("project", "run").order_by("-number").first()
    if row is None:
        fields = {"run": run, "number": 1, "count": 1, "host": _host_of(lab, run)}
        row = _store(lab, run.project, fields, f"for issue {run.issue_key}")
    return _asked(lab, row)


def begin_again_for_run(lab: Lab, run: Run, by: str) -> Validation:
    """Begin another run level of an accepted run, whatever became of the one before.

    The caller holds the project and has seen that none of this run is at work; the database refuses
    a second one.
    """
    last = run.validations.aggregate(last=Max("number"))["last"] or 0
    fields = {"run": run, "number": last + 1, "count": 1, "host": _host_of(lab, run)}
    return _asked(lab, _store(lab, run.project, fields, f"for issue {run.issue_key}", by=by))


def check_delivery(lab: Lab, project: Project, branch: str, by: str) -> Validation:
    """Begin to run the project's commands on what a branch delivers; the validation at work, if one is.

    Safe to repeat and to race. Raises CheckRefused.
    """
    with transaction.atomic():
        Project.objects.hold(project.pk)
        rows = Run.objects.filter(project=project, branch=branch, outcome=Outcome.SUCCEEDED)
        run = rows.select_related("project").order_by("-pk").first()
        if run is None:
            raise CheckRefused(f"No run delivered {branch}. Nothing was begun.", code="no_run")
        newest = run.validations.order_by("-number").first()
        if newest is not None and newest.is_running:
            return newest
        if run.project.state != ProjectState.READY:
            text = f"{ProjectState(run.project.state).not_ready} Nothing was begun."
            raise CheckRefused(text, code="not_ready")
        if run.project.has_gates or not run.project.commands:
            text = "This project has no validation commands, or uses gates. Nothing was begun."
            raise CheckRefused(text, code="no_commands")
        return begin_again_for_run(lab, run, by=by)


def _host_of(lab: Lab, run: Run) -> str:
    """What a run left is on its own host."""
    return facts.carrier(lab, run.project, run.host)


def _asked(lab: Lab, row: Validation) -> Validation:
    """Have it carried out, or let it answer at once when there is nothing to carry out."""
    if not row.is_running:
        endings.answer(lab, row, ValidationState(row.state))
        return row
    found = row
    transaction.on_commit(lambda: lab.queue.on(found.host).validate(found.pk), robust=True)
    return row


def interrupt(lab: Lab, session: WatchSession) -> bool:
    """A person aborted: call off the validation; safe to repeat.

    Its commands and its fixer are told to end, and killed a second later. There is no answer.
    """
    return _call_off(lab, session, by=session.asked_by)


def kill(lab: Lab, session: WatchSession) -> bool:
    """End what the validation runs at once; it has no answer then."""
    return _call_off(lab, session, by=session.asked_by)


def latest(session: WatchSession) -> Validation | None:
    """The newest validation of a session."""
    return session.validations.order_by("-number").first()


def printed(lab: Lab, row: Validation, name: str, start: int, limit: int) -> Output | None:
    """What the command whose result has this name printed by now; None when there is none.

    The file of one of its two outputs is a name too. From byte `start` on, a negative one counts from the end. Secrets are out of it already.
    """
    names = ("name", "stdout", "stderr")
    if not name or not any(one.get(key) == name for one in row.results for key in names):
        return None
    return lab.checks.output(row.folder(lab.paths), name, start, limit)


def _call_off(lab: Lab, session: WatchSession, by: str) -> bool:
    row = session.validations.running().select_related("project").first()
    if row is None:
        return False
    why = Verdict(ValidationState.CANCELLED, f"interrupted by {by}" if by else "interrupted")
    if not endings.close(lab, row, why, by=by):
        return False
    if lease.is_here(lab, row.host):
        try:
            lab.checks.end(row.mark)
        except SeamError as error:
            logger.warning("a command was not ended yet", extra={"error": str(error)})
        endings.settle(lab, row)
    return True


def tend(lab: Lab) -> None:
    """Find again what nobody works on, bring fixers further, finish what is half tidied."""
    for row in Validation.objects.filter(host=lab.host, settled_at=None).select_related(
        "project__agent", "run"
    ):
        try:
            _tend_one(lab, row)
        except Exception:
            logger.exception("validation was left for the next look", extra={"validation": row.pk})


def _tend_one(lab: Lab, row: Validation) -> None:
    is_due = row.not_before is None or row.not_before <= lab.now()
    if not row.is_running:
        if is_due:
            endings.settle(lab, row)
    elif row.step == ValidationStep.FIXING:
        fixers.tend(lab, row)
    elif row.runner:
        _recover(lab, row)
    elif is_due:
        lab.queue.on(row.host).validate(row.pk)


def _recover(lab: Lab, row: Validation) -> None:
    """A validation whose process is gone is run again once, and then it has failed.

    One that a living process let go without a word is only run again.
    """
    if endings.is_worked_on(lab, row):
        return
    alive = lab.is_process_alive(row.runner)
    mine = Validation.objects.running().filter(pk=row.pk, runner=row.runner, losses=row.losses)
    losses = row.losses + 1
    if not mine.update(runner="", losses=losses):
        return
    row.refresh_from_db()
    if alive or losses < MOST_LOSSES:
        lab.queue.on(row.host).validate(row.pk)
        return
    why = "labsite was ended twice while the commands ran"
    endings.close(lab, row, rules.verdict(row.commands, [], trouble=why))
    endings.settle(lab, row)


def _store(
    lab: Lab, project: Project, fields: dict[str, Any], words: str, by: str = ""
) -> Validation:
    """A new row of a session or a run, with the commands and terms of this moment."""
    spec = run_level.spec_of(project, fields.get("session"))
    commands = project.commands if spec is None else run_level.argvs(spec)
    if spec is not None:
        nothing = run_level.nothing(spec)
    else:
        nothing = None if commands else rules.verdict([], [])
    now = lab.now()
    with transaction.atomic():
        row = Validation.objects.create(
            project=project,
            state=nothing.state if nothing else ValidationState.RUNNING,
            reason=nothing.reason if nothing else "",
            commands=commands,
            spec=spec,
            minutes=project.check_minutes,
            most_fixers=project.fix_attempts if "session" in fields and not by else 0,
            asked_by=by,
            mark=tokens.new_mark(),
            began_at=now,
            ended_at=now if nothing else None,
            settled_at=now if nothing else None,
            **fields,
        )
        kind = NoticeKind.VALIDATION_ENDED if nothing else NoticeKind.VALIDATION_BEGAN
        began = f"validation {row.number} began, {words}"
        text = f"validation {row.number}: {nothing.reason}" if nothing else began
        endings.tell(lab, row, kind, text, by=by)
    return row
