"""Decides what the runner of a loop does next: takes the report of a turn, and orders the next one.

Safe to call twice with the same report: a turn is stored once, by compare-and-set on the loop's
version, and whoever asks again is given the order that stands.
"""

from __future__ import annotations

import logging
import os.path
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import F

from runs.accounts import holds
from runs.accounts.refusal_rules import Refused
from runs.core.ports import Lab
from runs.core.states import LoopState, NoticeKind, Outcome
from runs.lifecycle import outcomes
from runs.loops import issue_of_loop, ordering, questions, results, rules, stored, taking
from runs.loops.events import ASK, Event, newest
from runs.loops.results import Finished, Result
from runs.loops.roles import COORDINATOR, first_events, next_turn
from runs.loops.rules import Counters, End, Next, Outside, Terms
from runs.models import (
    Host,
    Loop,
    LoopTask,
    LoopTurn,
    Run,
    Settings,
)
from runs.spending import gathering
from runs.timeline import announce

logger = logging.getLogger(__name__)

AWAY_AFTER = timedelta(seconds=60)
LOOK_AGAIN = timedelta(seconds=10)
REFUSED_WAIT = timedelta(minutes=5)
TRIES = 5
# What a runner asks with that was ended by a signal, in a turn or between two.
INTERRUPTED = "interrupted"
NO_AGENT = "its agent is not there any more; choose one on the loop settings of this project"
COST_UNKNOWN = (
    "a turn ended without telling its cost, so the limit of money counts what the others told; the "
    "limits of turns and time hold"
)
NOT_RUN = "its runner was interrupted before it began"
IDLES = "there is nothing to do; it looks again after {} s, or when somebody writes"
ELSEWHERE = "its session runs on another machine, whose own labsite has to be asked"
AWAY = "labsite's worker is away, so no turn is begun; it goes on as soon as the worker is back"
OUTCOMES = {
    End.COMPLETED: Outcome.SUCCEEDED,
    End.CANCELLED: Outcome.SUCCEEDED,
    End.STOPPED: Outcome.STOPPED,
    End.INTERRUPTED: Outcome.INTERRUPTED,
    End.TURNS: Outcome.LIMIT_REACHED,
    End.RUNTIME: Outcome.LIMIT_REACHED,
    End.COST: Outcome.LIMIT_REACHED,
}


class Raced(Exception):
    """Somebody else changed the loop meanwhile: look again."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a runner says when it asks. `number` 0: it has run no turn of this generation yet."""

    number: int
    generation: int
    result: Result | None = None
    asks: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the runner does now; `content` as the design of the agent API has it."""

    do: str
    content: Mapping[str, Any] = field(default_factory=dict)


def step(lab: Lab, run: Run, report: Report) -> Answer:
    """Take a report, and say what comes next. Raises TrackerError where an issue could not be read."""
    if run.host != lab.host:
        return _wait(LOOK_AGAIN, ELSEWHERE)
    for _ in range(TRIES):
        # Read anew each time: what a try that was undone had counted on its rows is gone with it.
        rows = Loop.objects.select_related("run__project", "run__profile")
        loop = rows.get(run_id=run.pk)
        try:
            return _step(lab, loop, report)
        except Raced:
            continue
    return _wait(LOOK_AGAIN, "somebody else changes this loop at the moment")


def _step(lab: Lab, loop: Loop, report: Report) -> Answer:
    if loop.end:
        return _end_of(loop)
    if report.asks and report.generation == loop.generation:
        _note_wish(lab, loop, report.asks)
    if loop.state == LoopState.TURN:
        turn = loop.turns.select_related("profile").get(ended_at=None)
        turn.loop = loop
        is_its = (report.generation, report.number) == (turn.generation, turn.number)
        if report.result is not None and is_its:
            _finish(lab, loop, turn, report.result)
        elif turn.profile is None:
            _take_back(lab, loop, turn)
        elif report.asks != INTERRUPTED:
            return _order(lab, turn)
    if not loop.end and report.asks == INTERRUPTED:
        with transaction.atomic():
            loop.turns.filter(ended_at=None).update(ended_at=lab.now(), trouble=NOT_RUN)
            _end(lab, loop, End.INTERRUPTED, {})
    return _end_of(loop) if loop.end else _next(lab, loop)


def _take_back(lab: Lab, loop: Loop, turn: LoopTurn) -> None:
    """A turn that was ordered and cannot be run, since its agent was deleted meanwhile."""
    with transaction.atomic():
        rows = LoopTurn.objects.filter(pk=turn.pk, ended_at=None)
        if not rows.update(ended_at=lab.now(), trouble=NO_AGENT):
            raise Raced
        _store(loop, {"state": LoopState.BETWEEN, **_given_back(loop, turn)})


def _finish(lab: Lab, loop: Loop, turn: LoopTurn, result: Result) -> None:
    """Store what a turn left, and what the rules say of it."""
    terms, counters = stored.terms(loop.terms["rules"]), stored.counters(loop.counters)
    found = results.read(lab, turn, result, counters.malformed)
    if found.refused_until is not None and not result.is_interrupted:
        _refused(lab, loop, turn, found)
        return
    if issue_of_loop.was_taken_in(turn):
        found = replace(found, turn=replace(found.turn, has_worked=True))
    after, announced = rules.count(terms, counters, found.turn)
    outside = _outside(lab, loop, is_interrupted=result.is_interrupted)
    said = rules.next_step(terms, after, found.turn, outside)
    with transaction.atomic():
        given_up = (rules.given_up(terms, event) for event in announced)
        _keep_turn(lab, turn, found, after, (*given_up, *said.told))
        checked_in = _check_in(lab, loop, turn, after)
        if terms.limits.cost is not None and counters.is_cost_whole and not after.is_cost_whole:
            announce.tell(lab, NoticeKind.RUN_WARNED, COST_UNKNOWN, run=loop.run)
        following = issue_of_loop.complete(lab, loop, terms.completion) if said.completes else {}
        left = [*_not_heard(turn, found), *stored.events(loop.pending)]
        left += [*found.turn.batch.events, *announced]
        if following and loop.terms.get("cleans_up"):
            left = []
        pending = [*left, *said.put]
        columns: dict[str, Any] = {
            "counters": stored.of_counters(rules.after(said, after)),
            "pending": stored.of_events(_heard(terms, pending)),
            **checked_in,
            **following,
        }
        # A restart is no end: it is carried out between two turns.
        if said.next is Next.END and said.end not in (None, End.RESTART):
            _end(lab, loop, End(said.end), columns)
            return
        columns |= _pause(lab, loop, is_idle=said.next is Next.IDLE, is_done=bool(following))
        columns |= questions.ask(lab, loop, found.turn.batch.events)
        _store(loop, columns)


def _not_heard(turn: LoopTurn, found: Finished) -> tuple[Event, ...]:
    """The events of a turn that failed without a word: nobody has acted on them."""
    if found.turn.exit_code == 0 or found.turn.batch.events:
        return ()
    return tuple(stored.facts(turn.facts).events)


def _check_in(lab: Lab, loop: Loop, turn: LoopTurn, counters: Counters) -> dict[str, Any]:
    """Tell how the loop stands where that is due; the columns that note it."""
    every = loop.terms["check_in_seconds"]
    interval = None if every is None else timedelta(seconds=every)
    if not rules.is_check_in_due(lab.now(), loop.checked_in_at, interval):
        return {}
    closed = loop.tasks.filter(state=LoopTask.State.CLOSED).count()
    found = rules.CheckIn(
        turn=turn.number,
        age=loop.run.age(lab.now()),
        role=turn.role,
        open_tasks=loop.tasks.count() - closed,
        closed_tasks=closed,
        cost=counters.cost if counters.is_cost_whole else None,
    )
    announce.tell(lab, NoticeKind.LOOP_CHECK_IN, found.words, run=loop.run)
    return {"checked_in_at": lab.now()}


def _heard(terms: Terms, pending: list[Event]) -> tuple[Event, ...]:
    """What turns to come are told: not the completion signal, and not what a person is asked."""
    return newest([event for event in pending if event.topic not in (terms.completion, ASK)])


def _pause(lab: Lab, loop: Loop, *, is_idle: bool, is_done: bool) -> dict[str, Any]:
    """How long the next turn waits and why. Idle with an issue that is done, it first asks for another."""
    seconds = int(loop.terms["idle_seconds" if is_idle else "cooldown_seconds"])
    state, why = LoopState.BETWEEN, f"a pause of {seconds} s before each turn" if seconds else ""
    if is_idle:
        state, why = LoopState.IDLE, IDLES.format(seconds)
    until = lab.now() + timedelta(seconds=0 if is_idle and is_done else seconds)
    return {"state": state, "not_before": until, "why": why}


def _refused(lab: Lab, loop: Loop, turn: LoopTurn, found: Finished) -> None:
    """An account that turned the agent away makes no failed turn: the same one is run once it may.

    The account is held as that of any run is, which is told once. The wait is no time of the loop.
    """
    refused = Refused(found.report.trouble, found.note, found.report.agent_until)
    counters = stored.counters(loop.counters)
    spent = replace(counters, cost=counters.cost + (found.report.cost_usd or 0))
    why = f"the agent's account turned it away: {found.note}"
    with transaction.atomic():
        _keep_turn(lab, turn, replace(found, is_refused=True), spent, (why,))
        if turn.profile is not None:
            holds.hold_start(lab, turn.profile, refused)
            turn.profile.refresh_from_db()
        until = (turn.profile and turn.profile.held_until) or lab.now() + REFUSED_WAIT
        rested = F("rested_seconds") + max(0, int((until - lab.now()).total_seconds()))
        Run.objects.filter(pk=loop.run_id).update(rested_seconds=rested)
        columns = {
            **{"state": LoopState.BETWEEN, "not_before": until, "why": why[:300]},
            **{"counters": stored.of_counters(spent), **_given_back(loop, turn)},
        }
        _store(loop, columns)
    loop.run.refresh_from_db()


def _given_back(loop: Loop, turn: LoopTurn) -> dict[str, Any]:
    """The columns with which a turn that was not worked off leaves its events to the next one."""
    facts = stored.facts(turn.facts)
    nearing = {end.value for end in facts.nearing}
    return {
        "pending": stored.of_events([*facts.events, *stored.events(loop.pending)]),
        "limits_told": [end for end in loop.limits_told if end not in nearing],
    }


def _keep_turn(
    lab: Lab, turn: LoopTurn, found: Finished, counters: Counters, told: tuple[str, ...]
) -> None:
    """Write the turn's row, with what is used by now, and its use on the run; tell both."""
    loop = turn.loop
    columns = {
        **{**found.columns, "was_refused": found.is_refused, "told": list(told)},
        **{"used_turns": counters.turns, "used_cost": counters.cost},
        "used_seconds": loop.run.age(lab.now()).total_seconds(),
    }
    rows = LoopTurn.objects.filter(pk=turn.pk, ended_at=None)
    if not rows.update(**columns, ended_at=lab.now()):
        raise Raced
    results.add_use(lab, loop.run, found)
    text = f"turn {turn.number} ({turn.role}) {found.words}"
    announce.tell(lab, NoticeKind.LOOP_TURN, text, run=loop.run)
    for sentence in told:
        announce.tell(lab, NoticeKind.LOOP_STEP, sentence, run=loop.run)


def _next(lab: Lab, loop: Loop) -> Answer:
    """What is done between two turns: end, wait, begin anew, or order the next one."""
    terms, counters = stored.terms(loop.terms["rules"]), stored.counters(loop.counters)
    end = next(rules.reached(terms.limits, counters, _outside(lab, loop)), None)
    if end is End.RESTART:
        return _restart(lab, loop)
    if end is not None:
        with transaction.atomic():
            _end(lab, loop, end, {})
        return _end_of(loop)
    waits = _waits(lab, loop, terms)
    if waits is not None:
        return waits
    if loop.began_at is None or not loop.objective:
        _begin(lab, loop)
    poll = taking.before_turn(lab, loop)
    if poll is not None:
        if poll.columns:
            _store(loop, poll.columns)
        return _wait(poll.pause, poll.why)
    return _order(lab, _make_turn(lab, loop, terms, counters))


def _waits(lab: Lab, loop: Loop, terms: Terms) -> Answer | None:
    """Why the next turn is not begun yet; None when it may be."""
    now = lab.now()
    role = next_turn(stored.roles(loop.roles), stored.events(loop.pending)).role
    profile = ordering.profile(loop, role)
    if profile is None:
        return _wait(LOOK_AGAIN, NO_AGENT)
    if profile.held_until is not None and profile.held_until > now:
        why = f"{profile.name} cannot be used: {profile.hold_note or profile.hold}"
        return _wait(min(profile.held_until - now, REFUSED_WAIT), why[:300])
    if loop.not_before is not None and loop.not_before > now and not questions.is_told(loop):
        return _wait(min(loop.not_before - now, _time_left(lab, loop, terms)), loop.why)
    tick = Host.objects.filter(name=lab.host).values_list("last_tick_at", flat=True).first()
    if tick is None or now - tick > AWAY_AFTER:
        return _wait(LOOK_AGAIN, AWAY)
    hold = gathering.spending(Settings.current(), [loop.run.project], now).hold(loop.run.project)
    return _wait(LOOK_AGAIN, hold) if hold else None


def _time_left(lab: Lab, loop: Loop, terms: Terms) -> timedelta:
    """After how long a loop that waits has to look whether its most time is over."""
    runtime = terms.limits.runtime
    left = timedelta.max if runtime is None else runtime - loop.run.age(lab.now())
    return max(left, LOOK_AGAIN)  # that may stand still, while a person is waited for


def _begin(lab: Lab, loop: Loop) -> None:
    """The objective is read once: whatever becomes of the issue, all turns have this text."""
    objective = loop.objective or results.objective(lab, loop.run)
    _store(loop, {"objective": objective, "began_at": lab.now(), "checked_in_at": lab.now()})
    Run.objects.filter(pk=loop.run_id).update(prompt=objective)


def _make_turn(lab: Lab, loop: Loop, terms: Terms, counters: Counters) -> LoopTurn:
    """Store the next turn with the facts of its prompt."""
    given = next_turn(stored.roles(loop.roles), stored.events(loop.pending))
    guidance = list(loop.guidance.filter(acknowledged_at=None))
    nearing = rules.nearing(terms.limits, counters, _outside(lab, loop))
    new = {end: text for end, text in nearing.items() if end.value not in loop.limits_told}
    facts = ordering.facts(lab, loop, given, [one.text for one in guidance])
    unanswered = questions.unanswered(loop, guidance)
    facts = replace(facts, nearing=new, unanswered=unanswered)
    profile = ordering.profile(loop, given.role)
    with transaction.atomic():
        number = loop.number + 1
        columns = {
            **{"state": LoopState.TURN, "number": number, "not_before": None, "why": ""},
            "are_notes_new": False,
            "pending": stored.of_events(given.left),
            "limits_told": [*loop.limits_told, *(end.value for end in new)],
        }
        _store(loop, columns)
        turn = LoopTurn.objects.create(
            loop=loop,
            generation=loop.generation,
            number=number,
            role=given.role.name if given.role else COORDINATOR,
            profile=profile,
            agent=profile.name if profile else "",
            model=ordering.model(loop, given.role),
            output=profile.output if profile else "",
            **issue_of_loop.of_turn(loop),
            facts=stored.of_facts(facts),
            ordered_at=lab.now(),
            head_before=results.head(lab, loop.run),
        )
        questions.drop(lab, loop.run, unanswered)
        loop.guidance.filter(pk__in=[one.pk for one in guidance], given_in=None).update(
            given_in=turn
        )
        if facts.stands_on and not _stood_there(turn, facts.stands_on):
            astray = f"the worktree is on {facts.stands_on}, not on {facts.branch}"
            announce.tell(lab, NoticeKind.LOOP_STEP, astray, run=loop.run)
        text = f"turn {number} begins ({turn.role})"
        announce.tell(lab, NoticeKind.LOOP_TURN, text, run=loop.run)
    return turn


def _stood_there(turn: LoopTurn, place: str) -> bool:
    """Return whether the turn before found the worktree on the same other branch, which was told then."""
    before = LoopTurn.objects.filter(
        loop=turn.loop_id, generation=turn.generation, number=turn.number - 1
    )
    return any(one.get("stands_on") == place for one in before.values_list("facts", flat=True))


def _order(lab: Lab, turn: LoopTurn) -> Answer:
    if turn.profile is None:
        return _wait(LOOK_AGAIN, NO_AGENT)
    return Answer("turn", ordering.content(lab, turn, turn.profile))


def _restart(lab: Lab, loop: Loop) -> Answer:
    """Begin anew: counters, events and tasks are new; memories, guidance and the objective stay."""
    with transaction.atomic():
        columns = {
            **{"generation": loop.generation + 1, "number": 0, "state": LoopState.BETWEEN},
            **{"counters": {}, "limits_told": [], "not_before": None, "why": ""},
            "pending": stored.of_events(first_events(stored.roles(loop.roles))),
            **{"restart_asked_at": None, "restart_asked_by": "", "are_notes_new": False},
        }
        by = loop.restart_asked_by
        _store(loop, columns)
        questions.drop(lab, loop.run)
        loop.tasks.exclude(state=LoopTask.State.CLOSED).update(
            state=LoopTask.State.CLOSED, note="the loop was begun anew", closed_at=lab.now()
        )
        text = f"begins anew, generation {loop.generation}"
        announce.tell(lab, NoticeKind.LOOP_STEP, text, run=loop.run, by=by)
    return Answer("restart", {"generation": loop.generation})


def _end(lab: Lab, loop: Loop, end: End, columns: Mapping[str, Any]) -> None:
    """Store the end and the outcome of the run; the reason says turns, time and code."""
    final = {"state": LoopState.ENDED, "end": end.value, "exit_code": end.code}
    _store(loop, {**columns, **final, "ended_at": lab.now(), "not_before": None, "why": ""})
    outcome = OUTCOMES.get(end, Outcome.FAILED)
    # The runner's program ends with the same code, which its session may not live to tell.
    seen: dict[str, object] = {"exit_status": end.code}
    if loop.run.started_at is None:  # over before its launcher had looked again
        seen["started_at"] = loop.began_at or lab.now()
    outcomes.record(lab, loop.run, outcome, _reason(lab, loop, end), seen=seen)
    slug = loop.run.project.slug
    transaction.on_commit(lambda: lab.bell.look(slug), robust=True)  # slot and worktree are freed


def _reason(lab: Lab, loop: Loop, end: End) -> str:
    counters = stored.counters(loop.counters)
    minutes = int(loop.run.age(lab.now()).total_seconds() // 60)
    turns = f"{counters.turns} turn{'' if counters.turns == 1 else 's'}"
    by = f" by {loop.stop_asked_by}" if end is End.STOPPED and loop.stop_asked_by else ""
    return f"{end.words}{by} after {turns} and {minutes} min (loop code {end.code})"


def _end_of(loop: Loop) -> Answer:
    end = End(loop.end)
    return Answer("end", {"code": end.code, "reason": end.words})


def _wait(pause: timedelta, why: str) -> Answer:
    return Answer("wait", {"seconds": max(0.0, pause.total_seconds()), "why": why})


def _outside(lab: Lab, loop: Loop, *, is_interrupted: bool = False) -> Outside:
    run = loop.run
    return Outside(
        age=run.age(lab.now()),
        open_tasks=loop.tasks.exclude(state=LoopTask.State.CLOSED).count(),
        unacknowledged=loop.guidance.filter(acknowledged_at=None).count(),
        wants_stop=loop.stop_asked_at is not None,
        wants_restart=loop.restart_asked_at is not None,
        has_workspace=os.path.isdir(run.worktree) if run.host == lab.host else None,  # noqa: PTH112
        is_interrupted=is_interrupted,
    )


def _note_wish(lab: Lab, loop: Loop, asks: str) -> None:
    """A signal file that its runner has found asks for a stop or a restart."""
    if asks not in ("stop", "restart") or getattr(loop, f"{asks}_asked_at") is not None:
        return
    _store(loop, {f"{asks}_asked_at": lab.now(), f"{asks}_asked_by": "a signal file"})


def _store(loop: Loop, columns: Mapping[str, Any]) -> None:
    """Write columns if nobody has changed the loop since it was read. Raises Raced."""
    rows = Loop.objects.filter(pk=loop.pk, version=loop.version)
    if not rows.update(**columns, version=loop.version + 1):
        raise Raced
    loop.version += 1
    for name, value in columns.items():
        setattr(loop, name, value)
