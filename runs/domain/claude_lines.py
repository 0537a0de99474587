"""The lines of `claude -p --output-format stream-json`, each with what it changes in a report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from runs.domain import loose, reports, transcript
from runs.domain.loose import Entry
from runs.domain.reports import Report
from runs.domain.states import AgentState

_T = TypeVar("_T")


def system(report: Report, entry: Entry, now: datetime) -> Report:
    """A beginning, or a call to the service that failed and is tried again."""
    if entry.get("subtype") == "init":
        begun = replace(
            report,
            agent_session=loose.word(entry, "session_id") or report.agent_session,
            agent_model=loose.line(entry, "model", limit=100) or report.agent_model,
            result_subtype="",
            is_error=False,
        )
        return reports.at_work(begun)
    if entry.get("subtype") == "api_retry":
        return reports.waiting(
            report,
            transcript.retry_words(entry),
            loose.count(entry, "error_status"),
            reports.until(now, loose.length(entry, "retry_delay_ms")),
        )
    return report


def assistant(report: Report, entry: Entry, _now: datetime) -> Report:
    """A message of the model. One with `error` is the program's own: it says why it gives up."""
    if loose.line(entry, "error"):
        return report
    message = loose.word(entry, "message", "id")
    if message and message != report.message_id:
        report = replace(report, message_id=message, turns=(report.turns or 0) + 1)
    return reports.at_work(report)


def user(report: Report, _entry: Entry, _now: datetime) -> Report:
    """What a tool gave back: the agent works."""
    return reports.at_work(report)


def rate_limit(report: Report, entry: Entry, _now: datetime) -> Report:
    """The subscription's limit; only a refusal makes the agent wait."""
    if loose.at(entry, "rate_limit_info", "status") != "rejected" or report.has_result:
        return report
    return replace(
        report,
        agent_state=AgentState.RATE_LIMITED,
        agent_note="the subscription's limit is used up",
        agent_until=loose.moment(loose.at(entry, "rate_limit_info", "resetsAt")),
    )


def result(report: Report, entry: Entry, now: datetime) -> Report:
    """The end of one invocation, with its totals: cost and tokens are those of this invocation."""
    usage = entry.get("usage")
    parts = [
        loose.count(usage, name)
        for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    ]
    error = transcript.claude_error(entry)
    status = loose.count(entry, "api_error_status")
    found = reports.ended(report, loose.word(entry, "subtype"), error, status, now)
    return replace(
        found,
        agent_session=loose.word(entry, "session_id") or report.agent_session,
        turns=_first(loose.count(entry, "num_turns"), report.turns),
        tokens_in=sum(part or 0 for part in parts) if parts[0] is not None else report.tokens_in,
        tokens_cached=_first(parts[2], report.tokens_cached),
        tokens_out=_first(loose.count(usage, "output_tokens"), report.tokens_out),
        cost_usd=_first(loose.money(entry, "total_cost_usd"), report.cost_usd),
    )


def _first(new: _T | None, old: _T | None) -> _T | None:
    return new if new is not None else old


LINES: Mapping[str, Callable[[Report, Entry, datetime], Report]] = {
    "system": system,
    "assistant": assistant,
    "user": user,
    "rate_limit_event": rate_limit,
    "result": result,
}
