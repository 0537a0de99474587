"""The lines of `claude -p --output-format stream-json`, each with what it changes in a report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from runs.core import lenient_json
from runs.core.lenient_json import Entry
from runs.core.states import AgentState
from runs.transcript import rendering, reports
from runs.transcript.reports import Report
from runs.transcript.token_usage import Tokens

USED_UP = "the subscription's limit is used up"
_OF_MODEL = {
    "input_tokens": "inputTokens",
    "cache_creation_input_tokens": "cacheCreationInputTokens",
    "cache_read_input_tokens": "cacheReadInputTokens",
    "output_tokens": "outputTokens",
}
# The kinds of work in the background that end by themselves, unlike a server that was left behind.
_AGENTS = frozenset({"local_agent", "local_workflow", "in_process_teammate", "remote_agent"})


def system(report: Report, entry: Entry, now: datetime) -> Report:
    """A beginning, a call to the service that failed and is tried again, or what works in the background."""
    if entry.get("subtype") == "init":
        begun = replace(
            report,
            agent_session=lenient_json.word(entry, "session_id") or report.agent_session,
            agent_model=lenient_json.line(entry, "model", limit=100) or report.agent_model,
            result_subtype="",
            is_error=False,
        )
        return reports.at_work(begun)
    if entry.get("subtype") == "api_retry":
        return reports.waiting(
            report,
            rendering.retry_words(entry),
            lenient_json.count(entry, "error_status"),
            reports.until(now, lenient_json.length(entry, "retry_delay_ms")),
        )
    if entry.get("subtype") == "background_tasks_changed":
        return replace(report, background_agents=_agents(entry.get("tasks")))
    return report


def _agents(tasks: object) -> int:
    """How many of all that works in the background now are agents."""
    found = tasks if isinstance(tasks, list) else []
    kinds = [lenient_json.word(one, "task_type") for one in found if isinstance(one, dict)]
    return sum(kind in _AGENTS for kind in kinds)


def assistant(report: Report, entry: Entry, _now: datetime) -> Report:
    """A message of the model. One with `error` is the program's own: it says why it gives up."""
    if lenient_json.line(entry, "error"):
        return report
    message = lenient_json.word(entry, "message", "id")
    is_own = not lenient_json.line(entry, "parent_tool_use_id")
    if message and is_own and message != report.message_id:
        report = replace(report, message_id=message, turns=(report.turns or 0) + 1)
    tokens = tokens_of(lenient_json.at(entry, "message", "usage"))
    if message and tokens is not None and not report.has_result:
        report = reports.used(report, message, tokens)
        report = replace(report, context_tokens=tokens.into) if is_own else report
    return reports.at_work(report)


def user(report: Report, entry: Entry, _now: datetime) -> Report:
    """What a tool gave back: the agent works. The last message of an agent that it started, which
    is not told as one, comes with it."""
    started = lenient_json.word(entry, "tool_use_result", "agentId")
    tokens = tokens_of(lenient_json.at(entry, "tool_use_result", "usage"))
    if started and tokens is not None and not report.has_result:
        report = reports.used(report, f"agent:{started}", tokens)
    return reports.at_work(report)


def rate_limit(report: Report, entry: Entry, _now: datetime) -> Report:
    """The subscription's limit; only a refusal makes the agent wait."""
    if lenient_json.at(entry, "rate_limit_info", "status") != "rejected" or report.has_result:
        return report
    return replace(
        report,
        agent_state=AgentState.RATE_LIMITED,
        agent_note=USED_UP,
        agent_until=lenient_json.moment(lenient_json.at(entry, "rate_limit_info", "resetsAt")),
    )


def result(report: Report, entry: Entry, now: datetime) -> Report:
    """The end of one invocation, with its totals: cost and tokens are those of this invocation."""
    tokens = _of_models(entry.get("modelUsage")) or tokens_of(entry.get("usage"))
    turns, cost = (
        lenient_json.count(entry, "num_turns"),
        lenient_json.money(entry, "total_cost_usd"),
    )
    before = report.used_tokens
    error = rendering.claude_error(entry)
    status = lenient_json.count(entry, "api_error_status")
    found = reports.ended(
        reports.used_in_all(report, tokens), lenient_json.word(entry, "subtype"), error, status, now
    )
    if turns is not None:
        # 2.1.332 prints one end more for each time that something came back from the background, and
        # each of them tells its own turns alone.
        turns = max(before.turns + turns, report.turns or 0)
    return replace(
        found,
        agent_session=lenient_json.word(entry, "session_id") or report.agent_session,
        turns=report.turns if turns is None else turns,
        cost_usd=report.cost_usd if cost is None else before.cost + cost,
        context_window=_window(report, entry) or report.context_window,
    )


def _window(report: Report, entry: Entry) -> int | None:
    """How many tokens the main agent's model takes, as the end tells of each model by its name."""
    models = entry.get("modelUsage")
    found = models if isinstance(models, dict) else {}
    own = [
        name
        for name in found
        if str(name).partition("[")[0] == report.agent_model.partition("[")[0]
    ]
    name = own[0] if own else next(iter(found), "") if len(found) == 1 else ""
    return lenient_json.count(lenient_json.at(found, name), "contextWindow")


def tokens_of(usage: object) -> Tokens | None:
    """What a `usage` says; None when it says nothing."""
    new, out = lenient_json.count(usage, "input_tokens"), lenient_json.count(usage, "output_tokens")
    if new is None and out is None:
        return None
    stored = lenient_json.count(usage, "cache_creation_input_tokens") or 0
    cached = lenient_json.count(usage, "cache_read_input_tokens") or 0
    return Tokens((new or 0) + stored + cached, cached, out or 0)


def _of_models(usage: object) -> Tokens | None:
    """What all models together used, those of agents that were started included."""
    found = [
        tokens_of({name: lenient_json.at(one, its) for name, its in _OF_MODEL.items()})
        for one in (usage.values() if isinstance(usage, dict) else ())
    ]
    told = [one for one in found if one is not None]
    return sum(told, Tokens()) if told else None


LINES: Mapping[str, Callable[[Report, Entry, datetime], Report]] = {
    "system": system,
    "assistant": assistant,
    "user": user,
    "rate_limit_event": rate_limit,
    "result": result,
}
