"""Which projects' trackers are asked now, by `forges/cadence_rules`; local ones always are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db.models import F, Q

from runs.core.ports import Lab
from runs.core.states import TrackerKind
from runs.forges import cadence_rules, quota
from runs.forges.cadence_rules import PollFacts, PullFacts
from runs.models import Project, Settings, WatchSession
from trackers.base import Ability

Accounts = Mapping[tuple[str, str], int]


def is_remote(lab: Lab, project: Project) -> bool:
    """Whether the tracker has to be waited for, so that pages show what was heard last."""
    tracker = lab.tracker_for(project.tracker) if project.tracker else None
    return tracker is not None and Ability.LOCAL not in tracker.abilities


def is_without_pulls(lab: Lab, project: Project) -> bool:
    """Whether the tracker has no pull requests, so that commits prove a delivery."""
    tracker = lab.tracker_for(project.tracker) if project.tracker else None
    return tracker is not None and Ability.PULLS not in tracker.abilities


@dataclass(frozen=True, slots=True)
class Wanted:
    """A project whose watch session wants its ready queue, every `interval` when nothing is short.

    `is_live`: a run of it is active. `is_full`: as many automatic ones are as may be. `is_over`:
    its budget of requests is used up.
    """

    project: Project
    interval: timedelta
    is_live: bool
    is_full: bool = False
    is_over: bool = False


def due(lab: Lab, settings: Settings, wanted: Sequence[Wanted]) -> list[Project]:
    """Those whose ready queue is asked for in this pass.

    Keeps on the others how often they are asked and why, for their pages; one statement, and none
    while nothing changed.
    """
    remote = {one.project.pk for one in wanted if is_remote(lab, one.project)}
    sharing: Counter[tuple[str, str]] = Counter()
    for one in wanted:
        if one.project.pk in remote:  # with a live run its pull requests are asked for as well
            sharing[_account(lab, one.project)] += 2 if one.is_live else 1
    over = quota.over_budget(lab, [one.project for one in wanted if one.project.pk in remote])
    found, changed = [], []
    for one in wanted:
        if one.project.pk not in remote:
            found.append(one.project)
            continue
        mine = replace(one, is_over=one.project.pk in over)
        told = _facts(lab, mine, sharing, is_wanted=True)
        if _keep_cadence(one.project, cadence_rules.cadence(told, lab.now())):
            changed.append(one.project)
        if cadence_rules.is_due(told, lab.now()):
            found.append(one.project)
    if changed:
        Project.objects.bulk_update(changed, ["asked_every", "asked_why"])
    return found


def is_due(lab: Lab, settings: Settings, project: Project, *, is_live: bool) -> bool:
    """Whether to ask for one project's ready queue now."""
    is_over = project.pk in quota.over_budget(lab, [project])
    one = Wanted(project, settings.launch_interval, is_live, is_over=is_over)
    told = _facts(lab, one, {_account(lab, project): 1}, is_wanted=project.is_auto)
    return cadence_rules.is_due(told, lab.now())


def are_pulls_due(lab: Lab, settings: Settings, project: Project, *, is_live: bool = False) -> bool:
    """Whether its pull requests may have changed since they were asked for last.

    `is_live`: those of runs at work, about which a look at a few branches is enough. What a webhook
    told counts as answered only by a look at all.
    """
    hooked, seen = project.pulls_hooked_at, project.pulls_seen_at
    is_told = not is_live and hooked is not None and (seen is None or hooked > seen)
    facts = PullFacts(
        interval=settings.launch_interval,
        asked_at=seen if is_told else project.pulls_asked_at,
        hooked_at=project.pulls_hooked_at,
        kicked_at=project.kicked_at,
        watched_at=project.watched_at,
        has_open=bool(project.pulls_seen),
        is_live=is_live,
    )
    return cadence_rules.are_pulls_due(facts, lab.now())


def stale(now: datetime, interval: timedelta) -> Q:
    """Projects of which something may be due that no watch session asks for.

    A delivery told of a pull request, one of ours is open, or somebody has a page open. Some of
    them turn out not to be due yet.
    """
    before = now - interval / 2
    told = Q(pulls_hooked_at__gt=F("pulls_asked_at") - cadence_rules.LISTED_AFTER)
    told |= Q(pulls_hooked_at__gt=F("pulls_seen_at"))
    asked_before = Q(pulls_asked_at=None) | Q(pulls_asked_at__lt=before)
    is_open = ~Q(pulls_seen=[]) & asked_before
    watched = Q(watched_at__gt=now - cadence_rules.WATCHED_FOR)
    old = Q(queue_asked_at=None) | Q(queue_asked_at__lt=before) | asked_before
    never = Q(pulls_hooked_at__isnull=False) & (Q(pulls_asked_at=None) | Q(pulls_seen_at=None))
    return told | never | is_open | (watched & old)


def is_woken(project: Project) -> bool:
    """Whether a webhook told of something since the tracker was asked last."""
    asked, hooked = project.queue_asked_at, project.hooked_at
    return hooked is not None and (asked is None or hooked > asked)


def kick(lab: Lab, project_id: int) -> None:
    """Ask a tracker that has to be waited for as soon as somebody wants its queue.

    A pass that is under way began before, so what it heard does not end this.
    """
    remote = Project.objects.filter(pk=project_id).exclude(tracker__in=["", TrackerKind.BUILTIN])
    remote.update(kicked_at=lab.now(), queue_asked_at=None)


def wake(lab: Lab, project_id: int) -> None:
    """Something of ours changed what may start: the open session asks at its next step."""
    kick(lab, project_id)
    rows = WatchSession.objects.open().filter(project=project_id)
    rows.update(look_at=None, next_poll_at=None, version=F("version") + 1)


def _account(lab: Lab, project: Project) -> tuple[str, str]:
    account = lab.forges.account_of(project.tracker_root) if project.forge_id else None
    return (account.host, account.id) if account is not None else ("", "")


def _facts(lab: Lab, one: Wanted, sharing: Accounts, *, is_wanted: bool) -> PollFacts:
    project = one.project
    is_counted = project.counted_by == lab.process and project.claimable is not None
    has_work = bool(project.claimable or project.blocked) if is_counted else None
    return PollFacts(
        interval=one.interval,
        pace=_pace(lab, one, sharing),
        asked_at=project.queue_asked_at,
        seen_at=project.queue_seen_at,
        hooked_at=project.hooked_at,
        issues_hooked_at=project.issues_hooked_at,
        kicked_at=project.kicked_at,
        watched_at=project.watched_at,
        is_full=one.is_full,
        is_over=one.is_over,
        is_wanted=is_wanted,
        has_work=has_work if is_wanted and not project.is_paused else False,
    )


def _pace(lab: Lab, one: Wanted, sharing: Accounts) -> timedelta:
    """How far apart questions have to be, when all projects of one account share what is left."""
    account, meter = _account(lab, one.project), lab.forges.meter()
    if meter is None or not account[0]:
        return one.interval
    return meter.pace(*account, lab.now(), one.interval, sharing.get(account, 1))


def _keep_cadence(project: Project, cadence: cadence_rules.Cadence) -> bool:
    """Whether that is news. Told in whole minutes, so that it does not change with each pass."""
    seconds = round(cadence.every.total_seconds())
    every = (max(60, round(seconds, -1)) if seconds > 120 else seconds) if cadence.why else None
    if (project.asked_every, project.asked_why) == (every, cadence.why):
        return False
    project.asked_every, project.asked_why = every, cadence.why
    return True
