"""Fills free slots with automatic work: the second half of the launch pass, after all requests."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from runs.accounts import logins
from runs.core.database import prepared
from runs.core.ports import Lab
from runs.core.states import ProjectState, RunKind, TrackerKind
from runs.core.tick_context import TickContext
from runs.dispatch import eligibility, facts, reserve, rules, scope, streak
from runs.dispatch.eligibility import Queue, Want
from runs.dispatch.rules import Start
from runs.forges import cadence, tracker_cache
from runs.models import AgentProfile, Project, Run, Settings, StartRequest, WatchSession
from runs.watch import polling
from runs.watch import stepper as watch_stepper
from runs.watch.session import Request, Validation

logger = logging.getLogger(__name__)

MUTE_FOR = timedelta(minutes=2)
_USABLE = Q(state=ProjectState.READY) & ~Q(tracker="")


def _is_without_session() -> Q:
    """The switch is on and no session is there, nor one that a person has to resume."""
    sessions = WatchSession.objects.filter(project=OuterRef("pk"))
    is_served = Exists(sessions.filter(Q(ended_at=None) | Q(needs_resume=True)))
    return Q(_USABLE, is_auto=True) & ~Q(is_served)


def is_wishing(now: datetime, *, looks_anew: bool) -> bool:
    """Whether a session may have something to do; with `looks_anew` or has to be opened."""
    if _sessions().first(now) is not None:
        return True
    return looks_anew and _projects().first(now) is not None


@prepared
def _sessions(now: datetime) -> QuerySet[WatchSession, Any]:
    return WatchSession.objects.due(now).values_list("pk")[:1]


@prepared
def _projects(now: datetime) -> QuerySet[Project, Any]:
    return wishing(now).values_list("pk")[:1]


def wishing(now: datetime) -> QuerySet[Project]:
    """Projects whose automatic work lacks its session, or whose session may be resumed."""
    return Project.objects.filter(Q(_is_without_session()) | Q(_is_to_resume(now)))


def _is_to_resume(now: datetime) -> Exists:
    """A tracker ended the switch's session and may be asked again."""
    return Exists(WatchSession.objects.to_resume(now).filter(project=OuterRef("pk")))


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a launch pass is for: a person who waits, projects whose switch lacks its session, those
    of which a webhook told since their tracker was asked last, those of which pages may show what is
    old, and those that may resume."""

    is_asked: bool
    lacking: Sequence[Project] = ()
    woken: Sequence[int] = ()
    stale: Sequence[int] = ()
    to_resume: Sequence[int] = ()


def waiting(now: datetime, settings: Settings) -> Wishes:
    """What there is to do for a launch pass beside the sessions. One query, and one more for switches
    that lack their session, whose projects are read whole."""
    found = _asked(settings.launch_interval).rows(now)
    lacking = [one.pk for one in found if one.lacks]
    return Wishes(
        any(one.is_asked for one in found),
        list(Project.objects.filter(pk__in=lacking)) if lacking else (),
        [one.pk for one in found if one.is_woken],
        [one.pk for one in found if one.is_stale],
        [one.pk for one in found if one.resumes],
    )


def asking(now: datetime, interval: timedelta) -> QuerySet[Project, Any]:
    """Projects that a launch pass has something to do for, as the columns of `Wishes`."""
    woken = Q(hooked_at__gt=F("queue_asked_at")) | Q(hooked_at__isnull=False, queue_asked_at=None)
    requests = StartRequest.objects.filter(project=OuterRef("pk"), answer="")
    rows = Project.objects.annotate(
        is_asked=Exists(requests),
        lacks=_is_without_session(),
        is_woken=Q(_USABLE) & woken,
        is_stale=Q(_USABLE) & ~Q(tracker=TrackerKind.BUILTIN) & cadence.stale(now, interval),
    ).annotate(resumes=_is_to_resume(now))
    wanted = (
        Q(is_asked=True) | Q(lacks=True) | Q(is_woken=True) | Q(is_stale=True) | Q(resumes=True)
    )
    names = ("pk", "is_asked", "lacks", "is_woken", "is_stale", "resumes")
    return rows.filter(wanted).values_list(*names, named=True)


_asked = prepared(asking)


def fill(tick: TickContext, sessions: Sequence[WatchSession]) -> int:
    """Ask the queues of these sessions and start what they may and the caps allow; how many.

    Runs under the lease of a tick after every person's request was answered: drain before fill.
    Reaching the cap is no error; what one project's tracker or git does not say skips
    that project alone. A tracker that has to be waited for is asked once an interval, and
    seldom while its webhook works and nothing waits. Raises lease.Lost.
    """
    lab, settings, began = tick.lab, tick.settings, tick.lab.now()
    if not sessions:
        return 0
    room = reserve.room(lab, settings, tick.sightings, tick.being_made)
    # Those of another host are left as they are: it polls them.
    sessions = [one for one in sessions if not room.is_elsewhere(one.project.job)]
    if not sessions:
        return 0
    claimed = polling.claim(lab, settings, sessions)
    projects = cadence.due(lab, settings, [_wanted(one, settings) for one in claimed])
    polling.hold_back(lab, [one for one in claimed if one.project not in projects])
    if not projects:
        return 0
    by_id = {project.pk: project for project in projects}
    by_project = {one.project_id: one for one in claimed if one.project_id in by_id}
    queues = facts.gather(lab, settings, projects, is_auto=True)
    may = polling.answered(tick, list(by_project.values()), queues)
    queues = [replace(queue, want=_narrowed(queue, may)) for queue in queues]
    queues = _with_logins(lab, settings, by_id, queues, room)
    started: dict[int, set[str]] = {}
    for queue, start in rules.fill(queues, room):
        tick.keep_lease()
        session = by_project[queue.project]
        if _take(tick, session, queue, start):
            started.setdefault(queue.project, set()).add(start.key)
            room = room.after_one(start.slot)
    _hand_on(lab, by_project, queues, started, room)
    idle = [queue for queue in queues if queue.project in may and queue.project not in started]
    why = dict.fromkeys(by_project, "")
    why |= {queue.project: rules.held(queue, room) for queue in idle}
    polling.note_held(by_project, why)
    _keep_hints(lab, by_id, queues, started)
    tracker_cache.keep_queues(lab, projects, queues, began)
    # Whose git hangs is left out for a while, so that it cannot keep others from theirs.
    mute = [queue.project for queue in queues if queue.claims is None]
    if mute:
        Project.objects.filter(pk__in=mute).update(retry_at=began + MUTE_FOR)
    tick.errors += [f"{by_id[q.project].name}: {why}" for q in queues for why in _silent(q)]
    return sum(len(keys) for keys in started.values())


def _hand_on(
    lab: Lab,
    sessions: Mapping[int, WatchSession],
    queues: Sequence[Queue],
    started: Mapping[int, Collection[str]],
    room: rules.Room,
) -> None:
    """Have another host poll at once what it has more room for now than this one."""
    left = [
        sessions[queue.project].pk
        for queue in queues
        if queue.project in started
        and len(rules.hopeful(queue)) > len(started[queue.project])
        and room.is_elsewhere(queue.job)
    ]
    if left:
        rows = WatchSession.objects.open().filter(pk__in=left)
        rows.update(next_poll_at=lab.now(), look_at=lab.now(), version=F("version") + 1)


def _wanted(row: Any, settings: Settings) -> cadence.Wanted:
    every = watch_stepper.of(row, settings).terms.poll_every
    return cadence.Wanted(row.project, every, row.is_live, row.active >= row.project.parallel_runs)


def _narrowed(queue: Queue, may: Mapping[int, int | None]) -> Want:
    """What a session may start after its step: nothing unless it said so."""
    if queue.project not in may:
        return replace(queue.want, is_on=False)
    return replace(queue.want, most=may[queue.project])


def hint_of(project: Project) -> int | None:
    """How many issues could start, as the last sweep saw it; as good as the process that counted.

    None while automatic work is off or paused, or nothing was counted. Nothing
    is asked for it.
    """
    is_counted = project.is_auto and not project.is_paused and project.counted_by
    return project.claimable if is_counted else None


def _with_logins(
    lab: Lab,
    settings: Settings,
    projects: Mapping[int, Project],
    queues: Sequence[Queue],
    room: rules.Room,
) -> list[Queue]:
    """The queues with what their agents say of their login, asked only where a run would start.

    A logged-out agent starts nothing, and neither does one that could not be asked.
    """
    profiles = {pk: project.agent or settings.agent for pk, project in projects.items()}
    answers: dict[int, bool | None] = {}
    known = list(queues)
    while True:
        picked = {profiles[queue.project] for queue, _ in rules.fill(known, room)}
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


def _take(tick: TickContext, session: WatchSession, queue: Queue, start: Start) -> bool:
    """Store one automatic run, unless its session does not want it any more."""
    project = session.project
    title = next((one.title for one in queue.ready or () if one.key == start.key), "")
    asked = reserve.Asked(RunKind.AUTO, "", tick.lab.now(), _still_wanted, session)
    with tick.going_on(f"{project.name}: issue {start.key} was not started", project=project.slug):
        try:
            reserve.take(tick, project, start, title, asked)
        except (reserve.NotWantedAnyMore, IntegrityError) as error:
            why = {"project": project.slug, "why": repr(error)}
            logger.info("automatic start was dropped", extra=why)
        else:
            return True
    return False


def _still_wanted(run: Run) -> bool:
    """Asked in the storing transaction, which holds the project from here on: a switch that was
    turned meanwhile counts, and so does a failure that was recorded meanwhile."""
    Project.objects.hold(run.project_id)
    rows = Project.objects.filter(_USABLE, pk=run.project_id, streak__lt=streak.PAUSE_AT)
    parallel = rows.values_list("parallel_runs", flat=True).first()
    # Another host may have begun a validation since, which waits for no run that comes after it.
    sessions = WatchSession.objects.open().filter(
        pk=run.watch_id or 0, request=Request.NONE, reason="", validation=Validation.NONE
    )
    if parallel is None or not sessions.update(version=F("version") + 1):
        return False
    alive = Run.objects.active().filter(project_id=run.project_id, kind=RunKind.AUTO)
    counted = scope.with_begun(sessions).values_list("limit", "completed", "begun")
    limit, completed, begun = counted.get()
    if limit is not None and completed + begun > limit:
        return False
    return alive.count() <= parallel


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
        is_known &= not any(
            one.block.by is None and not one.block.is_unasked for one in queue.ready or ()
        )
        may_start = len(rules.claimable(queue)) + len(rules.unasked(queue))
        left = may_start - len(started.get(queue.project, ()))
        count = left if is_known else None
        blocked = len(rules.blocked(queue))
        short = {one.key: eligibility.in_short(queue, one) for one in queue.ready or ()}
        why = {key: words for key, words in short.items() if words}
        told = (count, blocked, why, lab.process)
        if (project.claimable, project.blocked, project.held_seen, project.counted_by) != told:
            project.claimable, project.blocked, project.held_seen, project.counted_by = told
            changed.append(project)
    if changed:
        Project.objects.bulk_update(changed, ["claimable", "blocked", "held_seen", "counted_by"])


def _silent(queue: Queue) -> Iterable[str]:
    """What did not answer, for the tick's row."""
    if queue.has_tracker and queue.ready is None:
        yield f"its tracker did not answer: {queue.tracker_error}"
    if queue.claims is None:
        yield f"git did not list its claims: {queue.git_error}"
