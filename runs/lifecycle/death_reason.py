"""Why a run died, in a sentence: what its program said at the end, and how it ended (C-47).

That it died is decided elsewhere, and never by its word: a program of either mode that is gone
without its done signal died, whatever it says of itself and whatever its exit status is.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from runs.core.states import AgentMode, AgentState
from runs.transcript.reports import Report


@dataclass(frozen=True, slots=True)
class Ending:
    """How a session's program ended. None: not known; no report: its output is not read."""

    mode: str = AgentMode.INTERACTIVE
    status: int | None = None
    signal: int | None = None
    report: Report | None = None


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

    One that ends at once failed (LAB-61), but a one-shot program may be done that soon.
    """
    return alive or (mode == AgentMode.ONE_SHOT and status == 0)


def _what(ending: Ending) -> str:
    report = ending.report
    how = exit_words(ending.status, ending.signal)
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
