"""Writes on the tracker how a run stands, where a project wants that.

Best effort: it decides nothing, nobody waits for it, and what fails is told once on the run. Only
a tracker with a status of its own has a word before: `claim` is part of the start.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta

from django.db import transaction
from django.db.models import Q

from runs.core.ports import Lab
from runs.core.states import Mirror, NoticeKind, Outcome, RunState
from runs.forges import mirror_rules
from runs.forges.mirror_rules import FOLLOW_UP, Mirrored
from runs.models import Project, Run
from runs.projects import sending
from runs.timeline import announce
from trackers.base import Ability, NotFound, Refused, Tracker, TrackerError

logger = logging.getLogger(__name__)

CLAIMING, CLAIMED, WORKING, ENDED = "claiming", "claimed", "working", "ended"
AT_WORK = (RunState.WORKING, RunState.CHECKING, RunState.HELD)
LATELY = timedelta(days=1)
TEXT = 300


def ask(lab: Lab, run: Run) -> None:
    """Have it written how this run stands, once the change is stored."""
    if run.project.mirror != Mirror.OFF:
        transaction.on_commit(lambda: lab.queue.mirror(run.pk), robust=True)


def claim(lab: Lab, run: Run) -> bool:
    """Mark the issue before its agent starts, where the tracker has a status for that.

    Raises TrackerError when it refuses or fails: then the claim is not ours. It is noted before it
    is written, so that whoever rolls back knows of it. False when the run is no longer wanted.
    """
    tracker = _tracker(lab, run)
    if tracker is None or Ability.STATUS not in tracker.abilities:
        return True
    with sending.alone(lab, run.project, "mirror", run.issue_key):
        if not Run.objects.starting().filter(pk=run.pk).update(mirrored=CLAIMING):
            return False
        try:
            tracker.claim(run.project.tracker_root, run.issue_key)
        except (Refused, NotFound):
            Run.objects.filter(pk=run.pk).update(mirrored="")
            raise
        Run.objects.filter(pk=run.pk).update(mirrored=CLAIMED)
    return True


def claim_further(lab: Lab, run: Run) -> None:
    """The same for the issue that a run that works takes next; nothing where it was marked before.

    Safe to repeat: a mark that was noted, and not answered, is gone on with. Raises TrackerError.
    """
    tracker = _tracker(lab, run)
    if tracker is None or Ability.STATUS not in tracker.abilities:
        return
    root, key = run.project.tracker_root, run.issue_key
    rows = Run.objects.active().filter(pk=run.pk, issue_key=key)
    with sending.alone(lab, run.project, "mirror", key):
        noted = rows.values_list("mirrored", flat=True).first()
        if noted in (None, CLAIMED):
            return
        rows.update(mirrored=CLAIMING)
        try:
            if noted == CLAIMING:  # a claim would be refused because of our own mark
                tracker.set_status(root, key, True)
            else:
                tracker.claim(root, key)
        except (Refused, NotFound):
            rows.update(mirrored=ENDED)
            raise
        rows.update(mirrored=CLAIMED)


def write_end(lab: Lab, shown: Run, begin: Callable[[], bool]) -> None:
    """Write the end of an issue that its run has left, as `shown` has it, which nobody stores.

    `begin` notes that it is written, False: somebody else has. What fails is told on the run.
    """
    tracker = _tracker(lab, shown)
    if tracker is None:
        return
    try:
        with sending.alone(lab, shown.project, "mirror", shown.issue_key):
            if begin():
                _take(lab, tracker, shown, ENDED)
    except TrackerError as error:
        _tell(lab, shown, [str(error)])


def catch_up(lab: Lab, project: Project) -> None:
    """Ask again for the ends that were not written, as when the worker died before it could ask."""
    if project.mirror == Mirror.OFF:
        return
    ended = project.runs.exclude(outcome="").filter(ended_at__gte=lab.now() - LATELY)
    marks = [CLAIMING, CLAIMED, WORKING]
    of_loops = Q(loop__issues__mirrored__in=marks)
    unwritten = ended.filter(Q(mirrored__in=marks) | of_loops).values_list("pk", flat=True)
    for pk in unwritten.distinct():
        lab.queue.mirror(pk)


def carry_out(lab: Lab, run_id: int) -> None:
    """Write how a run stands now, if that was not written yet. Safe to repeat; never raises.

    It is noted before it is written, so that no comment comes twice.
    """
    run = Run.objects.select_related("project").filter(pk=run_id).first()
    tracker = _tracker(lab, run) if run is not None else None
    if run is None or tracker is None:
        return
    try:
        with sending.alone(lab, run.project, "mirror", run.issue_key):
            _write(lab, tracker, Run.objects.select_related("project").get(pk=run_id))
    except TrackerError as error:
        _tell(lab, run, [str(error)])
    except Exception as error:
        logger.exception("run was not mirrored", extra={"run_id": run.pk})
        _tell(lab, run, [f"labsite made a mistake ({type(error).__name__}); it is in the log"])


def _tracker(lab: Lab, run: Run) -> Tracker | None:
    """The tracker that is written on; None where nothing is."""
    project = run.project
    is_wanted = project.tracker and project.mirror != Mirror.OFF
    return lab.tracker_for(project.tracker) if is_wanted else None


def _write(lab: Lab, tracker: Tracker, run: Run) -> None:
    stands = _stands(run)
    if not stands or run.mirrored == stands:
        return
    if Run.objects.filter(pk=run.pk, mirrored=run.mirrored).update(mirrored=stands):
        _take(lab, tracker, run, stands)


def _take(lab: Lab, tracker: Tracker, run: Run, stands: str) -> None:
    """Take all steps, whichever fails; what fails is told on the run."""
    if run.mirrored == CLAIMING:
        _tell(lab, run, [mirror_rules.unclear(run.issue_key)])
        return
    failed = []
    for step in _steps(tracker, run, stands):
        try:
            step()
        except TrackerError as error:
            failed.append(str(error))
    if failed:
        _tell(lab, run, failed)


def _steps(tracker: Tracker, run: Run, stands: str) -> list[Callable[[], None]]:
    """What has to be written; of an agent that never started only that the issue is free again."""
    root, key = run.project.tracker_root, run.issue_key
    steps: list[Callable[[], None]] = []
    is_over = stands == ENDED and not _is_worked_on(run)
    if is_over or (stands == WORKING and run.mirrored != CLAIMED):
        is_working = stands == WORKING or _waits(tracker, run)
        steps.append(lambda: _mark(tracker, run, is_working=is_working))
    if not run.did_start:
        return steps
    if is_over and mirror_rules.needs_follow_up(run.outcome):
        steps.append(lambda: put_label(tracker, root, key, FOLLOW_UP))
    is_followed_up = run.outcome == Outcome.SUCCEEDED and run.continues_id is not None
    if is_followed_up and Ability.LABEL in tracker.abilities:
        steps.append(lambda: tracker.remove_label(root, key, FOLLOW_UP))
    if run.project.mirror == Mirror.COMMENTS and Ability.COMMENT in tracker.abilities:
        steps.append(lambda: tracker.comment(root, key, "labsite", mirror_rules.words(_told(run))))
    return steps


def _is_worked_on(run: Run) -> bool:
    """Whether another run of the issue is written down as at work; its own end undoes that."""
    others = Run.objects.active().filter(project=run.project_id, issue_key=run.issue_key)
    told = Q(state__in=AT_WORK) | Q(mirrored__in=[CLAIMING, CLAIMED])
    return others.exclude(pk=run.pk).filter(told).exists()


def _stands(run: Run) -> str:
    """What is to be read on the tracker; nothing of a run that neither claimed nor started."""
    if run.is_active:
        is_between = run.mirrored == ENDED  # its issue is done, and it looks for the next one
        return WORKING if run.state in AT_WORK and not is_between else ""
    return ENDED if run.did_start or run.mirrored else ""


def _waits(tracker: Tracker, run: Run) -> bool:
    """Whether what was delivered waits for somebody to close the issue, since no merge does.

    Marked as free, others who work by the tracker's status would do it once more.
    """
    return Ability.PULLS not in tracker.abilities and run.outcome == Outcome.SUCCEEDED


def _mark(tracker: Tracker, run: Run, *, is_working: bool) -> None:
    """The tracker's own status where it has one, else the project's working label."""
    root, key, label = run.project.tracker_root, run.issue_key, run.project.working_label
    if Ability.STATUS in tracker.abilities:
        tracker.set_status(root, key, is_working)
    elif label and is_working:
        put_label(tracker, root, key, label)
    elif label and Ability.LABEL in tracker.abilities:
        tracker.remove_label(root, key, label)


def put_label(tracker: Tracker, root: str, key: str, label: str) -> None:
    """Add a label, and make it where it is not there yet."""
    if Ability.LABEL not in tracker.abilities:
        return
    try:
        tracker.add_label(root, key, label)
    except Refused:
        if Ability.CREATE_LABEL not in tracker.abilities:
            raise
        tracker.create_label(root, label)
        tracker.add_label(root, key, label)


def _told(run: Run) -> Mirrored:
    ended = (run.exit_status, run.exit_signal)
    loop_code = run.exit_status if run.is_loop else None
    return Mirrored(run.pk, run.branch, run.outcome, run.pull_number, *ended, loop_code)


def _tell(lab: Lab, run: Run, failed: list[str]) -> None:
    text = f"the tracker was not told of this: {' '.join(failed)}"[:TEXT]
    logger.info("run was not mirrored", extra={"run_id": run.pk, "error": text})
    with transaction.atomic():
        announce.tell(lab, NoticeKind.RUN_STEP, text, run=run)
