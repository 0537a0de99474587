"""Runs a project's commands after a run, and before its worktree is removed, as a job of the worker.

What they gave is kept on the run (`setup_after`, `setup_removal`), each `{"is_over": bool, "results":
[entry, …]}`, empty until they are asked for. They are run once; one that fails is told, and changes
nothing else. Killed in the middle, those that have not ended are run again, once.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.db import transaction

from runs.core import database
from runs.core.database import NO_DATABASE
from runs.core.ports import Lab, SeamError
from runs.core.states import JobKind, NoticeKind
from runs.jobs import runner as jobs
from runs.jobs.recovery import Handler
from runs.jobs.rules import Limits
from runs.jobs.runner import HeldJob, JobSpec, LostError
from runs.models import Discarding, Job, Project, Run
from runs.setup import commands
from runs.setup.commands import AFTER, REMOVAL, Stage
from runs.telemetry import log_context
from runs.timeline import announce
from runs.validation.command_rules import shown

logger = logging.getLogger(__name__)

SPEC = JobSpec(
    JobKind.AFTER_RUN,
    lambda queue, number: queue.after_run(number),
    limits=Limits(most_losses=2, forgives_living=True, time_to_leave=timedelta(0)),
)
STAGES = (AFTER, REMOVAL)
MARGIN = timedelta(hours=1)  # a worker may have no room for it at once
UNCHANGED = "Its outcome and its work are as they were."
LOST_TWICE = "labsite was ended twice while they ran"


def are_over(lab: Lab, run: Run, stage: Stage) -> bool:
    """Return whether there is nothing to wait for; what was not run yet is asked for. Safe to repeat.

    Only on the host of the run, and for a worktree in which an agent has worked.
    """
    kept = getattr(run, stage.name)
    if kept is None and not _has_work(lab, run, stage):
        return True
    if kept is not None and kept["is_over"]:
        return True
    begun = {"is_over": False, "results": []}
    with transaction.atomic():
        rows = Run.objects.filter(pk=run.pk, **{f"{stage.name}__isnull": True})
        if kept is None and rows.update(**{stage.name: begun}):
            setattr(run, stage.name, begun)
        until = commands.longest(run.project, stage) + MARGIN
        jobs.request(lab, SPEC, run.pk, host=run.host, project=run.project_id, deadline=until)
    return False


def find_unprepared(lab: Lab, project: Project, branch: str) -> Run | None:
    """Return the run of a branch whose worktree has commands to run before it is removed, if any."""
    if not commands.list_commands(project, REMOVAL):
        return None
    rows = Run.objects.filter(project=project, branch=branch).exclude(worktree="")
    run = rows.select_related("project").order_by("pk").last()
    if run is None:
        return None
    is_asked = run.setup_removal is not None
    waits = _is_pending(run, REMOVAL) if is_asked else _has_work(lab, run, REMOVAL)
    return run if waits else None


def is_clearing(run: Run) -> bool:
    """Return whether commands before removal run in the worktree of a run, or wait for the worker."""
    rows = Run.objects.filter(project=run.project_id, branch=run.branch)
    return rows.filter(setup_removal__is_over=False).exists()


def _has_work(lab: Lab, run: Run, stage: Stage) -> bool:
    if not run.did_start or run.is_adopted or not run.worktree or run.host != lab.host:
        return False
    return bool(commands.list_commands(run.project, stage)) and Path(run.worktree).is_dir()


def carry_out(lab: Lab, run_id: int, is_stopping: Callable[[], bool] = lambda: False) -> None:
    """Run what was asked for of a run. Safe to call twice.

    Once this process `is_stopping` the command is ended and the job let go, to be begun again.
    """
    with transaction.atomic():
        job = jobs.claim(lab, JobKind.AFTER_RUN, run_id)
        if job is None:
            return
        run = Run.objects.select_related("project__forge").get(pk=run_id)
    rows = Run.objects.filter(pk=run_id)
    with (
        HeldJob(lab, SPEC, job, rows, is_stopping) as held,
        log_context.about(**log_context.of(run)),
    ):
        try:
            _go_through(lab, run, held)
        except LostError:
            logger.info("commands after a run were taken away", extra={"run_id": run_id})
        except NO_DATABASE as error:
            logger.warning("commands after a run were not stored", extra={"error": str(error)})
            database.renew_connection()
        with contextlib.suppress(*NO_DATABASE):
            held.release()


def _go_through(lab: Lab, run: Run, held: HeldJob) -> None:
    for stage in STAGES:
        if not _is_pending(run, stage):
            continue
        why = ""
        try:
            lab.checks.end(_mark(lab, run))  # what a killed predecessor left running
            _run_stage(lab, run, stage, held)
        except SeamError as error:
            why = str(error)
        except (LostError, *NO_DATABASE):
            raise
        except Exception as error:
            logger.exception("commands after a run failed by a mistake of ours")
            why = f"labsite made a mistake ({type(error).__name__}); it is in its log"
        with held.guard():
            _close(lab, run, stage, why)
    with contextlib.suppress(LostError):
        held.finish()
    _go_on(lab, run)


def _run_stage(lab: Lab, run: Run, stage: Stage, held: HeldJob) -> None:
    """Run each command that has not ended yet, whatever the others gave."""
    wanted = commands.list_commands(run.project, stage)
    if stage is AFTER:  # a run that began before labsite made such folders has none
        lab.sessions.make_temporary(lab.paths.temporary_folder(run.pk))
    ended = [one for one in getattr(run, stage.name)["results"] if not one["is_running"]]
    for number, argv in list(enumerate(wanted, start=1))[len(ended) :]:
        entry = commands.begin_entry(lab, stage, argv, number)
        what = shown(argv)[: commands.COMMAND_CHARACTERS]
        with held.guard():
            _store(run, stage, held, [*ended, entry])
            text = f"{stage.words} {number} of {len(wanted)}: {what}"
            announce.tell(lab, NoticeKind.RUN_STEP, text, run=run)
        found = commands.run_one(lab, run, entry, _mark(lab, run), held.is_held)
        if found.is_given_up:
            raise LostError
        ended.append({**entry, **commands.store_result(found), "is_running": False})
        _store(run, stage, held, ended)


def _store(run: Run, stage: Stage, held: HeldJob, results: Sequence[Mapping[str, Any]]) -> None:
    kept = {"is_over": False, "results": list(results)}
    held.store(**{stage.name: kept})
    setattr(run, stage.name, kept)


def _close(lab: Lab, run: Run, stage: Stage, trouble: str = "") -> None:
    """End a stage in the caller's transaction, and tell what failed."""
    kept = {**getattr(run, stage.name), "is_over": True}
    Run.objects.filter(pk=run.pk).update(**{stage.name: kept})
    setattr(run, stage.name, kept)
    failed = [commands.describe_failure(one) for one in kept["results"] if not one["is_running"]]
    why = "; ".join([one for one in failed if one] + ([trouble] if trouble else []))
    if why:
        text = f"commands {stage.words}: {why}. {UNCHANGED}"
        announce.tell(lab, NoticeKind.RUN_WARNED, text, run=run)
    else:
        count = len(kept["results"])
        text = f"commands {stage.words}: {count} passed"
        announce.tell(lab, NoticeKind.RUN_STEP, text, run=run)


def _go_on(lab: Lab, run: Run) -> None:
    """Wake whoever waits for the commands: the next look at the run, and discards of its branch."""
    lab.bell.look(run.project.slug)
    rows = Discarding.objects.filter(project=run.project, branch=run.branch, error="", process="")
    for pk in rows.values_list("pk", flat=True):
        lab.queue.discard(pk)


def _is_pending(run: Run, stage: Stage) -> bool:
    kept = getattr(run, stage.name)
    return kept is not None and not kept["is_over"]


def _mark(lab: Lab, run: Run) -> str:
    """The mark of its processes: not the run's own, by which its session is ended meanwhile."""
    text = f"{lab.paths.state} after run {run.pk}"
    return f"lab-{hashlib.sha256(text.encode()).hexdigest()[:24]}"


def _read(numbers: Sequence[int]) -> Mapping[int, Run]:
    return Run.objects.select_related("project").in_bulk(numbers)


def _close_if_over(lab: Lab, run: Run, is_worked_on: bool) -> bool:
    if is_worked_on or any(_is_pending(run, stage) for stage in STAGES):
        return False
    jobs.finish(lab, JobKind.AFTER_RUN, run.pk)
    return True


def _tell_loss(lab: Lab, run: Run) -> None:
    text = "labsite was ended while commands after the run ran; they are run again"
    announce.tell(lab, NoticeKind.RUN_STEP, text, run=run)


def _give_up(lab: Lab, run: Run, job: Job) -> None:
    is_late = job.deadline is not None and job.deadline <= lab.now()
    late = "they took too long and were ended" if job.token else "no worker had room for them"
    why = late if is_late else LOST_TWICE
    jobs.finish(lab, JobKind.AFTER_RUN, run.pk)
    for stage in STAGES:
        if _is_pending(run, stage):
            _close(lab, run, stage, why)
    transaction.on_commit(lambda: lab.checks.end(_mark(lab, run)), robust=True)
    transaction.on_commit(lambda: _go_on(lab, run), robust=True)


HANDLER = Handler(SPEC, _read, _close_if_over, _tell_loss, _give_up)
