"""The rules of the reaper: which outcome the facts about a run prove, and why a run died, in a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Literal

from runs.core.states import AgentMode, AgentState, Outcome, RunState, Trouble
from runs.transcript.reports import Report

Verdict = Outcome | Literal[RunState.HELD]


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What was seen of a run. None means "could not tell" and never ends anything.

    `is_done`: the done signal of the run's tracker is there: an open or merged pull request
    has exactly the run's branch as its head, or its commits prove the delivery (evidence.py).
    `alive`: the session exists and its program runs. `age` and `budget`: wall time, without the
    time in which it was held. `was_interrupted`: a person aborted its watch session, so that its
    end is no death. `trouble`: the account's trouble in which the program ended, or the
    last turn of one that waits for a next word now. `is_over_limit`: a limit of tokens or money that
    holds for it is reached.
    """

    is_done: bool | None
    alive: bool | None
    age: timedelta
    budget: timedelta
    was_interrupted: bool = False
    trouble: Trouble = Trouble.NONE
    is_over_limit: bool = False


def verdict(facts: RunFacts) -> Verdict | None:
    """The outcome that the facts prove, or None while the run goes on.

    Delivered work is a success whatever came after it. One that ended by itself did so for its own
    reasons, whatever it had used. A run whose agent was turned away for its
    account's sake has no outcome: it is held until the account can be used again.
    """
    if facts.alive is None or facts.is_done is None:
        return None
    if facts.is_done:
        return Outcome.SUCCEEDED
    if facts.alive and facts.is_over_limit:
        return Outcome.OVER_LIMIT
    if facts.trouble is not Trouble.NONE and not facts.was_interrupted:
        return RunState.HELD
    if not facts.alive:
        return Outcome.INTERRUPTED if facts.was_interrupted else Outcome.DIED
    if facts.age >= facts.budget:
        return Outcome.TIMED_OUT
    return None


# So long a program that printed its result may take to end: it runs hooks and stores its session.
LINGERS_FOR = timedelta(minutes=3)
LINGERED = "it printed its result and did not exit, so its session was closed"


@dataclass(frozen=True, slots=True)
class PrintFacts:
    """What is known of a program that prints its result and ends.

    `silent_for`: how long ago it printed its last line; None where it printed none.
    `background_agents`: how many agents it says are at work in the background.
    """

    has_result: bool
    silent_for: timedelta | None
    background_agents: int = 0


def has_lingered(facts: PrintFacts) -> bool:
    """Return whether a program counts as ended, since it printed its result and does not exit.

    What else it left in the background, such as a server, keeps it from exiting and is no work.
    """
    if not facts.has_result or facts.background_agents or facts.silent_for is None:
        return False
    return facts.silent_for >= LINGERS_FOR


@dataclass(frozen=True, slots=True)
class Ending:
    """How a session's program ended. None: not known; no report: its output is not read."""

    mode: str = AgentMode.INTERACTIVE
    status: int | None = None
    signal: int | None = None
    report: Report | None = None
    has_lingered: bool = False


def why_dead(ending: Ending, missing: str = "no pull request") -> str:
    """The reason of an outcome *died*; `missing` is what its done signal lacks, as "no …"."""
    return f"{_what(ending)}, and there is {missing}"


def exit_words(status: int | None, signal: int | None) -> str:
    """How a program ended, for a sentence that starts with "the session"."""
    if signal is not None:
        return f"was ended by signal {signal}"
    if status is not None:
        return f"ended with exit status {status}"
    return "is gone"


def did_run(mode: str, alive: bool, status: int | None) -> bool:
    """Whether a program that was just started counts as running, or as a start that failed.

    One that ends at once failed, but a one-shot program may be done that soon.
    """
    return alive or (mode == AgentMode.ONE_SHOT and status == 0)


def _what(ending: Ending) -> str:
    report = ending.report
    how = LINGERED if ending.has_lingered else exit_words(ending.status, ending.signal)
    if ending.mode != AgentMode.ONE_SHOT or report is None:
        return f"the session {how}"
    if not report.has_result:
        return _interrupted(report, how)
    if not report.is_error:
        return f"the agent finished ({how})"
    return f"{_failure(report)} ({how})"


def _interrupted(report: Report, how: str) -> str:
    """It ended without saying how: somebody or something ended it, or it never began."""
    words = f"; its final output: {report.last_line}" if report.last_line else ""
    if not report.agent_session:
        return f"the agent {how} before it began to work{words}"
    waited = _waited(report)
    return f"the agent was interrupted{waited}: it {how} without a result line{words}"


def _waited(report: Report) -> str:
    if not report.agent_note:
        return ""
    return f" while it tried again ({report.agent_note})"


def _failure(report: Report) -> str:
    """The sentence for an error that the program reported."""
    said = report.agent_note.rstrip(".")
    match report.agent_state, report.result_subtype:
        case AgentState.NEEDS_LOGIN, _:
            return f"the agent is not logged in: {said}. Log in on this machine, then start again"
        case AgentState.RATE_LIMITED, _:
            return f"the agent was turned away by a rate limit{_until(report.agent_until)}: {said}"
        case _, "error_max_turns":
            turns = f" ({report.turns} turns)" if report.turns is not None else ""
            return f"the agent reached its limit of turns{turns}"
        case _, "error_max_budget_usd":
            cost = f" (${report.cost_usd:.4f})" if report.cost_usd is not None else ""
            return f"the agent reached its limit of cost{cost}"
    code = f" (HTTP {report.api_status})" if report.api_status else ""
    return f"the agent ended with an error{code}: {said}"


def _until(when: datetime | None) -> str:
    return f" until {when:%-d %b %H:%M} UTC" if when is not None else ""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What is known of the tmux server of a session that is gone. Names begin with that of the boot.

    `began_on` is the server that the session was started on, empty where nobody noted it; `now` the
    one that runs, empty: none. `runs` counts the unfinished runs of `began_on`, this one too.
    `has_finished`: a one-shot program had told its result, or ended well, before.
    """

    began_on: str
    now: str
    boot: str
    runs: int
    has_finished: bool = False


def is_server_lost(facts: ServerFacts) -> bool:
    """Return whether a session went with its server, by a restart of the machine or out of memory.

    A server whose only session is ended ends by itself, so that of one session nobody can tell which
    of the two went first.
    """
    if not facts.began_on or facts.now == facts.began_on or facts.has_finished:
        return False
    began_before = facts.began_on.partition(":")[0] != facts.boot
    return facts.runs > 1 or (began_before and bool(facts.boot))


REFUSED = 400  # of a session, for good: what it holds is not taken any more
REFUSED_TWICE = (
    "two tries to go on with its session failed, and then its service refused the fresh session in "
    "the same worktree as well (error 400)"
)


class Another(Enum):
    """How an agent goes on that was told what failed and whose service refused that."""

    NONE = "none"
    SAME = "its session once more"
    FRESH = "a fresh session in the same worktree"


def after_refusal(failures: int) -> Another:
    """Return how an agent goes on after so many tries in a row that did not come up."""
    return {0: Another.SAME, 1: Another.FRESH}.get(failures, Another.NONE)


MOST_VAIN = 3
# Where nothing shows whose trouble it is: the waits up to then take hours.
MOST_VAIN_ALONE = 6


@dataclass(frozen=True, slots=True)
class VainFacts:
    """What is known of a run that is refused each time it is started again.

    `times`: how often in a row that was at once, now included. `do_others_work`: its account serves
    other runs of the same agent. `was_fresh`: it had just been given a fresh session.
    """

    times: int
    trouble: Trouble
    do_others_work: bool
    was_fresh: bool = False


def after_vain_resumes(facts: VainFacts) -> Another:
    """Return how such a run goes on: SAME waits for its account as ever.

    An outage refuses everybody, and its waits cost nothing. A session that is refused while others
    are served is broken for good: a fresh one is tried once, then a person has to look. A limit
    may be one of a single long session, so without other runs a fresh one is tried later.
    """
    if facts.do_others_work and facts.times >= MOST_VAIN:
        return Another.NONE if facts.was_fresh else Another.FRESH
    is_alone = facts.times == MOST_VAIN_ALONE and facts.trouble is Trouble.LIMIT
    return Another.FRESH if is_alone and not facts.was_fresh else Another.SAME


def refused_always(times: int, words: str, *, is_over: bool) -> str:
    """Return why a run does not go on in its session; `is_over`: in no other either."""
    said = f": {words.rstrip('.')}" if words else ""
    if is_over:
        return (
            f"its agent was refused {times} times in a row as soon as it went on, in a fresh session "
            f"too, while other runs of the same agent work{said}. Branch and worktree are kept: start "
            "the issue again, or resume it with another agent"
        )
    return f"its session was refused {times} times in a row as soon as it went on{said}"


NOT_STARTED = (126, 127)  # what shells and our own launcher say of a program that cannot be run


@dataclass(frozen=True, slots=True)
class Beginning:
    """What is known of how a program began. `tells`: it says so by itself when it was given its task.

    `began` is whether it did; `commits` are on its branch, and prove as much. None: not known.
    """

    status: int | None
    signal: int | None = None
    tells: bool = False
    began: bool = False
    commits: int = 0


def never_began(facts: Beginning) -> bool:
    """Whether it ended by itself, with an error, before it was at its task, however long that took.

    What was ended from outside says nothing of a start, and neither does a program that never
    tells: of these only the two statuses count that stand for "could not be run".
    """
    if facts.signal is not None or not facts.status or facts.commits or facts.began:
        return False
    return facts.tells or facts.status in NOT_STARTED


def why(facts: Beginning, words: str) -> str:
    """The reason of the failed start, with the program's own last words."""
    said = f" Its final output: {words}" if words else ""
    how = exit_words(facts.status, facts.signal)
    return f"did not start: the agent {how} before it began to work.{said}"
