"""Reads the JSON lines of a one-shot agent as they come.

A record is read on from where the last look ended, so that a restart costs nothing, and what
comes out never depends on how the bytes were cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from runs.core import lenient_json
from runs.core.lenient_json import LINE_LIMIT, Entry
from runs.core.states import OutputKind
from runs.transcript import claude_lines, codex_lines, rendering
from runs.transcript.reports import Report

_LINES: Mapping[str, Mapping[str, Callable[[Report, Entry, datetime], Report]]] = {
    OutputKind.CLAUDE: claude_lines.LINES,
    OutputKind.CODEX: codex_lines.LINES,
}


@dataclass(frozen=True, slots=True)
class Reading:
    """A report and how far into the record it reaches, in bytes.

    `output_skips`: that place is inside a line that is too long, of which nothing is taken.
    """

    report: Report = field(default_factory=Report)
    output_read: int = 0
    output_skips: bool = False


def read(
    kind: str, reading: Reading, piece: bytes, now: datetime, *, is_over: bool = False
) -> Reading:
    """Go on with the bytes that follow `reading.output_read`; never raises, whatever they are.

    A line that is not complete yet is left for the next call, which has to begin with it. With
    `is_over` nothing more comes, and what is left counts as a line. `now` is when it was written.
    """
    *lines, rest = piece.split(b"\n")
    report, skips = reading.report, reading.output_skips
    for line in lines:
        report = report if skips else _next(kind, report, line, now)
        skips = False
    if is_over:
        report = report if skips else _next(kind, report, rest, now)
        return Reading(report, reading.output_read + len(piece), False)
    if skips or len(rest) > LINE_LIMIT:
        return Reading(report, reading.output_read + len(piece), True)
    return Reading(report, reading.output_read + len(piece) - len(rest), False)


def _next(kind: str, report: Report, line: bytes, now: datetime) -> Report:
    if len(line) > LINE_LIMIT:
        return report
    entry = lenient_json.entry(line)
    said = rendering.last(entry) if entry is not None else lenient_json.line(rendering.plain(line))
    # That a program is done is told elsewhere; the last line is what was done or said before.
    if said and not (report.last_line and entry is not None and rendering.is_note(entry)):
        report = replace(report, last_line=said)
    name = entry.get("type") if entry is not None else None
    tell = _LINES.get(kind, {}).get(name) if isinstance(name, str) else None
    return report if entry is None or tell is None else tell(report, entry, now)
