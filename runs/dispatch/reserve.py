"""Takes an issue and a slot: the row in *starting*, which keeps other starters out from then on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from runs.agents import orders
from runs.core import naming, tokens
from runs.core.database import prepared
from runs.core.effects import RunStart
from runs.core.ports import Lab, Sighting
from runs.core.states import NoticeKind, RunKind, RunState
from runs.core.tick_context import TickContext
from runs.dispatch.rules import Room, Start
from runs.hosts import facts as host_facts
from runs.models import Fixer, Host, ManualSession, Project, Run, Settings, WatchSession
from runs.projects import start_waits
from runs.timeline import announce
from trackers.keys import rule_of


class NotWantedAnyMore(Exception):
    """What asked for the run has been answered or taken back meanwhile; nothing was stored."""


@dataclass(frozen=True, slots=True)
class Before:
    """The ended run that another one goes on with, what its agent is told, and the pull request
    that is open already."""

    run: Run
    follow_up: str
    amends: int | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """Who asked for a run, when, and what has to be true still when it is stored."""

    kind: RunKind
    by: str
    at: datetime
    confirm: Callable[[Run], bool]
    watch: WatchSession | None = None
    before: Before | None = None


def take(tick: TickContext, project: Project, start: Start, title: str, asked: Asked) -> Run:
    """Store the run and ask the queue to carry it out.

    Raises NotWantedAnyMore, lease.Lost, and IntegrityError when another start took the issue;
    then nothing was stored.
    """
    lab, settings = tick.lab, tick.settings
    with transaction.atomic():
        tick.keep_lease()
        run = Run.objects.create(
            **_agent(project, settings, asked.before),
            **_taken_over(asked.before, lab.now()),
            project=project,
            host=lab.host,
            issue_key=start.key,
            issue_title=title,
            kind=asked.kind,
            state=RunState.STARTING,
            session=naming.session_name(project.slug, start.slot, start.key, asked.kind),
            slot=start.slot,
            mark=tokens.new_mark(),
            branch=asked.before.run.branch if asked.before else project.branch_for(start.key),
            started_by=asked.by,
            watch=asked.watch,
            requested_at=asked.at,
        )
        if not asked.confirm(run):
            raise NotWantedAnyMore
        if asked.kind is RunKind.MANUAL:
            start_waits.forget(project.pk, start.key)
        # The issue was read on this tracker; on another one its key means something else.
        same = {"tracker": project.tracker, "tracker_root": project.tracker_root}
        if not Project.objects.filter(pk=project.pk, **same).update(last_opened_at=lab.now()):
            raise NotWantedAnyMore
        who = _starter(asked.watch) if asked.kind is RunKind.AUTO else asked.by
        what = (
            "Started" if asked.before is None else f"Goes on from run {asked.before.run.pk}, asked"
        )
        text = f"{what}{f' by {who}' if who else ''} (slot {start.slot})"
        announce.tell(lab, NoticeKind.RUN_STARTING, text, run=run, by=asked.by)
        for effect in lab.effects.run_started:
            effect(lab, RunStart(run.pk, project.pk, run.issue_key))
        transaction.on_commit(lambda: lab.queue.on(run.host).launch(run.pk), robust=True)
    return run


def _agent(project: Project, settings: Settings, before: Before | None) -> dict[str, Any]:
    """The agent of a new run: that of the run before while it is there, in its session if it can."""
    own = before.run.profile if before is not None else None
    session = before.run.agent_session if before is not None else ""
    profile = own or project.agent or settings.agent
    is_general = profile == settings.agent
    return {
        "agent": profile.name if profile else "",
        "profile": profile,
        "model": settings.model if is_general else "",
        "effort": settings.effort if is_general else "",
        "agent_session": session if before and orders.goes_on(before.run, session) else "",
    }


def _taken_over(before: Before | None, now: datetime) -> dict[str, Any]:
    """What else a run has from the one that it goes on with."""
    if before is None:
        return {}
    return {
        "continues": before.run,
        "follow_up": before.follow_up,
        "amends": before.amends,
        "fork_point": before.run.fork_point,
        "worktree": before.run.worktree if Path(before.run.worktree or "-").is_dir() else "",
        "claimed_at": now,
        "resumed_at": now,
    }


def _starter(watch: WatchSession | None) -> str:
    if watch is None or watch.is_auto:
        return "automatic work"
    return f"watch session {watch.pk}"


@prepared
def _present(_now: datetime) -> QuerySet[Run, Any]:
    present = Run.objects.active().exclude(state=RunState.HELD)
    return present.values_list("host", "session", "slot", "state")


@prepared
def _driven(_now: datetime, model: type[ManualSession | Fixer]) -> QuerySet[Any, Any]:
    return model._default_manager.filter(ended_at=None).values_list("host", "session")


def room(
    lab: Lab,
    settings: Settings,
    sightings: Mapping[str, Sighting] | None,
    held: Collection[str] = (),
) -> Room:
    """Slots: live sessions of projects plus runs in *starting*.

    A session of `held` counts as long as its run is active: it may have come to life after the
    sessions were looked at, when it is neither seen nor *starting* any more. A held run has no
    session and takes no slot. Other hosts count by their active runs and by their sessions of people and fixers.
    """
    active = _present().rows()
    ours = [(session, slot, state) for host, session, slot, state in active if host == lab.host]
    taken = {slot for _, slot, _ in ours if slot}
    rows = list(Host.objects.with_silence())
    host_cap = next((row.session_cap for row in rows if row.name == lab.host), None)
    driven = [*_driven(ManualSession).rows(), *_driven(Fixer).rows()]
    mine = {session for host, session in driven if host == lab.host}
    elsewhere = len(active) - len(ours) + len(driven) - len(mine)
    used = Counter([host for host, *_ in active] + [host for host, _ in driven])
    if sightings is None:
        known = host_facts.of(lab, settings, rows, used)
        return Room(taken, None, settings.session_cap, elsewhere, host_cap, lab.host, known)
    slugs = dict(Project.objects.values_list("slug", "tracker"))
    live = {
        name
        for name, seen in sightings.items()
        if seen.alive and naming.session_project(name) in slugs
    }
    for name in live:
        parsed = naming.parse_session(name, rule_of(slugs[naming.session_project(name) or ""]))
        if parsed is not None and parsed.slot:
            taken.add(parsed.slot)
    starting = {
        session for session, _, state in ours if state == RunState.STARTING or session in held
    }
    used[lab.host] = occupied = len(live | starting | mine)
    known = host_facts.of(lab, settings, rows, used)
    return Room(taken, occupied, settings.session_cap, elsewhere, host_cap, lab.host, known)
