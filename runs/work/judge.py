"""From facts to outcomes: asks trackers, applies the verdict, records through the one door."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from concurrent.futures import TimeoutError as Overdue
from datetime import datetime, timedelta

from django.db import transaction

from runs.domain import budgets
from runs.domain.ending import Ending, why_dead
from runs.domain.ports import Lab, Sighting
from runs.domain.states import NoticeKind, Outcome, RunState
from runs.domain.verdict import RunFacts, verdict
from runs.models import Project, Run, Settings, told
from runs.work import announce, listening, outcomes, reaper
from trackers.base import Ability, Pull, PullState, Tracker, TrackerError, best_pull, counts

logger = logging.getLogger(__name__)

DEADLINE_SECONDS = 10.0
URL_CHARACTERS = 500  # a longer one would be cut and lead nowhere

Answer = Mapping[str, Sequence[Pull] | None]


def judge(
    lab: Lab,
    settings: Settings,
    runs: Sequence[Run],
    sightings: Mapping[str, Sighting] | None,
    lease: int,
    errors: list[str],
    now: datetime,
) -> list[Run]:
    """End each working run whose facts prove an outcome; returns those that this call ended.

    Local trackers are asked first and their runs settled first; the others are asked side by
    side under one deadline, and what has not answered by then is "could not tell" (LAB-12,
    LAB-13). Ages are those at `now`, when the clock was known to be right.
    """
    working = [run for run in runs if run.state == RunState.WORKING]
    if sightings is None or not working:
        return []
    ended: list[Run] = []
    for group, answer in _ask(lab, working, errors):
        for run in group:
            pulls = answer.get(run.project.tracker_root)
            try:
                seen = sightings.get(run.session)
                if _judge_one(lab, settings, run, pulls, seen, lease, now):
                    ended.append(run)
            except Exception as error:
                logger.exception("run was not judged", extra={"run_id": run.pk})
                errors.append(f"run {run.pk} could not be judged: {error!r}")
    return ended


def _judge_one(
    lab: Lab,
    settings: Settings,
    run: Run,
    pulls: Sequence[Pull] | None,
    sighting: Sighting | None,
    lease: int,
    now: datetime,
) -> bool:
    pull = best_pull(_of_this_run(run, pulls), run.branch) if pulls is not None else None
    facts = RunFacts(
        has_pull=None if pulls is None else counts(pull),
        alive=sighting is not None and sighting.alive,
        age=budgets.age(now, run.started_at),
        budget=run.project.budget(settings),
    )
    outcome = verdict(facts)
    if outcome is None:
        return False
    seen: dict[str, object] = {}
    if outcome is Outcome.SUCCEEDED and pull is not None:
        seen = {
            "pull_number": pull.number,
            "pull_url": pull.url if len(pull.url) <= URL_CHARACTERS else "",
        }
    if not facts.alive:
        seen |= reaper.seen_exit(sighting, reaper.exit_file(lab, run))
    if outcome is Outcome.DIED:
        last, reason = _death(lab, run, seen)
        seen |= last
    else:
        reason = _reason(outcome, facts, pull)
    return outcomes.record(lab, run, outcome, reason, lease=lease, seen=seen)


def _of_this_run(run: Run, pulls: Sequence[Pull]) -> list[Pull]:
    """Without what was merged of an earlier run of the same issue before this one began.

    An open one counts whenever it was made: it is the delivery that waits (LAB-77).
    """
    if run.is_adopted:
        return list(pulls)
    return [
        pull
        for pull in pulls
        if pull.state is not PullState.MERGED
        or pull.created_at is None
        or pull.created_at >= run.requested_at
    ]


def _reason(outcome: Outcome, facts: RunFacts, pull: Pull | None) -> str:
    """The evidence in one sentence."""
    if outcome is Outcome.SUCCEEDED and pull is not None:
        return f"pull request {pull.number} is {pull.state}"
    return f"no pull request after {minutes(facts.budget)}"


def _death(lab: Lab, run: Run, seen: Mapping[str, object]) -> tuple[Mapping[str, object], str]:
    """What a dead program told up to its end, and why the run died (C-47).

    Its word explains and decides nothing: the tracker was asked after it was seen dead.
    """
    status, number = seen.get("exit_status"), seen.get("exit_signal")
    reading = listening.finish(lab, run) if run.output else None
    ending = Ending(
        run.mode,
        status if isinstance(status, int) else None,
        number if isinstance(number, int) else None,
        reading.report if reading is not None else None,
    )
    return (told.columns(reading) if reading is not None else {}), why_dead(ending)


def minutes(length: timedelta) -> str:
    """A budget as people say it."""
    whole = int(length.total_seconds() // 60)
    return f"{whole} min"


def _ask(lab: Lab, runs: Sequence[Run], errors: list[str]) -> Iterator[tuple[list[Run], Answer]]:
    """One call per kind of tracker; yields local answers first, then the others as they come."""
    groups: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        groups[run.project.tracker].append(run)
    remote: dict[str, Tracker] = {}
    for kind, group in groups.items():
        tracker = lab.tracker_for(kind) if kind else None
        if tracker is None:
            continue
        if Ability.LOCAL in tracker.abilities:
            yield group, _pulls(lab, tracker, group, errors)
        else:
            remote[kind] = tracker
    if remote:
        yield from _ask_remote(lab, groups, remote, errors)


def _ask_remote(
    lab: Lab, groups: Mapping[str, list[Run]], trackers: Mapping[str, Tracker], errors: list[str]
) -> Iterator[tuple[list[Run], Answer]]:
    pool = ThreadPoolExecutor(max_workers=len(trackers), thread_name_prefix="tracker")
    asked: dict[Future[Answer], str] = {
        pool.submit(trackers[kind].pulls, _heads(groups[kind])): kind for kind in trackers
    }
    try:
        for future in as_completed(asked, timeout=DEADLINE_SECONDS):
            group = groups[asked[future]]
            yield group, _noted(lab, group, _outcome_of(future, errors))
    except Overdue:
        errors.append("a tracker gave no answer in time")
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _outcome_of(future: Future[Answer], errors: list[str]) -> Answer:
    try:
        return future.result()
    except TrackerError as error:
        errors.append(f"tracker: {error}")
        return {}


def _pulls(lab: Lab, tracker: Tracker, group: list[Run], errors: list[str]) -> Answer:
    try:
        answer = tracker.pulls(_heads(group))
    except TrackerError as error:
        errors.append(f"tracker {tracker.kind}: {error}")
        answer = {}
    return _noted(lab, group, answer)


def _heads(group: Sequence[Run]) -> dict[str, list[str]]:
    heads: dict[str, list[str]] = defaultdict(list)
    for run in group:
        heads[run.project.tracker_root].append(run.branch)
    return heads


def _noted(lab: Lab, group: Sequence[Run], answer: Answer) -> Answer:
    """Show on each project whether its tracker could be read; told once, and once when it is back."""
    for project in {run.project_id: run.project for run in group}.values():
        could = answer.get(project.tracker_root) is not None
        if could == bool(project.warning):
            _note(lab, project, could)
    return answer


def _note(lab: Lab, project: Project, could: bool) -> None:
    text = (
        ""
        if could
        else "The tracker could not be read, so runs are left as they are. It is asked again."
    )
    with transaction.atomic():
        Project.objects.filter(pk=project.pk).update(warning=text)
        kind = NoticeKind.PROJECT_RECOVERED if could else NoticeKind.PROJECT_WARNED
        announce.tell(lab, kind, text or "the tracker answers again", project=project)
    project.warning = text
