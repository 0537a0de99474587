"""`manage.py prepare`: makes a state folder ready to serve. `./lab up` runs it before each start."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.checks import Tags
from django.core.management.base import BaseCommand
from django.db import DatabaseError
from django.urls import reverse

from runs.check_tags import OURS
from runs.kept import sweep
from runs.management import servers, state_files, tables
from runs.people import setup
from runs.timeline import queries as timeline
from runs.wiring import lab

# What the environment can make wrong. The rest is right or wrong with the code, and to look at it
# here would load every page, which the web process does next anyway.
OF_SETTINGS = (OURS, Tags.caches, Tags.compatibility, Tags.files, Tags.staticfiles)


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
        self.check(tags=OF_SETTINGS)
        servers.wait()
        try:
            tables.bring_up_to_date()
        except tables.TooNew as error:
            raise SystemExit(
                f"The database {servers.name()} was changed by a newer labsite ({error}). Start that "
                "version again, or go back with a backup as docs/operating.md says. Nothing was "
                "started, and nothing was changed."
            ) from error
        except tables.TooOld as error:
            raise SystemExit(
                f"The database {servers.name()} is of an older labsite (its last change is {error}) "
                "than this version can bring up to date. Start a version in between once, as "
                "docs/operating.md says, then this one. Nothing was started, and nothing was changed."
            ) from error
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


def _setup_path() -> str:
    """The path of the set-up link while nobody has an account; empty otherwise."""
    token = setup.link_token(lab().paths)
    return reverse("runs:setup", args=[token]) if token else ""
