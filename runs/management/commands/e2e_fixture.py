"""`manage.py e2e_fixture`: what the end-to-end check asks of the labsite that it starts for itself."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs.core.ports import SeamError
from runs.gates import closing
from runs.validation import e2e_fixture
from runs.wiring import lab


class Command(BaseCommand):
    help = "Makes, shows or ends the fixture of an end-to-end check, in a state folder of its own."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("act", choices=["make", "look", "end"])
        parser.add_argument("repo", nargs="?", default="", help="the fixture's repository")
        parser.add_argument("--minutes", type=int, default=5)

    def handle(self, *args: Any, **options: Any) -> None:
        outside = lab()
        try:
            if options["act"] == "make":
                given = json.load(sys.stdin)
                e2e_fixture.make(outside, Path(options["repo"]), given, options["minutes"])
            elif options["act"] == "look":
                closing.update_trackers(outside)  # what the worker would have closed a moment later
                self.stdout.write(json.dumps(e2e_fixture.look(outside)))
            else:
                e2e_fixture.end(outside)
        except SeamError as error:
            raise CommandError(str(error)) from error
