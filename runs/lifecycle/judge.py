"""From facts to outcomes: asks trackers, applies the verdict, records through the one door."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache, partial

from runs.accounts import holds
from runs.accounts.refusal_rules import Refused
from runs.agents import orders
from runs.core import budgets
from runs.core.ports import Lab, Sighting
from runs.core.states import Outcome, OutputKind, RunState, Trouble, Wait
from runs.core.tick_context import TickContext
from runs.followups import nudge_rules
from runs.followups import rules as followups
from runs.followups.nudge_rules import Stopped
from runs.forges import cadence, fan_out, tracker_health
from runs.forges.fan_out import Root, Silence
from runs.forges.tracker_cache import note_pulls
from runs.lifecycle import (
    beginnings,
    checking,
    delivery,
    delivery_rules,
    done_signal,
    outcomes,
    reaper,
    resuming,
)
from runs.lifecycle.delivery_rules import Evidence, wants_look
from runs.lifecycle.done_signal import Signal, Word
from runs.lifecycle.verdict import (
    LINGERED,
    MOST_VAIN,
    REFUSED,
    REFUSED_TWICE,
    Another,
    Ending,
    PrintFacts,
    RunFacts,
    VainFacts,
    after_refusal,
    after_vain_resumes,
    has_lingered,
    refused_always,
    verdict,
    why_dead,
)
from runs.models import Run
from runs.spending import gathering, limit_rules
from runs.telemetry import log_context
from runs.transcript import listening
from runs.transcript import models as transcript_models
from runs.transcript.record import Reading
from runs.transcript.reports import Report
from runs.waits import rules as wait_rules
from trackers.base import Pull

logger = logging.getLogger(__name__)

JUST_NOW = timedelta(seconds=30)
# A loop says itself how it ended, whatever its tracker shows.
NO_END = "no word of its loop that it is done"


def judge(tick: TickContext, runs: Sequence[Run]) -> list[Run]:
    """End each working run whose facts prove an outcome; returns those that this call ended.

    One whose agent was turned away for its account's sake is held instead, and is in no list.

    Local trackers are asked first and their runs settled first; the others are asked side by
    side under one deadline, and what has not answered by then is "could not tell": no error of a tracker ever ends a run. Ages are those at the tick's `now`.
    """
    working = [run for run in runs if run.state == RunState.WORKING]
    if tick.sightings is None or not working:
        return []
    spending = gathering.spending(tick.settings, [run.project for run in working], tick.now)
    for run in working:
        run.over = limit_rules.reached(spending.of_run(run))
    sightings = _without_lingering(tick, working, tick.sightings)
    ended: list[Run] = []
    for run, signal_of in _signals(tick, working, sightings):
        with tick.going_on(f"run {run.pk} could not be judged", **log_context.of(run)):
            if _judge_one(tick, run, signal_of(), sightings.get(run.session)):
                ended.append(run)
    return ended


def _without_lingering(
    tick: TickContext, runs: Sequence[Run], sightings: Mapping[str, Sighting]
) -> Mapping[str, Sighting]:
    """Note which programs printed their result and do not exit; their sessions count as ended."""
    found = dict(sightings)
    for run in runs:
        seen = found.get(run.session)
        if run.is_loop or not run.output or seen is None or not seen.alive:
            continue
        at = run.last_output_at
        silent_for = budgets.age(tick.now, at) if at is not None else None
        facts = PrintFacts(bool(run.result_subtype), silent_for, run.background_agents)
        run.has_lingered = has_lingered(facts)
        if run.has_lingered:
            found[run.session] = replace(seen, alive=False)
    return found


def _judge_one(tick: TickContext, run: Run, signal: Signal, sighting: Sighting | None) -> bool:
    lab, lease = tick.lab, tick.number
    alive = sighting is not None and sighting.alive
    seen: dict[str, object] = dict(signal.seen)
    if not alive:
        seen |= reaper.seen_exit(sighting, reaper.exit_file(lab, run))
    # Its word explains and decides nothing: the tracker was asked after it was seen dead.
    reading = listening.finish(lab, run) if run.output and not alive else None
    facts = RunFacts(
        is_done=signal.is_done,
        alive=alive,
        age=run.age(tick.now),
        budget=run.budget(tick.settings),
        was_interrupted=run.interrupted_at is not None,
        trouble=_trouble(run, reading),
        is_over_limit=run.over is not None,
    )
    outcome = verdict(facts)
    if reading is not None and (outcome is not Outcome.SUCCEEDED or run.is_gated):
        seen |= transcript_models.columns(reading, run, tick.now)
    if outcome is Outcome.SUCCEEDED and run.is_gated:
        checking.begin(lab, run, seen, lease)
        return False
    if outcome is RunState.HELD:
        return _wait_for_account(tick, run, _refused(run, facts.trouble, reading), seen)
    if outcome is None or (outcome is Outcome.DIED and _goes_on(tick, run, seen, reading)):
        return False
    said = f"{_waited(run, tick.now) if alive else ''}{_was_asked(lab, run)}"
    said += delivery.tell_elsewhere(lab, run, outcome)
    reason = _reason(outcome, facts, signal, _ending(run, seen, reading), said)
    if outcome is Outcome.OVER_LIMIT and run.over is not None:
        reason = limit_rules.ended(run.over)
    failure, more = _failure(lab, run, seen, reading) if outcome is Outcome.DIED else ("", {})
    if failure:
        outcome, reason = Outcome.FAILED, failure
    seen |= more
    return outcomes.record(lab, run, outcome, reason, lease=lease, seen=seen)


def _wait_for_account(
    tick: TickContext, run: Run, refused: Refused, seen: Mapping[str, object]
) -> bool:
    """Hold a run until its account can be used again; True when it was ended instead.

    One whose session alone is refused each time it goes on gets a fresh session once.
    """
    lab = tick.lab
    times = holds.count_vain_resumes(lab, run, seen)
    facts = VainFacts(
        times,
        refused.trouble,
        do_others_work=times >= MOST_VAIN and holds.do_others_work(lab, run),
        was_fresh=run.resume_failures > 0,
    )
    step = after_vain_resumes(facts)
    if step is Another.SAME:
        holds.hold(lab, run, refused, seen, tick.number)
        return False
    why = refused_always(times, refused.words, is_over=step is Another.NONE)
    if step is Another.NONE:
        return outcomes.record(lab, run, Outcome.FAILED, why, lease=tick.number, seen=seen)
    resuming.wait_again(lab, run, why, states=[RunState.WORKING], anew=True)
    return False


def _failure(
    lab: Lab, run: Run, seen: Mapping[str, object], reading: Reading | None
) -> tuple[str, Mapping[str, object]]:
    """Why a run that died is called failed, and what is stored beside; empty for any other death."""
    late = beginnings.late_failure(lab, run, seen)
    if late:
        return late, beginnings.UNSTARTED
    return REFUSED_TWICE if _is_refused(run, reading) else "", {}


def _reason(outcome: Outcome, facts: RunFacts, signal: Signal, ending: Ending, waited: str) -> str:
    """Why the run ended so, in a sentence; `waited`: what else is known of its end."""
    if outcome is Outcome.DIED:
        return f"{why_dead(ending, signal.missing)}{waited}"
    if outcome is Outcome.TIMED_OUT:
        return f"{signal.missing} after {minutes(facts.budget)}{waited}"
    if outcome is Outcome.INTERRUPTED:
        return "its watch session was aborted, and it ended when it was interrupted; work is kept"
    return signal.proof


def _waited(run: Run, now: datetime) -> str:
    """What its waits did with the budget, for the end of a sentence."""
    if not run.waits or run.answered_at is not None:
        return wait_rules.budget_words(run.waited(now), run.project.waits_stop_budget)
    long = minutes(budgets.age(now, run.waits_at))
    if run.waits == Wait.QUIET:
        return f"; its screen had not changed for the last {long}"
    return f"; it waited for a person for the last {long}"


def _trouble(run: Run, reading: Reading | None) -> Trouble:
    """The account's trouble in which the agent stopped; without a profile nothing can be held."""
    if run.profile_id is None:
        return Trouble.NONE
    return reading.report.trouble if reading is not None else holds.trouble_of(run)


def _refused(run: Run, trouble: Trouble, reading: Reading | None) -> Refused:
    if reading is None:
        return Refused(trouble, run.agent_note, run.agent_until)
    return Refused(trouble, reading.report.agent_note, reading.report.agent_until)


def _goes_on(
    tick: TickContext, run: Run, seen: Mapping[str, object], reading: Reading | None
) -> bool:
    """Whether a program that has ended is started again."""
    if _is_refused(run, reading):
        return _goes_on_after_refusal(tick.lab, run)
    has_result = reading is not None and reading.report.has_result
    has_finished = run.is_one_shot and (has_result or seen.get("exit_status") == 0)
    if resuming.go_on_after_loss(tick.lab, run, has_finished=has_finished):
        return True
    return _did_not_go_on(tick.lab, run, reading) or _is_asked_again(tick, run, seen, reading)


def _is_refused(run: Run, reading: Reading | None) -> bool:
    """Whether its service refused what it was told of the gates, and not for its account's sake."""
    if reading is None or not run.was_reentered:
        return False
    return reading.report.is_error and reading.report.api_status == REFUSED


def _goes_on_after_refusal(lab: Lab, run: Run) -> bool:
    step = after_refusal(run.resume_failures)
    if step is Another.NONE:
        return False
    why = f"its service refused to go on with its session (error {REFUSED})"
    states = [RunState.WORKING]
    return resuming.wait_again(lab, run, why, states=states, anew=step is Another.FRESH)


def _is_asked_again(
    tick: TickContext, run: Run, seen: Mapping[str, object], reading: Reading | None
) -> bool:
    """Whether a one-shot agent that ended well without a delivery is asked once for it."""
    if reading is None:
        return False
    session = reading.report.agent_session or run.agent_session
    found = Stopped(
        is_on=tick.settings.nudges,
        was_asked=run.nudged_at is not None,
        is_well=(seen.get("exit_status") == 0 or run.has_lingered) and not reading.report.is_error,
        can_be_told=orders.goes_on(run, session),
        is_adding=run.amends is not None or run.is_gated,
    )
    if not nudge_rules.is_asked(found):
        return False
    told = nudge_rules.told(of_commits=cadence.is_without_pulls(tick.lab, run.project))
    told = f"{LINGERED}; {told}" if run.has_lingered else told
    return resuming.ask_again(tick, run, {**seen, "agent_session": session}, told)


def _was_asked(lab: Lab, run: Run) -> str:
    """That it had been asked for its delivery, for the end of a sentence."""
    if run.nudged_at is None:
        return ""
    return (
        f"; it had been {nudge_rules.told(of_commits=cadence.is_without_pulls(lab, run.project))}"
    )


def _did_not_go_on(lab: Lab, run: Run, reading: Reading | None) -> bool:
    """Whether a program ended before it took its own session up again: then it gets its task."""
    has_begun = run.began_at is not None or (
        reading is not None and _shows_work(run, reading.report)
    )
    is_typed_to = (
        run.was_reentered and not run.is_one_shot
    )  # its session lived on, and has died now
    if not run.takes_up or run.is_nudged_only or not run.agent_session or has_begun or is_typed_to:
        return False
    if run.resume_failures >= resuming.MOST_FAILURES:
        return False
    if not resuming.is_at_its_start(lab, run):
        return False
    why = "its agent did not take its own session up again"
    return resuming.wait_again(lab, run, why, states=[RunState.WORKING], anew=True)


def _shows_work(run: Run, report: Report) -> bool:
    """Whether a one-shot program got as far as its task: it names its model, or began a turn.

    The end of a Claude Code that does not know the session counts a turn too, so of it the model
    alone counts; Codex names none, and tells a turn when it begins one.
    """
    if run.output != OutputKind.CODEX:
        return bool(report.agent_model)
    return (report.turns or 0) > report.used_tokens.turns


def _ending(run: Run, seen: Mapping[str, object], reading: Reading | None) -> Ending:
    """How a program ended, and what it told up to its end."""
    status, number = seen.get("exit_status"), seen.get("exit_signal")
    return Ending(
        run.mode,
        status if isinstance(status, int) else None,
        number if isinstance(number, int) else None,
        reading.report if reading is not None else None,
        run.has_lingered,
    )


def _exit_status(tick: TickContext, run: Run, sighting: Sighting | None) -> int | None:
    """How its program ended; of one that does not exit its result says whether that was well."""
    if run.has_lingered:
        return 1 if run.is_error else 0
    status = reaper.seen_exit(sighting, reaper.exit_file(tick.lab, run)).get("exit_status")
    return status if isinstance(status, int) else None


def minutes(length: timedelta) -> str:
    """A budget as people say it."""
    whole = int(length.total_seconds() // 60)
    return f"{whole} min"


def _signals(
    tick: TickContext, runs: Sequence[Run], sightings: Mapping[str, Sighting]
) -> Iterator[tuple[Run, Callable[[], Signal]]]:
    """The done signal of each run as the answers come; git and trackers are asked side by side."""
    lab = tick.lab
    for run in runs:
        if run.is_loop:
            yield run, partial(Signal, False, missing=NO_END)
        elif run.is_gated:
            yield run, partial(_signal_of_claim, tick, run, sightings.get(run.session))
    runs = [run for run in runs if not run.is_gated and not run.is_loop]
    kinds = {run.project_id: cadence.is_without_pulls(lab, run.project) for run in runs}
    by_commits = [run for run in runs if kinds[run.project_id]]
    to_prove = [run for run in by_commits if _wants_look(tick, run, sightings)]
    proofs = delivery.begin(lab, to_prove)
    by_pulls = [run for run in runs if not kinds[run.project_id]]
    wanted = {_root(r) for r in by_pulls if _wants_pulls(tick, r, sightings)}
    to_ask = [run for run in by_pulls if _root(run) in wanted]
    word_of = _words(tick, [run for run in to_ask if run.amends is not None], sightings)
    for group, pulls in _ask(tick, to_ask):
        yield from ((run, partial(_signal_of_pulls, tick, run, pulls, word_of)) for run in group)
    for run, found in proofs():
        yield run, partial(_signal_of, tick, run, found)


def _signal_of_claim(tick: TickContext, run: Run, sighting: Sighting | None) -> Signal:
    """The word of an agent that its project proves by gates; no tracker is asked for it."""
    alive = sighting is not None and sighting.alive
    if alive and run.gate_turn:  # it is still to be told what failed
        return Signal(False)
    says_done = followups.says_done(
        alive=alive,
        exit_status=_exit_status(tick, run, sighting),
        was_said=run.look_asked_at is not None,
        turn_is_over=checking.said_at(run) is not None,
        is_error=run.is_error,
    )
    return Signal(says_done, missing="no word of its agent that it is done")


def _signal_of_pulls(
    tick: TickContext, run: Run, pulls: Sequence[Pull] | None, word_of: Callable[[Run], Word]
) -> Signal:
    if run.amends is None:
        return done_signal.of_pulls(tick.lab, run, pulls)
    word = word_of(run)
    signal = done_signal.of_amended(tick.lab, run, pulls, word)
    if signal.is_done is False and word.has_pushed is False and run.look_asked_at is not None:
        delivery.use_up(run, "")
    return signal


def _words(
    tick: TickContext, runs: Sequence[Run], sightings: Mapping[str, Sighting]
) -> Callable[[Run], Word]:
    """What the agents of runs say that add to a pull request; origin is asked side by side.

    Of one that works on it is asked only after it said so itself or git here notes a push.
    """
    said = {run: _word(tick, run, sightings.get(run.session)) for run in runs}
    to_prove = [
        run
        for run, word in said.items()
        if word.is_last
        or (word.says_done and (run.look_asked_at or delivery.may_have_pushed(tick.lab, run)))
    ]
    pushes = delivery.begin_pushes(tick.lab, to_prove)
    found = cache(lambda: dict(pushes()))
    return lambda run: replace(said[run], has_pushed=found().get(run))


def _word(tick: TickContext, run: Run, sighting: Sighting | None) -> Word:
    alive = sighting is not None and sighting.alive
    says_done = followups.says_done(
        alive=alive,
        exit_status=_exit_status(tick, run, sighting),
        was_said=run.look_asked_at is not None,
        turn_is_over=run.turn_ended_at is not None,
        is_error=run.is_error,
    )
    return Word(says_done, is_last=not alive or _is_over(tick, run))


def _signal_of(tick: TickContext, run: Run, found: Evidence) -> Signal:
    signal = done_signal.of_evidence(run, found)
    if signal.is_done is None:
        tick.errors.append(f"run {run.pk}: git did not say whether {run.branch} is delivered")
    elif not signal.is_done and run.look_asked_at is not None:
        delivery.use_up(run, delivery_rules.told(found))
    return signal


def _wants_look(tick: TickContext, run: Run, sightings: Mapping[str, Sighting]) -> bool:
    seen = sightings.get(run.session)
    alive = seen is not None and seen.alive
    return wants_look(alive, run.look_asked_at is not None, _is_over(tick, run))


def _is_over(tick: TickContext, run: Run) -> bool:
    """Whether its time or what it may use is up."""
    return run.over is not None or run.age(tick.now) >= run.budget(tick.settings)


def _wants_pulls(tick: TickContext, run: Run, sightings: Mapping[str, Sighting]) -> bool:
    """Whether a run's pull request is asked for in this look.

    In each, unless a webhook tells of them and nothing else is to be decided about the run.
    """
    seen = sightings.get(run.session)
    is_going_on = (
        seen is not None
        and seen.alive
        and not _is_over(tick, run)
        and run.interrupted_at is None
        and _trouble(run, None) is Trouble.NONE
        and not _says_more(run, tick.now)
    )
    is_remote = cadence.is_remote(tick.lab, run.project)
    due = partial(cadence.are_pulls_due, tick.lab, tick.settings, run.project, is_live=True)
    return not (is_going_on and is_remote) or due()


def _says_more(run: Run, now: datetime) -> bool:
    """Whether one that adds to a pull request says that it is done, or its turn has just ended.

    The webhook told of its push before that.
    """
    at = run.turn_ended_at
    has_stopped = at is not None and budgets.age(now, at) < JUST_NOW
    return run.amends is not None and (has_stopped or run.look_asked_at is not None)


def _ask(
    tick: TickContext, runs: Sequence[Run]
) -> Iterator[tuple[list[Run], Sequence[Pull] | None]]:
    """The pull requests of each project's runs, as its tracker answers; None: could not tell."""
    groups: dict[Root, list[Run]] = defaultdict(list)
    for run in runs:
        groups[_root(run)].append(run)
    # Those that wait for a review cost no further question.
    heads = {
        root: list(dict.fromkeys(one for run in group for one in (run.branch, *_open_heads(run))))
        for root, group in groups.items()
    }
    lab, began = tick.lab, tick.lab.now()
    for some in fan_out.stream(lab, heads, lambda tracker, roots: tracker.pulls(roots)):
        for root, answer in some.items():
            silence = answer if isinstance(answer, Silence) else None
            if silence is not None:
                tick.errors.append(f"tracker of {groups[root][0].project.name}: {silence.text}")
            for project in {run.project_id: run.project for run in groups[root]}.values():
                tracker_health.note(lab, project, silence)
                if not isinstance(answer, Silence):
                    note_pulls(lab, project, heads[root], answer, began)
            yield groups[root], None if isinstance(answer, Silence) else answer


def _root(run: Run) -> Root:
    return run.project.tracker, run.project.tracker_root


def _open_heads(run: Run) -> list[str]:
    """The branches of the project that had an open pull request at the last look."""
    return [str(head) for _, head, *_ in run.project.pulls_seen]
