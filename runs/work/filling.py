"""Fills free slots with automatic work: the second half of the launch pass, after all requests."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError
from django.db.models import Exists, F, OuterRef, Q

from runs.domain import launching, streak
from runs.domain.launching import Start
from runs.domain.ports import Lab, Sighting
from runs.domain.states import ProjectState, RunKind
from runs.domain.waiting import Queue
from runs.models import AgentProfile, Project, Run, Settings, StartRequest
from runs.work import facts, lease, logins, taking

logger = logging.getLogger(__name__)

MUTE_FOR = timedelta(minutes=2)


_WISHES = Q(state=ProjectState.READY, is_auto=True, streak__lt=streak.PAUSE_AT) & ~Q(tracker="")


def is_wishing() -> bool:
    """Whether any project may want something started by itself (LAB-86)."""
    return Project.objects.filter(_WISHES).exists()


def waiting(now: datetime, *, kicked: bool) -> tuple[bool, list[Project]]:
    """Whether a person waits for a start, and the projects that may start something. One query.

    Those whose last start is longest ago come first. With `kicked` only those for which somebody
    wants it now (LAB-80, LAB-97).
    """
    wishes = _WISHES & (Q(retry_at=None) | Q(retry_at__lte=now))
    if kicked:
        wishes &= Q(kicked_at__isnull=False)
    requests = StartRequest.objects.filter(project=OuterRef("pk"), answer="")
    rows = (
        Project.objects.annotate(is_asked=Exists(requests), wishes=wishes)
        .filter(Q(is_asked=True) | Q(wishes=True))
        .select_related("agent")
        .order_by(F("last_opened_at").asc(nulls_first=True), "pk")
    )
    found: list[Any] = list(rows)  # the annotations are no fields of the model
    return any(one.is_asked for one in found), [one for one in found if one.wishes]


def fill(
    lab: Lab,
    settings: Settings,
    sightings: Mapping[str, Sighting] | None,
    number: int,
    held: Collection[str],
    projects: Sequence[Project],
    errors: list[str],
) -> int:
    """Start what these projects want and what the caps allow; how many runs were taken.

    Runs under the lease of a tick after every person's request was answered: drain before fill.
    Reaching the cap is no error (LAB-85); what one project's tracker or git does not say skips
    that project alone (LAB-87). Raises lease.Lost.
    """
    if not projects:
        return 0
    began = lab.now()
    queues = facts.gather(lab, settings, projects)
    by_id = {project.pk: project for project in projects}
    room = taking.room(lab, settings, sightings, held)
    queues = _with_logins(lab, settings, by_id, queues, room)
    started: dict[int, set[str]] = {}
    for queue, start in launching.fill(queues, room):
        lease.keep(lab, number)
        project = by_id[queue.project]
        if _take(lab, settings, project, queue, start, number, errors):
            started.setdefault(project.pk, set()).add(start.key)
    _keep_hints(lab, by_id, queues, started)
    # Whose git hangs is left out for a while, so that it cannot keep others from theirs.
    mute = [queue.project for queue in queues if queue.claims is None]
    if mute:
        Project.objects.filter(pk__in=mute).update(retry_at=began + MUTE_FOR)
    Project.objects.filter(pk__in=by_id, kicked_at__lte=began).update(kicked_at=None)
    errors += [f"{by_id[q.project].name}: {why}" for q in queues for why in _silent(q)]
    return sum(len(keys) for keys in started.values())


def hint_of(project: Project) -> int | None:
    """How many issues could start, as the last sweep saw it; as good as the process that counted.

    None while automatic work is off or paused, or nothing was counted (LAB-101, LAB-103). Nothing
    is asked for it (LAB-105).
    """
    is_counted = project.is_auto and not project.is_paused and project.counted_by
    return project.claimable if is_counted else None


def _with_logins(
    lab: Lab,
    settings: Settings,
    projects: Mapping[int, Project],
    queues: Sequence[Queue],
    room: launching.Room,
) -> list[Queue]:
    """The queues with what their agents say of their login, asked only where a run would start.

    A logged-out agent starts nothing, and neither does one that could not be asked (LAB-88).
    """
    profiles = {pk: project.agent or settings.agent for pk, project in projects.items()}
    answers: dict[int, bool | None] = {}
    known = list(queues)
    while True:
        picked = {profiles[queue.project] for queue, _ in launching.fill(known, room)}
        unasked = [one for one in picked if one is not None and one.pk not in answers]
        if not unasked:
            return known
        answers |= {profile.pk: logins.known(lab, profile) for profile in unasked}
        known = [_with_login(queue, profiles[queue.project], answers) for queue in queues]


def _with_login(
    queue: Queue, profile: AgentProfile | None, answers: Mapping[int, bool | None]
) -> Queue:
    if profile is None or profile.pk not in answers:
        return queue
    return replace(queue, is_logged_in=answers[profile.pk])


def _take(
    lab: Lab,
    settings: Settings,
    project: Project,
    queue: Queue,
    start: Start,
    number: int,
    errors: list[str],
) -> bool:
    """Store one automatic run, unless the project does not want it any more (LAB-84, LAB-90)."""
    title = next((one.title for one in queue.ready or () if one.key == start.key), "")
    asked = taking.Asked(RunKind.AUTO, "", lab.now(), _still_wanted)
    try:
        taking.take(lab, settings, project, start, title, asked, number)
    except (taking.NotWantedAnyMore, IntegrityError) as error:
        logger.info(
            "automatic start was dropped", extra={"project": project.slug, "why": repr(error)}
        )
        return False
    except lease.Lost:
        raise
    except Exception as error:
        logger.exception("automatic start was not stored", extra={"project": project.slug})
        errors.append(f"{project.name}: issue {start.key} was not started: {error!r}")
        return False
    return True


def _still_wanted(run: Run) -> bool:
    """Asked in the storing transaction, which holds the project from here on: a switch that was
    turned meanwhile counts, and so does a failure that was recorded meanwhile."""
    rows = Project.objects.filter(_WISHES, pk=run.project_id)
    if not rows.update(kicked_at=None):
        return False
    alive = Run.objects.active().filter(project_id=run.project_id, kind=RunKind.AUTO).count()
    return alive <= rows.values_list("parallel_runs", flat=True).get()


def _keep_hints(
    lab: Lab,
    projects: Mapping[int, Project],
    queues: Iterable[Queue],
    started: Mapping[int, Collection[str]],
) -> None:
    """What the start controls show until the next sweep; one statement, none when nothing changed."""
    changed = []
    for queue in queues:
        project = projects[queue.project]
        is_known = queue.ready is not None and queue.claims is not None
        left = len(launching.claimable(queue)) - len(started.get(queue.project, ()))
        count = left if is_known else None
        if (project.claimable, project.counted_by) != (count, lab.process):
            project.claimable, project.counted_by = count, lab.process
            changed.append(project)
    if changed:
        Project.objects.bulk_update(changed, ["claimable", "counted_by"])


def _silent(queue: Queue) -> Iterable[str]:
    """What did not answer, for the tick's row."""
    if queue.has_tracker and queue.ready is None:
        yield f"its tracker did not answer: {queue.tracker_error}"
    if queue.claims is None:
        yield f"git did not list its claims: {queue.git_error}"
