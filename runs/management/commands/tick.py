"""`./lab manage tick`: one tick in the foreground, by the very function that the worker calls."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from runs.tick import Report, tick
from runs.wiring import lab


class Command(BaseCommand):
    help = "Runs one tick now and prints what it did."

    def handle(self, *args: Any, **options: Any) -> None:
        report = tick(lab(), force=True)
        if report.was_blind:
            raise CommandError(report.errors[0])
        for line in lines(report):
            self.stdout.write(line)


def lines(report: Report) -> list[str]:
    """What a tick did, in plain words."""
    if report.was_skipped:
        return ["Another tick holds the lease, so this one was skipped. Nothing was changed."]
    counts = {
        "adopted from a session made by hand": report.adopted,
        "ended": report.ended,
        "settled": report.settled,
        "started": report.started,
    }
    did = [f"{_runs(number)} {words}." for words, number in counts.items() if number]
    told = [f"Could not tell: {error}." for error in report.errors]
    return [f"Looked at {_runs(report.runs)}.", *(did or ["Nothing had to be done."]), *told]


def _runs(number: int) -> str:
    return "1 run" if number == 1 else f"{number} runs"
