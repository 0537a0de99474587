"""Start requests and the launch pass that answers them: the only way to a slot and an issue."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from datetime import timedelta

from django.db import IntegrityError, transaction

from runs.domain import budgets, naming, tokens, writing
from runs.domain.launching import Queue, Refusal, Room, Start, decide_start
from runs.domain.ports import Lab, SeamError, Sighting
from runs.domain.states import AnswerCode, NoticeKind, ProjectState, RunKind, RunState
from runs.models import Project, Run, Settings, StartRequest
from runs.work import announce, lease
from trackers.base import TrackerError

logger = logging.getLogger(__name__)

PATIENCE = timedelta(minutes=2)
STEP_SECONDS = 0.02


class AnsweredMeanwhile(Exception):
    """Another pass has answered the request, so this one starts nothing for it."""


def request(lab: Lab, project: Project, by: str, wanted: str = "") -> StartRequest:
    """Ask for a run; the launch pass of the worker answers. `wanted` names one issue."""
    key = writing.clean(wanted)[:60]
    asked = StartRequest.objects.create(project=project, by=by, wanted_key=key, at=lab.now())
    lab.bell.look(project.slug)
    return asked


def wait(lab: Lab, asked: StartRequest, seconds: float = 5.0) -> StartRequest:
    """The request as it stands once it is answered and its run no longer starts, or time is up."""
    for _ in range(max(1, int(seconds / STEP_SECONDS))):
        asked = StartRequest.objects.select_related("run", "run__project", "project").get(
            pk=asked.pk
        )
        is_open = asked.answer == AnswerCode.PENDING
        if not is_open and (asked.run is None or asked.run.state != RunState.STARTING):
            return asked
        lab.pause(STEP_SECONDS)
    return asked


def launch_pass(
    lab: Lab,
    settings: Settings,
    sightings: Mapping[str, Sighting] | None,
    number: int,
    held: Collection[str] = (),
) -> int:
    """Answer every waiting request, oldest first; how many runs were put into *starting*.

    Runs under the lease of a tick, whose number it checks before each answer and with each row,
    so that no two passes overlap (LAB-58). Raises lease.Lost; what was answered before stays.
    `held` are the sessions that were being made when `sightings` were asked for.
    """
    slots, silent = set(held), dict[int, str]()
    waiting = (
        StartRequest.objects.filter(answer="")
        .select_related("project", "project__agent")
        .order_by("pk")
    )
    return sum(
        [_answer(lab, settings, asked, sightings, number, slots, silent) for asked in waiting]
    )


def refuse(lab: Lab, asked: StartRequest, refusal: Refusal) -> None:
    """Answer with a reason; it is on the timeline too, since the asker may be gone."""
    with transaction.atomic():
        if StartRequest.objects.filter(pk=asked.pk, answer="").update(
            answer=refusal.code, text=refusal.text
        ):
            announce.tell(
                lab, NoticeKind.START_REFUSED, refusal.text, project=asked.project, by=asked.by
            )


def _answer(
    lab: Lab,
    settings: Settings,
    asked: StartRequest,
    sightings: Mapping[str, Sighting] | None,
    number: int,
    held: set[str],
    silent: dict[int, str],
) -> bool:
    lease.keep(lab, number)
    if budgets.age(lab.now(), asked.at) > PATIENCE:
        text = "The worker was away when this start was asked for, so nothing was started. Press Start again."
        refuse(lab, asked, Refusal(AnswerCode.EXPIRED, text))
        return False
    if asked.project.state != ProjectState.READY:
        text = "This project has not been cloned yet. Start again when it is ready."
        refuse(lab, asked, Refusal(AnswerCode.NOT_READY, text))
        return False
    if (asked.project.agent or settings.agent) is None:
        text = "No agent is chosen. Choose one on the settings page."
        refuse(lab, asked, Refusal(AnswerCode.SEAM_FAILED, text))
        return False
    queue, titles = _queue(lab, asked, silent)
    decision = decide_start(queue, room(lab, settings, sightings, held))
    if isinstance(decision, Refusal):
        refuse(lab, asked, decision)
        return False
    return _store(lab, settings, asked, decision, titles.get(decision.key, ""), number, held)


def _queue(lab: Lab, asked: StartRequest, silent: dict[int, str]) -> tuple[Queue, dict[str, str]]:
    """The project's side, asked fresh: ready issues of the tracker, claims of git (LAB-57).

    A repository that did not answer is `silent` for the rest of the pass: ten requests for one
    that hangs must not hold up the judge ten times.
    """
    project = asked.project
    tracker = lab.tracker_for(project.tracker) if project.tracker else None
    ready, tracker_error, titles = None, "", {}
    if tracker is not None:
        try:
            issues = tracker.ready(project.tracker_root, project.ready_label)
            ready, titles = (
                [issue.key for issue in issues],
                {issue.key: issue.title for issue in issues},
            )
        except TrackerError as error:
            tracker_error = str(error)
    claims, git_error = None, silent.get(project.pk, "")
    try:
        claims = None if git_error else lab.repos.claims(project.repo(lab.paths))
    except SeamError as error:
        git_error = silent[project.pk] = str(error)
    active = set(Run.objects.active().filter(project=project).values_list("issue_key", flat=True))
    queue = Queue(
        tracker is not None, ready, claims, active, asked.wanted_key, tracker_error, git_error
    )
    return queue, titles


def room(
    lab: Lab,
    settings: Settings,
    sightings: Mapping[str, Sighting] | None,
    held: Collection[str] = (),
) -> Room:
    """Slots: live sessions of projects plus runs in *starting* (LAB-41, LAB-66).

    A session of `held` counts as long as its run is active: it may have come to life after the
    sessions were looked at, when it is neither seen nor *starting* any more.
    """
    active = list(
        Run.objects.active().filter(host=lab.host).values_list("session", "slot", "state")
    )
    taken = {slot for _, slot, _ in active if slot}
    if sightings is None:
        return Room(taken, None, settings.session_cap)
    slugs = set(Project.objects.values_list("slug", flat=True))
    live = {
        name
        for name, seen in sightings.items()
        if seen.alive and naming.session_project(name) in slugs
    }
    for name in live:
        parsed = naming.parse_session(name)
        if parsed is not None and parsed.slot:
            taken.add(parsed.slot)
    starting = {
        session for session, _, state in active if state == RunState.STARTING or session in held
    }
    return Room(taken, len(live | starting), settings.session_cap)


def _store(
    lab: Lab,
    settings: Settings,
    asked: StartRequest,
    start: Start,
    title: str,
    number: int,
    held: set[str],
) -> bool:
    """The row in *starting*: from here on it keeps other starters out, exactly as the branch will."""
    project = asked.project
    profile = project.agent or settings.agent
    now = lab.now()
    try:
        with transaction.atomic():
            lease.keep(lab, number)
            run = Run.objects.create(
                project=project,
                host=lab.host,
                issue_key=start.key,
                issue_title=title,
                kind=RunKind.MANUAL,
                state=RunState.STARTING,
                session=naming.session_name(project.slug, start.slot, start.key, RunKind.MANUAL),
                slot=start.slot,
                mark=tokens.new_mark(),
                branch=naming.branch_for(start.key),
                agent=profile.name if profile else "",
                model=settings.model if profile == settings.agent else "",
                effort=settings.effort if profile == settings.agent else "",
                started_by=asked.by,
                requested_at=asked.at,
            )
            open_request = StartRequest.objects.filter(pk=asked.pk, answer="")
            if not open_request.update(answer=AnswerCode.STARTED, run=run):
                raise AnsweredMeanwhile
            Project.objects.filter(pk=project.pk).update(last_opened_at=now)
            announce.tell(
                lab, NoticeKind.RUN_STARTING, f"taken into slot {start.slot}", run=run, by=asked.by
            )
            transaction.on_commit(lambda: lab.queue.launch(run.pk), robust=True)
    except IntegrityError:
        text = f"Issue {start.key} was taken by another start in the same moment."
        refuse(lab, asked, Refusal(AnswerCode.NOTHING_READY, text))
        return False
    except AnsweredMeanwhile:
        return False
    held.add(run.session)
    return True
