"""What a one-shot agent says of itself. Shown, and used to say why a run died; never believed further."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

from runs.accounts import refusal_rules, resets
from runs.core.states import AgentState, NoticeKind, Trouble
from runs.transcript import token_usage
from runs.transcript.token_usage import NOTHING, Spent, Tokens

LONGEST_WAIT = timedelta(days=8)
_WAITS = {
    AgentState.RETRYING: "the agent is retrying",
    AgentState.RATE_LIMITED: "the agent is held up by a rate limit",
    AgentState.NEEDS_LOGIN: "the agent needs a login",
}


@dataclass(frozen=True, slots=True)
class Report:
    """One invocation of an agent's program, as far as its lines tell. None and empty: not told.

    `tokens_in` includes those from the cache. `agent_until`: when a waiting agent goes on.
    `result_subtype` is empty until the program has said how it ended; `message_id` counts turns.
    `trouble`: its end was the account's trouble. `used_tokens`: what the sums of tokens are made of.
    `context_tokens`: what the main agent's last message was given, of `context_window` at most.
    `background_agents`: how many agents it says are at work in the background.
    """

    agent_session: str = ""
    agent_model: str = ""
    agent_state: AgentState = AgentState.UNKNOWN
    agent_note: str = ""
    agent_until: datetime | None = None
    turns: int | None = None
    tokens_in: int | None = None
    tokens_cached: int | None = None
    tokens_out: int | None = None
    cost_usd: Decimal | None = None
    result_subtype: str = ""
    is_error: bool = False
    api_status: int | None = None
    message_id: str = ""
    last_line: str = ""
    trouble: Trouble = Trouble.NONE
    used_tokens: Spent = NOTHING
    context_tokens: int | None = None
    context_window: int | None = None
    background_agents: int = 0

    @property
    def has_result(self) -> bool:
        """Whether the program itself said how it ended."""
        return bool(self.result_subtype)


def used(report: Report, message: str, tokens: Tokens) -> Report:
    """A message of the agent, or of one that it has started, told what it used."""
    return _counted(report, token_usage.told(report.used_tokens, message, tokens))


def used_in_all(report: Report, tokens: Tokens | None) -> Report:
    """The program told what it used; None when it did not, and then the sum up to now stays."""
    return (
        report
        if tokens is None
        else _counted(report, token_usage.ended(report.used_tokens, tokens))
    )


def again(report: Report) -> Report:
    """The report of a program that goes on with a run: what was used before it stays."""
    if report.used_tokens == NOTHING:
        return report
    return replace(
        report, used_tokens=token_usage.again(report.used_tokens, report.turns, report.cost_usd)
    )


def another(report: Report) -> Report:
    """The report of a program of which nothing was read yet, where another one had told this."""
    if report.used_tokens == NOTHING:
        return Report()
    kept = again(report)
    empty = Report(turns=kept.turns, cost_usd=kept.cost_usd)
    return _counted(empty, kept.used_tokens)


def _counted(report: Report, spent: Spent) -> Report:
    total = spent.total
    return replace(
        report,
        used_tokens=spent,
        tokens_in=total.into,
        tokens_cached=total.cached,
        tokens_out=total.out,
    )


def at_work(report: Report) -> Report:
    """The agent works, so whatever it waited for is over."""
    if report.has_result:
        return report
    return replace(
        report,
        agent_state=AgentState.WORKING,
        agent_note="",
        agent_until=None,
        trouble=Trouble.NONE,
    )


def waiting(report: Report, note: str, status: int | None, until: datetime | None) -> Report:
    """The agent tries again by itself; the status or the words say what it waits for."""
    if report.has_result:
        return report
    state = refusal_rules.state(refusal_rules.of(note, status)) or AgentState.RETRYING
    return replace(report, agent_state=state, agent_note=note, agent_until=until, api_status=status)


def ended(
    report: Report, subtype: str, error: str | None, status: int | None, now: datetime
) -> Report:
    """The program said how it ended; `error` is None for a success.

    The end of a limit that is still ahead is kept: it says when it is worth starting again.
    """
    found = refusal_rules.of(error, status, subtype) if error is not None else Trouble.NONE
    if subtype.startswith("error_max"):
        found = Trouble.NONE  # a limit that its own arguments set
    named = resets.told(error or "", now) if found else None
    if named is None and found is Trouble.LIMIT and report.agent_until is not None:
        named = report.agent_until if report.agent_until > now else None
    state = (
        AgentState.FINISHED if error is None else refusal_rules.state(found) or AgentState.FAILED
    )
    return replace(
        report,
        agent_state=state,
        agent_note=error or "",
        agent_until=named,
        result_subtype=subtype or ("success" if error is None else "error"),
        is_error=error is not None,
        api_status=status,
        trouble=found,
    )


def closed(report: Report) -> Report:
    """The report of a program that has ended: without a result line it was interrupted."""
    if report.has_result:
        return report
    return replace(report, agent_state=AgentState.INTERRUPTED, agent_until=None)


def news(before: Report, after: Report) -> tuple[NoticeKind, str] | None:
    """What the timeline tells when a report has changed: a change of state, never a line.

    An end that is the account's trouble is told once, by the run that is held for it.
    """
    if after.is_error and after.trouble is not Trouble.NONE:
        return None
    if after.agent_state is before.agent_state and after.is_error is before.is_error:
        return None
    if after.is_error:
        return NoticeKind.RUN_TROUBLED, f"the agent ended with an error: {after.agent_note}"
    if after.agent_state.is_waiting:
        return NoticeKind.RUN_TROUBLED, f"{_WAITS[after.agent_state]}: {after.agent_note}"
    if before.agent_state.is_waiting and after.agent_state is AgentState.WORKING:
        return NoticeKind.RUN_GOES_ON, "the agent goes on"
    return None


def until(now: datetime, milliseconds: float | None) -> datetime | None:
    """The end of a wait that begins now; None for a length that cannot be meant."""
    if milliseconds is None or milliseconds > LONGEST_WAIT / timedelta(milliseconds=1):
        return None
    return now + timedelta(milliseconds=milliseconds)
