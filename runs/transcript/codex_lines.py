"""The lines of `codex exec --json`, each with what it changes in a report. They never tell a cost."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from runs.core import lenient_json
from runs.core.lenient_json import Entry
from runs.transcript import rendering, reports
from runs.transcript.reports import Report

_AGAIN = re.compile(r"(?:reconnecting|retrying)\D{0,20}\d+ ?/ ?\d+", re.IGNORECASE)
_STATUS = re.compile(r"\bstatus:? (\d{3})\b")


def thread(report: Report, entry: Entry, _now: datetime) -> Report:
    """The beginning: the thread is what can be resumed."""
    return replace(
        report, agent_session=lenient_json.word(entry, "thread_id") or report.agent_session
    )


def turn_started(report: Report, _entry: Entry, _now: datetime) -> Report:
    begun = replace(report, turns=(report.turns or 0) + 1, result_subtype="", is_error=False)
    return reports.at_work(begun)


def item(report: Report, entry: Entry, _now: datetime) -> Report:
    """Something the agent did or said. An item of type `error` is a warning and ends nothing."""
    return report if lenient_json.at(entry, "item", "type") == "error" else reports.at_work(report)


def turn_completed(report: Report, entry: Entry, now: datetime) -> Report:
    """The end; tokens are those of the whole thread."""
    usage = entry.get("usage")
    found = [
        lenient_json.count(usage, name)
        for name in ("input_tokens", "cached_input_tokens", "output_tokens")
    ]
    return replace(
        reports.ended(report, "success", None, None, now),
        tokens_in=found[0] if found[0] is not None else report.tokens_in,
        tokens_cached=found[1] if found[1] is not None else report.tokens_cached,
        tokens_out=found[2] if found[2] is not None else report.tokens_out,
    )


def turn_failed(report: Report, entry: Entry, now: datetime) -> Report:
    error = rendering.codex_error(entry)
    return reports.ended(report, "error", error, _status(error), now)


def error(report: Report, entry: Entry, _now: datetime) -> Report:
    """A call that is tried again; any other error is followed by `turn.failed`, which counts."""
    words = rendering.codex_error(entry)
    if report.has_result or not _AGAIN.search(words):
        return report
    return reports.waiting(report, words, _status(words), None)


def _status(words: str) -> int | None:
    found = _STATUS.search(words)
    return int(found[1]) if found else None


LINES: Mapping[str, Callable[[Report, Entry, datetime], Report]] = {
    "thread.started": thread,
    "turn.started": turn_started,
    "item.started": item,
    "item.updated": item,
    "item.completed": item,
    "turn.completed": turn_completed,
    "turn.failed": turn_failed,
    "error": error,
}
