"""What the tracker is told of work that went through the gates: closed by labsite, never on an
agent's word alone, or marked for follow-up where the gates failed for the last time.

Noted on the run first and done later, as often as it takes: nothing waits for a tracker.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import OuterRef, Q, QuerySet, Subquery

from runs.core.effects import RunEnd, ValidationEnd
from runs.core.ports import Lab, SeamError
from runs.core.states import AttemptState, NoticeKind, Outcome, TrackerKind, ValidationState
from runs.forges import mirror, quota
from runs.forges.mirror_rules import FOLLOW_UP
from runs.issues import acts as issues
from runs.issues import remote
from runs.lifecycle.querysets import TO_TELL
from runs.models import Attempt, Run, Validation
from runs.projects import git_credentials, origin
from runs.pulls.rules import Way
from runs.telemetry import log_context
from runs.timeline import announce
from runs.validation import acts as validation_acts
from runs.validation.specs import Switch
from trackers.base import Ability, NotFound, RateLimited, Refused, TrackerError

logger = logging.getLogger(__name__)

AGAIN_AFTER = timedelta(minutes=1)
AT_ONCE = 20
BY = "labsite"


def request_closing(lab: Lab, run: Run, attempt: Attempt) -> None:
    """Request that an accepted run's issue is closed: after the run level, or now where that is turned off.

    Called in the transaction of the outcome. A run of a watch session waits for the session's.
    """
    if Switch.RUN_LEVEL in attempt.spec.get("off", ()):
        Run.objects.filter(pk=run.pk, close_asked_at=None).update(close_asked_at=lab.now())
    elif run.watch_id is None:
        validation_acts.begin_for_run(lab, run)


def push_accepted_commit(lab: Lab, run: Run) -> None:
    """Push the accepted commit to origin where it is not yet there; nothing there is overwritten.

    Raises SeamError, also where somebody else's commits or a deletion stand against it.
    """
    project = run.project
    repo = project.repo(lab.paths)
    was_there = lab.repos.tip(repo, f"refs/remotes/origin/{run.branch}") is not None
    origin.freshen(lab, project)
    there = lab.repos.tip(repo, f"refs/remotes/origin/{run.branch}")
    base = lab.repos.upstream(repo, project.default_branch)
    if lab.repos.join(repo, base, run.accepted_commit).way is Way.HELD:
        return  # merged by somebody
    if there is None and was_there:
        raise SeamError(f"somebody deleted {run.branch} on origin, where it is not merged")
    way = lab.repos.join(repo, there, run.accepted_commit).way if there else Way.FORWARD
    if way is Way.HELD:
        return
    if way is not Way.FORWARD:
        raise SeamError(
            f"origin has other commits on {run.branch}, and nothing was forced over them"
        )
    token = git_credentials.of_git(lab, project)
    lab.repos.push_commit(repo, run.branch, run.accepted_commit, there or "", token, project.url)


def update_trackers(lab: Lab) -> None:
    """Tell the trackers what is still to be told; one query while there is nothing."""
    rows = find_due_updates(lab.host, lab.now()).order_by("pk")
    for pk in list(rows.values_list("pk", flat=True)[:AT_ONCE]):
        # Read at its turn: those before it took their time, and a person may have discarded it.
        run = rows.filter(pk=pk).select_related("project__forge").first()
        if run is None:
            continue
        try:
            with log_context.about(**log_context.of(run)):
                act = _close_issue if run.close_asked_at is not None else _mark_for_follow_up
                act(lab, run)
        except (TrackerError, SeamError) as error:
            _retry_later(lab, run, str(error))
        except Exception:
            logger.exception("tracker was not told", extra={"run_id": run.pk})
            _retry_later(lab, run, "labsite made a mistake, which its log holds")
        finally:
            quota.settle(lab)


def find_due_updates(host: str, now: datetime) -> QuerySet[Run]:
    """Return the runs of which the tracker is to be told something now."""
    due = Q(tracker_retry_at=None) | Q(tracker_retry_at__lte=now)
    return Run.objects.filter(TO_TELL, due, host=host)


def _close_issue(lab: Lab, run: Run) -> None:
    """The accepted commit is on origin before its issue is closed. Safe to repeat."""
    if run.outcome == Outcome.SUCCEEDED and run.accepted_commit:
        push_accepted_commit(lab, run)
        still = Run.objects.filter(pk=run.pk, accepted_commit=run.accepted_commit)
        if not still.filter(close_asked_at__isnull=False, closed_at=None).exists():
            return  # a person discarded the work while it was pushed
    project = run.project
    try:
        if project.tracker == TrackerKind.BUILTIN:
            issues.set_open(lab, project, int(run.issue_key), is_open=False, by=BY)
        else:
            remote.close(lab, project, run.issue_key, by=BY)
    except NotFound:
        logger.info("issue to close is gone", extra={"run_id": run.pk})
    with transaction.atomic():
        if Run.objects.filter(pk=run.pk, closed_at=None).update(closed_at=lab.now()):
            text = f"issue {run.issue_key} closed: {run.reason}"
            announce.tell(lab, NoticeKind.ISSUE_CLOSED, text, run=run, by=BY)


def _mark_for_follow_up(lab: Lab, run: Run) -> None:
    """Mark the issue for follow-up, with the reason and where its record is; it stays open."""
    project = run.project
    tracker = lab.tracker_for(project.tracker) if project.tracker else None
    words = (
        f"The gates did not pass, and this issue stays open: {run.reason}\n\n"
        f"The record of all attempts is under *Checks* of run {run.pk} in labsite."
    )
    now = lab.now()
    try:
        if tracker is not None and Ability.LABEL in tracker.abilities:
            mirror.put_label(tracker, project.tracker_root, run.issue_key, FOLLOW_UP)
        # Noted before it is written, so that no comment comes twice.
        won = Run.objects.filter(pk=run.pk, noted_at=None).update(noted_at=now)
        if won and tracker is not None and Ability.COMMENT in tracker.abilities:
            tracker.comment(project.tracker_root, run.issue_key, BY, words)
    except NotFound:
        logger.info("issue to note is gone", extra={"run_id": run.pk})
        Run.objects.filter(pk=run.pk, noted_at=None).update(noted_at=now)
    except (Refused, RateLimited):
        # Surely not written, other than where no usable answer came.
        Run.objects.filter(pk=run.pk, noted_at=now).update(noted_at=None)
        raise


def _retry_later(lab: Lab, run: Run, why: str) -> None:
    """Tried again in a minute; told once, not with each try."""
    was_told = run.tracker_retry_at is not None
    with transaction.atomic():
        Run.objects.filter(pk=run.pk).update(tracker_retry_at=lab.now() + AGAIN_AFTER)
        if not was_told:
            what = "closed" if run.close_asked_at is not None else "marked for follow-up"
            text = (
                f"issue {run.issue_key} could not be {what} yet: {lab.mask(why)}. It is tried again"
            )
            announce.tell(lab, NoticeKind.RUN_WARNED, text, run=run)


def request_follow_up_mark(lab: Lab, end: RunEnd) -> None:
    """Request that an issue is marked for follow-up whose agent died, or ran out of time, while it mended."""
    if end.outcome not in (Outcome.DIED, Outcome.TIMED_OUT, Outcome.FAILED):
        return
    rows = Run.objects.filter(pk=end.run_id, attempts__gte=1, note_asked_at=None)
    newest = Attempt.objects.filter(run=OuterRef("pk")).order_by("-number").values("state")[:1]
    # A mistake of ours is no word on the work.
    rows = rows.annotate(last=Subquery(newest)).filter(last=AttemptState.FAILED)
    rows.update(note_asked_at=lab.now())


def request_proven_closings(lab: Lab, end: ValidationEnd) -> None:
    """Request that the issues are closed that a run level which passed was about.

    Those are the runs that were accepted before it began, and put together for it.
    """
    if not end.passed:
        return
    row = Validation.objects.get(pk=end.validation_id)
    if row.state == ValidationState.NOTHING and row.spec is None:
        return  # the gates were turned off meanwhile: nobody said that nothing is to be proven
    accepted = (Outcome.SUCCEEDED, Outcome.NO_CHANGE, Outcome.OBSOLETE)
    rows = Run.objects.filter(outcome__in=accepted, close_asked_at=None, attempts__gte=1)
    rows = rows.exclude(outcome=Outcome.SUCCEEDED, accepted_commit="")  # a person discarded it
    if row.state != ValidationState.NOTHING:
        tips = [one["tip"] for one in row.merged]
        rows = rows.filter(~Q(outcome=Outcome.SUCCEEDED) | Q(accepted_commit__in=tips))
    if row.session_id is not None:
        rows = rows.filter(watch_id=row.session_id, ended_at__lte=row.began_at)
    else:
        rows = rows.filter(validations=row)
    rows.update(close_asked_at=lab.now())
