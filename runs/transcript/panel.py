"""What an agent told of itself, in the words and numbers that pages show."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from runs.accounts import held
from runs.core.states import AgentState, OutputKind, WorktreeFate
from runs.models import Run
from runs.web import words

_PILLS = {
    AgentState.RETRYING: ("warn", "retrying"),
    AgentState.RATE_LIMITED: ("warn", "rate limited"),
    AgentState.NEEDS_LOGIN: ("bad", "needs login"),
}
_STATES = {
    AgentState.UNKNOWN: "Starting",
    AgentState.WORKING: "Working",
    AgentState.RETRYING: "Retrying",
    AgentState.RATE_LIMITED: "Rate limited",
    AgentState.NEEDS_LOGIN: "Not logged in",
    AgentState.FINISHED: "Finished",
    AgentState.FAILED: "Failed",
    AgentState.INTERRUPTED: "Interrupted",
}
# Of one that stays open, what its hooks tell; nothing where it has none.
_TURNS = {
    **dict.fromkeys(AgentState, ""),
    AgentState.WORKING: "Working",
    AgentState.FINISHED: "Its turn has ended",
    AgentState.FAILED: "An error ended its turn",
}
UNKNOWN = "unknown"
NEVER_TOLD = "unknown: this program does not tell it"
WAITS = "waits for you"


@dataclass(frozen=True, slots=True)
class Pill:
    """The badge of an agent that cannot work just now. `until` is empty when nobody knows."""

    tone: str
    text: str
    until: str
    until_words: str


@dataclass(frozen=True, slots=True)
class Panel:
    """The panel of a run whose agent is read. `resume`: what goes on with an ended session."""

    pill: Pill | None
    state: str
    note: str
    session: str
    model: str
    turns: str
    tokens: str
    context: str
    cost: str
    resume: str


def pill(run: Run, now: datetime) -> Pill | None:
    """The badge of a live run; None while the agent can work, and for ended runs."""
    wait = held.wait_of(run, now)
    if wait is not None:
        until = wait.until
        told = f"{until:%H:%M:%S} UTC" if until else ""
        return Pill("warn", wait.text, words.iso(until) if until else "", told)
    if run.is_waiting:
        return Pill("warn", WAITS, "", "")
    state = run.state_of_agent
    if not run.is_active or state not in _PILLS:
        return None
    until = run.agent_until if run.agent_until and run.agent_until > now else None
    tone, text = _PILLS[state]
    return Pill(
        tone, text, words.iso(until) if until else "", f"{until:%H:%M:%S} UTC" if until else ""
    )


def panel(run: Run, now: datetime) -> Panel | None:
    """What the run's page shows of its agent; None for one of which nothing is read."""
    is_told = run.tokens_in is not None or run.tokens_out is not None
    if not run.output and not is_told:
        return None
    return Panel(
        pill(run, now) if run.output else None,
        (_STATES if run.output else _TURNS)[run.state_of_agent],
        run.agent_note,
        run.agent_session,
        run.agent_model,
        f"{run.turns:,}" if run.turns is not None else _not_told(run),
        _tokens(run),
        _context(run),
        _cost(run.cost_usd) if run.cost_usd is not None else _no_cost(run),
        resume(run),
    )


def resume(run: Run) -> str:
    """What a person types to go on with an ended session, where its worktree is still there."""
    is_there = run.worktree and run.worktree_fate == WorktreeFate.KEPT
    if not (run.agent_session and run.resume_argv and is_there):
        return ""
    argv = [str(word).replace("{session}", run.agent_session) for word in run.resume_argv]
    return f"cd {shlex.quote(run.worktree)} && {shlex.join(argv)}"


def _not_told(run: Run) -> str:
    """Unknown is never shown as nothing."""
    return "not reported yet" if run.is_active else UNKNOWN


def _no_cost(run: Run) -> str:
    """Only Claude Code tells it, and only where it ends by itself."""
    return _not_told(run) if run.output == OutputKind.CLAUDE else NEVER_TOLD


def _context(run: Run) -> str:
    """How full its context is; how much its model takes is not always told."""
    if run.context_tokens is None:
        return _not_told(run)
    if not run.context_window:
        return f"{run.context_tokens:,} tokens; how many fit is not told"
    share = round(100 * run.context_tokens / run.context_window)
    return f"{share} %: {run.context_tokens:,} of {run.context_window:,} tokens"


def _tokens(run: Run) -> str:
    if run.tokens_in is None and run.tokens_out is None:
        return _not_told(run)
    cached = f" ({run.tokens_cached:,} of them cached)" if run.tokens_cached else ""
    into, out = (
        f"{number:,}" if number is not None else UNKNOWN
        for number in (run.tokens_in, run.tokens_out)
    )
    # Messages tell what they read and how they begin; what was written in all comes at the end.
    bound = "at least " if run.used_tokens and not run.result_subtype else ""
    return f"{bound}{into} in{cached}, {out} out"


def _cost(amount: Decimal) -> str:
    """Cents where they say enough, four places where they do not."""
    return f"${amount:.4f}" if 0 < amount < 1 else f"${amount:,.2f}"
