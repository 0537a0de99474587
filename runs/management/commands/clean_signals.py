"""`./lab manage clean_signals`: remove every signal folder; groups go on, watched by listing."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from runs.core.ports import SeamError
from runs.groups import signal_folders
from runs.wiring import lab


class Command(BaseCommand):
    help = "Removes all signal files of task groups; safe to run again, and while labsite runs."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            count = signal_folders.clean_all(lab())
        except SeamError as error:
            raise SystemExit(f"Not all signal files could be removed: {error}") from error
        groups = "1 open task group is" if count == 1 else f"{count} open task groups are"
        self.stdout.write(
            f"The signal files are removed; {groups} watched by listing from now on."
            if count
            else "The signal files are removed; no open task group used them."
        )
