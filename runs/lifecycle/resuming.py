"""Starts held runs again when their agent's account can be used: the first part of a launch pass.

A run goes on in its own worktree and branch: in its agent's own session where that is known and
the program can, else with its task again. Nothing is fetched and nothing claimed.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from django.db import IntegrityError, transaction
from django.db.models import F, Q

from runs.accounts import hold_rules
from runs.core import budgets, naming, tokens
from runs.core.ports import Lab, SeamError, Sighting
from runs.core.states import NoticeKind, Outcome, RunKind, RunState, Trouble
from runs.core.tick_context import TickContext
from runs.dispatch import streak
from runs.dispatch.rules import Room, free_slot
from runs.lifecycle import outcomes, reaper
from runs.lifecycle.verdict import ServerFacts, is_server_lost
from runs.models import AgentProfile, Notice, Run, Settings
from runs.timeline import announce

logger = logging.getLogger(__name__)

START = timedelta(minutes=2)
LONGEST_WAIT = timedelta(hours=1)
TOLD_ONCE = timedelta(minutes=5)
LOST = "its session went with the tmux server"
MOST_FAILURES = 3  # then a program that never comes up has failed


class Gone(Exception):
    """What the run worked in is not there any more; the text says what."""


def waiting(lab: Lab, runs: Sequence[Run], sightings: Mapping[str, Sighting] | None) -> list[Run]:
    """Held runs that may go on: their profile is free and their old session is gone; oldest first."""
    if sightings is None:
        return []
    now = lab.now()
    found = [
        run
        for run in runs
        if run.is_held
        and run.session not in sightings
        and (run.retry_at is None or budgets.is_due(now, run.retry_at, LONGEST_WAIT))
    ]
    free = [run for run in found if not _is_held(lab, run)]
    return sorted(free, key=lambda run: (run.held_at or lab.now(), run.pk))


def _is_held(lab: Lab, run: Run) -> bool:
    profile = run.profile
    return profile is not None and hold_rules.is_held(profile.hold, profile.held_until, lab.now())


def resume(tick: TickContext, runs: Sequence[Run], room: Room) -> int:
    """Put these runs into *starting*, as far as the caps allow; how many. Raises lease.Lost.

    Their sessions count as taken from then on.
    """
    started = 0
    for run in runs:
        if room.occupied is None or room.full_at is not None:
            break
        slot = free_slot(room.taken)
        if not _resume(tick, run, slot):
            continue
        tick.being_made.add(run.session)
        room = replace(room, taken={*room.taken, slot}, occupied=room.occupied + 1)
        started += 1
    return started


def _resume(tick: TickContext, run: Run, slot: int) -> bool:
    lab, settings, now = tick.lab, tick.settings, tick.lab.now()
    chosen = _chosen(lab, settings, run)
    if chosen is None or not end_session(lab, run):
        return False
    since = min((at for at in (run.held_at, run.budget_stopped_at) if at is not None), default=now)
    # Who has not begun has used nothing of its budget.
    rested = max(0, int((now - since).total_seconds())) if run.started_at else 0
    is_general = chosen.pk == settings.agent_id
    fresh: dict[str, object] = {
        "state": RunState.STARTING,
        "slot": slot,
        "session": naming.session_name(run.project.slug, slot, run.issue_key, RunKind(run.kind)),
        "mark": tokens.new_mark(),
        "launcher": "",
        "launch_deadline": None,
        "held_at": None,
        "resumed_at": now,
        "interrupted_at": None,
        **forgotten(run),
    }
    if run.profile_id is None:  # the profile is gone: another agent has another session
        fresh |= {"profile": chosen, "agent": chosen.name, "agent_session": ""}
        fresh |= {"model": "", "effort": ""}
    if is_general:  # somebody may have chosen another one because this one was refused
        fresh |= {"model": settings.model, "effort": settings.effort}
    try:
        with transaction.atomic():
            tick.keep_lease()
            # Another run may have been turned away since this one was read.
            is_free = Q(profile=None) | Q(profile__hold="") | Q(profile__held_until__lte=now)
            rows = Run.objects.held().filter(is_free, pk=run.pk, held_at=run.held_at)
            if not rows.update(
                **fresh, rested_seconds=F("rested_seconds") + rested, resumes=F("resumes") + 1
            ):
                return False
            run.refresh_from_db()
            text = f"Started again (slot {slot})"
            announce.tell(lab, NoticeKind.RUN_STEP, text, run=run)
            transaction.on_commit(lambda: lab.queue.on(run.host).launch(run.pk), robust=True)
    except IntegrityError:
        logger.info(
            "held run was not resumed: its session's name is taken", extra={"run_id": run.pk}
        )
        return False
    return True


def ask_again(tick: TickContext, run: Run, seen: Mapping[str, object], told: str) -> bool:
    """Start a run again that ended by itself, in its agent's session, to ask it something; once.

    `seen` is what is known of its end. It keeps its slot. False when it was ended or asked meanwhile,
    or its last session is there still. Raises lease.Lost.
    """
    lab, now = tick.lab, tick.lab.now()
    if not end_session(lab, run):
        return False
    fresh: dict[str, object] = {
        **seen,
        **forgotten(run),
        "state": RunState.STARTING,
        "mark": tokens.new_mark(),
        "nudged_at": now,
        "resumed_at": now,
        "launcher": "",
        "launch_deadline": None,
        "token_hash": "",
    }
    with transaction.atomic():
        tick.keep_lease()
        if not Run.objects.working().filter(pk=run.pk, nudged_at=None).update(**fresh):
            return False
        announce.tell(lab, NoticeKind.RUN_STEP, told, run=run)
        transaction.on_commit(lambda: lab.queue.on(run.host).launch(run.pk), robust=True)
    run.refresh_from_db()
    tick.being_made.add(run.session)
    return True


def _chosen(lab: Lab, settings: Settings, run: Run) -> AgentProfile | None:
    """The agent that goes on: the run's own, or the project's once that is gone; None while held."""
    profile = run.profile or run.project.agent or settings.agent
    if profile is None or hold_rules.is_held(profile.hold, profile.held_until, lab.now()):
        return None
    return profile


def end_session(lab: Lab, run: Run) -> bool:
    """Whether nothing of its last session lives any more; ends what does, and its secrets.

    The next start has another mark, by which this session's processes could not be found again.
    """
    try:
        lab.sessions.kill(run.session, run.marker(lab.paths))
    except SeamError as error:
        logger.warning("held session was not ended", extra={"run_id": run.pk, "error": str(error)})
        return False
    lab.sessions.forget(lab.paths.run_folder(run.pk))
    return True


def forgotten(run: Run) -> dict[str, object]:
    """What the program told before it was held, and what would be taken for told by the next one."""
    fresh: dict[str, object] = {
        "trouble": Trouble.NONE,
        "agent_state": "",
        "agent_note": "",
        "agent_until": None,
        "agent_model": "",
        "api_status": None,
        "is_error": False,
        "result_subtype": "",
        "background_agents": 0,
        "began_at": None,
        "turn_ended_at": None,
        **{"asks": "", "asked_at": None, "question": "", "screen_mark": "", "screen_at": None},
        **{"waits": "", "waits_at": None, "waits_note": "", "budget_stopped_at": None},
        **{"turn_interrupted_at": None, "turn_interrupted_by": ""},
        **{"answer": "", "answered_by": "", "answered_at": None, "answered_mark": ""},
        "exit_status": None,
        "exit_signal": None,
        "exited_at": None,
        "last_words": "",
        "setup_again": None,
    }
    if run.output:
        fresh |= {"output_read": 0, "output_skips": False}
    return fresh


def is_at_its_start(lab: Lab, run: Run) -> bool:
    """Whether it was started again only just now."""
    return budgets.age(lab.now(), run.resumed_at) < START


def check_place(lab: Lab, run: Run) -> None:
    """Raises Gone when worktree or branch are not there any more, SeamError when git cannot say."""
    path = Path(run.worktree)
    if not run.worktree or not path.is_dir():
        raise Gone(f"its worktree {run.worktree} is not there any more")
    if lab.repos.tip(run.project.repo(lab.paths), f"refs/heads/{run.branch}") is None:
        raise Gone(f"its branch {run.branch} is not there any more")


def gone(lab: Lab, run: Run, why: str) -> None:
    """End a run that has nothing to go on with; nobody's failure."""
    text = f"could not go on: {why}"
    if outcomes.record(lab, run, Outcome.INTERRUPTED, text, seen={"launcher": ""}):
        reaper.settle(lab, run)


def wait_again(
    lab: Lab,
    run: Run,
    why: str,
    *,
    states: Collection[RunState],
    anew: bool = False,
    is_told: bool = False,
) -> bool:
    """Hold a run again that did not come to life; `anew`: the next try gives it its task again.

    The session that it may have got is ended first, or by the next tick. After the first failure it
    is tried again at once, after more of them later and later, and that is told, on the run's page
    alone where it `is_told` elsewhere.
    """
    try:
        lab.sessions.kill(run.session, run.marker(lab.paths))
        lab.sessions.forget(lab.paths.run_folder(run.pk))
    except SeamError as error:
        why = f"{why}; its session could not be ended yet: {error}"
    failures = run.resume_failures + 1
    back: dict[str, object] = {"state": RunState.HELD, "held_at": lab.now(), "slot": None}
    wait = lab.now() + streak.wait_after(failures - 1) if failures > 1 else None
    back |= {"resume_failures": failures, "retry_at": wait}
    back |= {"agent_note": lab.mask(why)[:300]}
    back |= {"launcher": "", "token_hash": ""} | ({"agent_session": ""} if anew else {})
    rows = Run.objects.active().filter(pk=run.pk, state__in=list(states))
    with transaction.atomic():
        won = rows.update(**back)
        if won:
            how = "it gets its task again" if anew else "it is tried again"
            is_news = failures == 2 and not is_told
            kind = NoticeKind.RUN_TROUBLED if is_news else NoticeKind.RUN_STEP
            announce.tell(lab, kind, f"did not go on: {why}; {how}", run=run)
    if won:
        run.refresh_from_db()
    return bool(won)


def go_on_after_loss(lab: Lab, run: Run, *, has_finished: bool) -> bool:
    """Hold a run whose session went with its tmux server, so that the launch pass starts it again.

    That is nobody's failure, and is told once for all runs of the server.
    """
    if not run.server or run.is_loop or run.resume_failures >= MOST_FAILURES:
        return False
    runs = Run.objects.active().filter(host=lab.host, server=run.server)
    facts = ServerFacts(
        began_on=run.server,
        now=lab.sessions.server(),
        boot=lab.process.partition(":")[0],
        runs=runs.count(),
        has_finished=has_finished,
    )
    if not is_server_lost(facts):
        return False
    if not wait_again(lab, run, LOST, states=[RunState.WORKING], is_told=True):
        return False
    since = lab.now() - TOLD_ONCE
    told = Notice.objects.filter(kind=NoticeKind.SESSIONS_LOST, at__gt=since)
    if not told.filter(text__contains=f" on {lab.host} ").exists():
        with transaction.atomic():
            announce.tell(lab, NoticeKind.SESSIONS_LOST, _loss(lab.host, facts.runs))
    return True


def _loss(host: str, runs: int) -> str:
    """What happened to all sessions of a machine, what was not harmed, and what follows."""
    many = "its run goes" if runs == 1 else f"its {runs} runs go"
    return (
        f"the sessions on {host} were lost at once: the machine was restarted, or the tmux server "
        f"was ended. Worktrees and branches are as they were, {many} on, and this counts as no failure"
    )
