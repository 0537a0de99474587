"""Remembers what trackers told of ready issues and pull requests, so that pages ask nobody.

Hints only: whatever starts or ends something asks anew.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from django.db import DatabaseError, transaction
from django.db.models import F, Q, QuerySet

from runs.core import naming
from runs.core.ports import Lab, SeamError
from runs.core.states import NoticeKind, ProjectState, TrackerKind
from runs.dispatch.eligibility import Candidate, Queue
from runs.forges import cadence, fan_out, tracker_health
from runs.forges.fan_out import Silence
from runs.models import Project, Run, Settings, WatchSession
from runs.timeline import announce
from trackers.base import Ability, Issue, Pull, PullState, best_pull

logger = logging.getLogger(__name__)

MOST = 30
TITLE = 200
URL = 500
STALE = timedelta(seconds=10)
SERVED = timedelta(minutes=2)
COLUMNS = ("queue_seen", "queue_count", "queue_seen_at", "queue_asked_at", "changed_at")


def keep_queues(
    lab: Lab, projects: Collection[Project], queues: Sequence[Queue], began: datetime
) -> None:
    """Keep the ready issues of trackers that have to be waited for; one statement, or none.

    `began` is when they were asked: a hook that came since then wakes once more.
    While nothing of a project runs, its warning follows from here; else the judge minds it, if
    it asks the tracker at all.
    """
    by_id = {project.pk: project for project in projects}
    changed = []
    for queue in queues:
        project = by_id[queue.project]
        if not cadence.is_remote(lab, project):
            continue
        silence = Silence(queue.tracker_error, queue.asked_again_at, passes=queue.tracker_passes)
        _take_down(lab, project, silence if queue.ready is None else queue.ready, began)
        if not queue.active or cadence.is_without_pulls(lab, project):
            tracker_health.note(lab, project, silence if queue.ready is None else None)
        changed.append(project)
    if changed:
        Project.objects.bulk_update(changed, COLUMNS)


def keep_pulls(lab: Lab, project: Project, pulls: Sequence[Pull], began: datetime) -> None:
    """Keep the open pull requests of branches that labsite manages; a merged or closed one leaves.

    Those that somebody closed unmerged are kept apart, whatever the tracker.
    """
    note_closed(lab, project, pulls)
    if not cadence.is_remote(lab, project):
        return
    keep_states(project, pulls)
    listed = [_shown(pull) for pull in pulls if _waits(project, pull)]
    Project.objects.filter(pk=project.pk).update(
        pulls_seen=sorted(listed, reverse=True)[:MOST], pulls_seen_at=began, pulls_asked_at=began
    )


def note_pulls(
    lab: Lab, project: Project, heads: Collection[str], pulls: Sequence[Pull], began: datetime
) -> None:
    """What the judge saw of some branches: an open pull request waits for a review from now on."""
    keep_states(project, pulls)
    if not cadence.is_remote(lab, project):
        return
    others = [one for one in project.pulls_seen if one[1] not in heads]
    mine = [_shown(pull) for pull in pulls if _waits(project, pull)]
    listed = sorted([*others, *mine], reverse=True)[:MOST]
    has_left = {one[0] for one in project.pulls_seen} - {one[0] for one in listed}
    # Whether one that left was merged or closed is told by a look at all of ours.
    project.pulls_seen, project.pulls_asked_at = listed, None if has_left else began
    Project.objects.bulk_update([project], ["pulls_seen", "pulls_asked_at"])
    if has_left:
        lab.queue.refresh(project.pk)


def keep_states(project: Project, pulls: Sequence[Pull]) -> None:
    """Keep on runs what became of their pull requests; writes only what is new."""
    states = {one.number: one.state for one in pulls}
    rows = Run.objects.filter(project=project, pull_number__in=states)
    for run, number, state in rows.values_list("pk", "pull_number", "pull_state"):
        if number is not None and state != states[number]:
            Run.objects.filter(pk=run).update(pull_state=states[number])


def refresh(lab: Lab, project_id: int) -> None:
    """Ask for the ready issues and the pull requests of one project, as far as that is due.

    An ordinary task, for projects that nothing is started in by itself. Safe to repeat.
    """
    project = Project.objects.filter(pk=project_id, state=ProjectState.READY).first()
    if project is None or not cadence.is_remote(lab, project):
        return
    settings = Settings.current()
    is_live = Run.objects.active().filter(project=project).exists()
    # Asked here, its queue would not be due any more when a session comes that may start something.
    polls = Q(next_poll_at__gt=lab.now() - SERVED) | Q(next_poll_at=None, look_at=None)
    is_served = _sessions(project_id).filter(polls).exists()
    if not is_served and cadence.is_due(lab, settings, project, is_live=is_live):
        _refresh_queue(lab, project, is_live=is_live)
    if cadence.are_pulls_due(lab, settings, project):
        _refresh_pulls(lab, project)


def look_at(lab: Lab, project_id: int) -> None:
    """Somebody opens a project: have what is old asked for again, and wait for nothing.

    Never raises for a database that does not store it: the page is shown nevertheless.
    """
    try:
        _look_at(lab, project_id)
    except (DatabaseError, sqlite3.Error) as error:  # the queue of tasks is SQLite's own
        logger.warning("an opened project was not noted", extra={"error": str(error)})


def _look_at(lab: Lab, project_id: int) -> None:
    now = lab.now()
    stale = Q(queue_asked_at=None) | Q(queue_asked_at__lt=now - STALE)
    rows = _remote().filter(stale, pk=project_id)
    slug = rows.values_list("slug", flat=True).first()
    if slug is None:
        return
    rows.update(kicked_at=now, watched_at=now)
    lab.queue.refresh(project_id)
    # One that is not answered asks at its own pace: pages would use its few tries up.
    asleep = _sessions(project_id).filter(next_poll_at__gt=now, poll_failures=0)
    if asleep.update(look_at=None, next_poll_at=None, version=F("version") + 1):
        lab.bell.look(slug)


def watch(lab: Lab, about: Q) -> None:
    """Somebody has a page of such a project open: it is asked about every 45 seconds from now on."""
    _remote().filter(about).update(watched_at=lab.now())


def ask(lab: Lab) -> None:
    """Ask for a refresh of every project whose tracker has to be waited for."""
    for pk in _remote().values_list("pk", flat=True):
        lab.queue.refresh(pk)


def _sessions(project_id: int) -> QuerySet[WatchSession]:
    return WatchSession.objects.open().filter(project=project_id)


def _remote() -> QuerySet[Project]:
    """Projects whose tracker has to be waited for, as far as its kind tells."""
    return Project.objects.usable().exclude(tracker__in=["", TrackerKind.BUILTIN])


def _refresh_queue(lab: Lab, project: Project, *, is_live: bool) -> None:
    root, began = (project.tracker, project.tracker_root), lab.now()
    found = fan_out.ask_roots(
        lab, {root: project.ready_label}, lambda one, some: one.queues(some)
    ).get(root, Silence(""))
    _take_down(lab, project, found, began)
    Project.objects.bulk_update([project], COLUMNS)
    if not is_live or cadence.is_without_pulls(lab, project):
        tracker_health.note(lab, project, found if isinstance(found, Silence) else None)
    lab.bell.timeline()


def _take_down(
    lab: Lab, project: Project, found: Sequence[Issue | Candidate] | Silence, began: datetime
) -> None:
    """What was heard, on the object; the columns are for the caller to store."""
    project.queue_asked_at = began
    if isinstance(found, Silence):
        return
    listed = [[one.key, one.title[:TITLE], one.url[:URL]] for one in found[:MOST]]
    if listed != project.queue_seen:
        project.changed_at = began
    project.queue_seen = listed
    project.queue_count, project.queue_seen_at = len(found), lab.now()


def _refresh_pulls(lab: Lab, project: Project) -> None:
    tracker = lab.tracker_for(project.tracker)
    if tracker is None or Ability.PULLS not in tracker.abilities:
        return
    began = lab.now()
    try:
        claims = [
            naming.branch_for(key, prefix)
            for prefix in project.claim_prefixes
            for key in lab.repos.claims(project.repo(lab.paths), project.keys, prefix)
        ]
    except SeamError as error:
        logger.info("claims were not listed", extra={"error": str(error)})
        return
    if not claims:
        keep_pulls(lab, project, [], began)
        return
    root = (project.tracker, project.tracker_root)
    heads = {root: sorted(claims)}
    found = fan_out.ask_roots(lab, heads, lambda one, some: one.pulls(some))
    pulls = found.get(root, Silence(""))
    if not isinstance(pulls, Silence):
        keep_pulls(lab, project, pulls, began)
        lab.bell.timeline()


def note_closed(lab: Lab, project: Project, pulls: Sequence[Pull]) -> None:
    """Keep which of these were closed without merging while their branch still claims the issue.

    `pulls` are all of the branches that claim issues, in any state. What is new is told once.
    """
    delivered = _delivered(project, {one.head for one in pulls})
    found = (best_pull(pulls, head) for head in sorted(delivered))
    closed = [one for one in found if one is not None and one.state is PullState.CLOSED]
    rows = [_shown(one) for one in closed if one.number == delivered[one.head]][:MOST]
    before = {entry[0] for entry in project.pulls_closed}
    if rows == project.pulls_closed:
        return
    project.pulls_closed = rows
    with transaction.atomic():
        Project.objects.filter(pk=project.pk).update(pulls_closed=rows)
        for number, head, *_ in rows:
            if number not in before:
                text = f"pull request {number} of {head} was closed without merging"
                announce.tell(lab, NoticeKind.PULL_CHANGED, text, project=project)


def keep_closed(lab: Lab, project: Project, branches: Collection[str]) -> None:
    """Forget what no branch claims any more; `branches` are those that are parked now."""
    before = Project.objects.values_list("pulls_closed", flat=True).get(pk=project.pk)
    rows = [entry for entry in before if entry[1] in branches]
    if rows != before:
        project.pulls_closed = rows
        Project.objects.filter(pk=project.pk).update(pulls_closed=rows)
        lab.bell.timeline()


def _delivered(project: Project, heads: Collection[str]) -> Mapping[str, int]:
    """The pull request with which the newest run of each branch ended; none while it works."""
    rows = Run.objects.filter(project=project, branch__in=heads).order_by("pk")
    newest = {
        branch: number if outcome else None
        for branch, number, outcome in rows.values_list("branch", "pull_number", "outcome")
    }
    return {branch: number for branch, number in newest.items() if number is not None}


def _waits(project: Project, pull: Pull) -> bool:
    is_ours = naming.is_managed(pull.head, project.managed_prefixes)
    return pull.state is PullState.OPEN and not pull.is_fork and is_ours


def _shown(pull: Pull) -> list[object]:
    return [pull.number, pull.head[:TITLE], pull.title[:TITLE], pull.url[:URL]]
