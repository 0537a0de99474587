"""`manage.py prepare`: makes a state folder ready to serve. `./lab up` runs it before each start."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.checks import Tags
from django.core.checks.registry import registry
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import DatabaseError
from django.urls import reverse

from runs.management import servers, state_files
from runs.wiring import lab
from runs.work import setup, sweep, timeline


class Command(BaseCommand):
    help = "Brings database and static files up to date."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--print-setup-path",
            action="store_true",
            help="print the path of the one-time set-up link, if any",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Safe to run twice, and while the product runs."""
        self._check_but_addresses()
        servers.wait()
        try:
            call_command("migrate", interactive=False, verbosity=0)
        except DatabaseError as error:
            raise SystemExit(
                f"The database {servers.name()} could not be brought up to date: "
                f"{servers.said(error)}. "
                "Nothing was started."
            ) from error
        timeline.mend_order()
        sweep.forget_reconciled(lab())
        state_files.collect_static(lab().paths)
        if options["print_setup_path"]:
            self.stdout.write(_setup_path())

    def _check_but_addresses(self) -> None:
        """Those of the addresses load every page, which the web process does next anyway.

        Not by `tags`: that leaves out checks without one, ours among them.
        """
        every = registry.registered_checks
        registry.registered_checks = {one for one in every if Tags.urls not in one.tags}
        try:
            self.check()
        finally:
            registry.registered_checks = every


def _setup_path() -> str:
    """The path of the set-up link while nobody has an account; empty otherwise."""
    token = setup.link_token(lab().paths)
    return reverse("runs:setup", args=[token]) if token else ""
