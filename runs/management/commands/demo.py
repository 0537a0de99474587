"""`./lab demo`: a project to try labsite with, no agent installed."""

from __future__ import annotations

from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand

from runs.core.ports import SeamError
from runs.demo import making as demo
from runs.management.address import address_of_running
from runs.projects.acts import ProjectRefused
from runs.wiring import lab

BY = "command line"


class Command(BaseCommand):
    help = "Makes the demo project with a scripted agent and three issues; safe to run again."

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("prepare")
        try:
            project = demo.make(lab(), BY)
        except SeamError as error:
            raise SystemExit(
                f"The demo repository could not be made: {error}. Nothing was added."
            ) from error
        except ProjectRefused as refused:
            raise SystemExit(f"The demo project could not be added: {refused.text}") from refused
        self.stdout.write(
            f"The project “{project.name}” is there, with a scripted agent and three ready issues."
        )
        address = address_of_running(lab().paths)
        if address:
            self.stdout.write(f"Open {address}/projects/{project.pk}/ and press “Start AFK run”.")
        else:
            self.stdout.write(
                "Now run ./lab up, open the address that it prints, and press “Start AFK run”."
            )
