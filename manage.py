#!/usr/bin/env python3
"""The command line of this product. `./lab up`, `./lab demo` and `./lab manage …` end up here."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from labsite import loading
from labsite.env import WrongSetting, state_dir

WITHOUT_DJANGO = {  # or with one that they set up themselves
    "up": "labsite.supervisor",
    "doctor": "labsite.doctor.main",
    "backup": "labsite.backup.save",
    "restore": "labsite.backup.load",
    "validate": "labsite.validate",
    "host": "labsite.host_command",
}
FOLLOWED = {
    "watch": "runs.watch.command",
    "wait": "runs.groups.command",
    "loop": "runs.loop_command.command",
    "agent": "runs.agents.command",
}
# Commands that a script may give before the first `./lab up`; they need readable tables.
FIRST_COMMANDS = ("prepare", "createsuperuser", "changepassword", "demo", "tick", "api_token")


def main(argv: Sequence[str]) -> int:
    """Run one command. A setting that cannot be meant is one sentence, never a traceback."""
    if argv[1:2] and argv[1] in WITHOUT_DJANGO:
        # What only waits stays small, and what looks at a broken product must start.
        return int(import_module(WITHOUT_DJANGO[argv[1]]).main(argv[2:]))
    if argv[1:2] and argv[1] in FOLLOWED:
        from labsite import follow

        return follow.main(import_module(FOLLOWED[argv[1]]).read, argv[2:])
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labsite.settings")
    try:
        return _django(argv)
    except WrongSetting as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _django(argv: Sequence[str]) -> int:
    from labsite import database
    from labsite.mend import mend
    from runs.core.paths import Paths

    if argv[1:2] and argv[1] in FIRST_COMMANDS:
        paths = Paths(state_dir())
        on_server = bool(database.chosen())
        mend(paths, on_server)
        if argv[1] != "prepare" and (on_server or not paths.database.exists()):
            _execute([argv[0], "prepare"])
    _execute(argv)
    return 0


def _execute(argv: Sequence[str]) -> None:
    loading.set_up()
    from django.core.management import execute_from_command_line

    execute_from_command_line(list(argv))


if __name__ == "__main__":
    sys.exit(main(sys.argv))
