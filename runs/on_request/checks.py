"""Commands that an agent has labsite run in its worktree: asked for, followed, called off, found again."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta

from django.db import IntegrityError, transaction

from runs.core import tokens
from runs.core.ports import Lab, Output, SeamError
from runs.core.refusal import ActRefused
from runs.core.states import JobKind, NoticeKind, RunState
from runs.jobs import runner as jobs
from runs.jobs.recovery import Handler
from runs.jobs.rules import Limits
from runs.jobs.runner import JobSpec
from runs.models import CheckRun, Job, Run
from runs.on_request import claims
from runs.timeline import announce
from runs.validation.specs import Command

logger = logging.getLogger(__name__)

CHECK_RUNS = JobSpec(
    JobKind.CHECK_RUN,
    lambda queue, number: queue.check_run(number),
    limits=Limits(most_losses=2, forgives_living=True, time_to_leave=timedelta(0)),
)
# What a check that runs has as its trouble once its process was lost.
BEGUN_AGAIN = "labsite was ended while the commands ran; they are run again"
CALLED_OFF = "it was called off (labctl check --stop)"
RUN_OVER = "its run has ended"
GATES_AT_WORK = "labsite checks the work itself now, and no proof is needed meanwhile"
_AGENT_WORKS = (RunState.STARTING, RunState.WORKING)


class CheckRefused(ActRefused):
    """Nothing is run; the text says why."""


def chosen(commands: Sequence[Command], names: Sequence[str]) -> list[Command]:
    """The commands of these names, in the project's order; all without names. Raises CheckRefused."""
    known = {one.name for one in commands}
    unknown = [name for name in names if name not in known]
    if unknown:
        text = f"There is no command {', '.join(one[:60] for one in unknown)} in this project. "
        text += (
            f"Its commands: {', '.join(one.name for one in commands) or 'none'}. Nothing was run."
        )
        raise CheckRefused(text, code="unknown_command")
    if not commands:
        text = "This project has no commands that could be run. Nothing was run."
        raise CheckRefused(text, code="no_commands")
    return [one for one in commands if not names or one.name in names]


def begin(lab: Lab, run: Run, names: Sequence[str], by: str) -> CheckRun:
    """Have commands of the project run in the worktree of a run; the worker carries it out.

    Asked again for the same while they run, it is the same. Raises CheckRefused.
    """
    if run.state not in _AGENT_WORKS:
        raise CheckRefused(_not_now(run), code="not_working")
    if not run.worktree:
        text = "This run has no worktree that labsite made, so nothing can be run in it."
        raise CheckRefused(text, code="no_worktree")
    commands = chosen(claims.spec_of(run).commands, names)
    wanted = json.loads(json.dumps([asdict(one) for one in commands]))
    row = _create(lab, run, wanted, by) or running(run) or _create(lab, run, wanted, by)
    if row is None or row.commands != wanted:
        text = (
            "Commands of this run are being run already. Wait until they have ended, or call "
            "them off: labctl check --stop"
        )
        raise CheckRefused(text, code="busy")
    return row


def running(run: Run) -> CheckRun | None:
    """What is being run, or waits for the worker."""
    return CheckRun.objects.filter(run=run, is_running=True).first()


def stop(lab: Lab, run: Run, by: str) -> bool:
    """The agent calls its commands off; False when nothing runs."""
    row = running(run)
    if row is None or not close(lab, row, CALLED_OFF):
        return False
    if run.host == lab.host:
        try:
            lab.checks.end(row.mark)
        except SeamError as error:  # whoever runs it ends it within a second
            logger.warning("a command was not ended yet", extra={"error": str(error)})
    return True


def printed(lab: Lab, row: CheckRun, number: int, start: int, limit: int) -> Output | None:
    """What the command of this number, from 0 on, printed from byte `start` on, without secrets."""
    if not 0 <= number < len(row.results) or not row.results[number]["name"]:
        return None
    name = str(row.results[number]["name"])
    return lab.checks.output(row.folder(lab.paths), name, start, limit)


def close(lab: Lab, row: CheckRun, trouble: str = "", *, tree: str = "") -> bool:
    """End a check, and its job, if nobody has; True when this call did."""
    with transaction.atomic():
        jobs.finish(lab, JobKind.CHECK_RUN, row.pk)
        won = CheckRun.objects.filter(pk=row.pk, is_running=True).update(
            is_running=False, trouble=trouble, tree=tree, ended_at=lab.now()
        )
        if won:
            row.refresh_from_db()
            announce.tell(lab, NoticeKind.GATE_STEP, f"labctl check: {told(row)}", run=row.run)
    return bool(won)


def has_begun(row: CheckRun) -> bool:
    """Whether a worker has taken it."""
    taken = Job.objects.unfinished().of(JobKind.CHECK_RUN, row.pk).exclude(owner="")
    return bool(row.results) or (row.is_running and taken.exists())


def told(row: CheckRun) -> str:
    """How an ended check went, in words."""
    if row.trouble:
        return f"not carried out: {row.trouble}"
    failed = [one for one in row.results if is_failure(one)]
    empty = [f"{one['command']} {one['no_tests']}" for one in failed if one.get("no_tests")]
    red = ", ".join(str(one["command"]) for one in failed if not one.get("no_tests"))
    names = ", ".join(str(one["command"]) for one in row.results)
    return "; ".join([*([f"{red} failed"] if red else []), *empty]) or f"{names} passed"


def is_failure(result: dict[str, object]) -> bool:
    """Whether a command failed that may not. One that is to run tests and ran none has failed."""
    is_red = result["status"] != 0 or bool(result.get("no_tests"))
    return is_red and not result["allow_fail"] and not result["skipped"]


def _read(numbers: Sequence[int]) -> Mapping[int, CheckRun]:
    return CheckRun.objects.select_related("run__project").in_bulk(numbers)


def _close_if_over(lab: Lab, row: CheckRun, _is_worked_on: bool) -> bool:
    why = _why_over(row.run)
    if row.is_running and not why:
        return False
    if close(lab, row, why):
        lab.checks.end(row.mark)
    return True


def _tell_loss(_lab: Lab, row: CheckRun) -> None:
    CheckRun.objects.filter(pk=row.pk, is_running=True).update(trouble=BEGUN_AGAIN)


def _give_up(lab: Lab, row: CheckRun, _job: Job) -> None:
    if close(lab, row, "labsite was ended twice while the commands ran; run it again"):
        transaction.on_commit(lambda: lab.checks.end(row.mark), robust=True)


# One whose process is gone is begun again once; one that a living one let go, each time.
HANDLER = Handler(CHECK_RUNS, _read, _close_if_over, _tell_loss, _give_up)


def _why_over(run: Run) -> str:
    """Why nothing is to be run any more for a run; empty while its agent works."""
    if run.outcome or run.state == RunState.HELD:
        return RUN_OVER
    # What has not ended by now is no evidence, and commands of the gates would wait for it.
    return GATES_AT_WORK if run.state == RunState.CHECKING else ""


def _create(lab: Lab, run: Run, wanted: list[dict[str, object]], by: str) -> CheckRun | None:
    """None when one runs, which the database decides."""
    try:
        with transaction.atomic():
            row = CheckRun.objects.create(
                run=run,
                host=run.host,
                commands=wanted,
                mark=tokens.new_mark(),
                asked_at=lab.now(),
            )
            names = ", ".join(str(one["name"]) for one in wanted)
            text = f"labctl check: {names} asked for"
            announce.tell(lab, NoticeKind.GATE_STEP, text, run=run, by=by)
            jobs.request(lab, CHECK_RUNS, row.pk, host=row.host, project=run.project_id)
    except IntegrityError:
        return None
    return row


def _not_now(run: Run) -> str:
    if run.state == RunState.CHECKING:
        return f"{claims.being_checked(run)}. Nothing was run."
    return "The session of this run is over, so nothing is run in its worktree."
