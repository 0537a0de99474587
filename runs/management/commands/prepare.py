"""`manage.py prepare`: makes a state folder ready to serve. `./lab up` runs it before each start."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.checks import Tags
from django.core.management.base import BaseCommand
from django.db import DatabaseError

from runs import sweep
from runs.check_tags import OURS
from runs.core import lease
from runs.management import same_key, servers, state_files, tables
from runs.people import setup
from runs.timeline import queries as timeline
from runs.wiring import lab

# What the environment can make wrong. The rest is right or wrong with the code, and to look at it
# here would load every page, which the web process does next anyway.
OF_SETTINGS = (OURS, Tags.caches, Tags.compatibility, Tags.files, Tags.staticfiles)


def _check_host() -> None:
    """Whether this machine may work under its name. Raises SystemExit with a sentence."""
    try:
        lease.check_name(lab())
        if os.environ.get("LAB_PART") != "web":  # who serves pages alone has no worker
            lease.check_not_removed(lab().host)
        same_key.check(lab())
    except (lease.OtherMachine, lease.Removed, same_key.OtherKey) as error:
        raise SystemExit(f"{error} Nothing was started.") from error
    lab().paths.removed.unlink(missing_ok=True)


class Command(BaseCommand):
    help = "Brings database and static files up to date."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--tell",
            type=int,
            metavar="FILENO",
            help="write a line there when all is ready: the path of the one-time set-up link, if any",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Safe to run twice, and while the product runs."""
        self.check(tags=OF_SETTINGS)
        servers.wait()
        servers.wait_for_queue(settings.HUEY.refusal)
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
        if options["tell"] is not None:  # a start; `./lab host claim` mends what is refused here
            _check_host()
        timeline.mend_order()
        sweep.forget_reconciled(lab())
        state_files.collect_static(lab().paths)
        if options["tell"] is not None:
            token = setup.link_token(lab().paths)
            with os.fdopen(options["tell"], "w") as told:
                told.write(f"{setup.link_path(token) if token else ''}\n")
