#!/usr/bin/env python3
"""The command line of this product. `./lab up`, `./lab demo` and `./lab manage …` end up here."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from labsite.env import WrongSetting, state_dir

# Commands that a script may give before the first `./lab up`; they need readable tables.
FIRST_COMMANDS = ("prepare", "createsuperuser", "changepassword", "demo", "tick")


def main(argv: Sequence[str]) -> int:
    """Run one command. A setting that cannot be meant is one sentence, never a traceback."""
    if argv[1:2] == ["up"]:
        from labsite.supervisor import main as up  # knows no Django, which keeps it small

        return up(argv[2:])
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labsite.settings")
    try:
        return _django(argv)
    except WrongSetting as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _django(argv: Sequence[str]) -> int:
    from django.core.management import execute_from_command_line

    from labsite.mend import mend
    from runs.domain.paths import Paths

    if argv[1:2] and argv[1] in FIRST_COMMANDS:
        paths = Paths(state_dir())
        mend(paths)
        if not paths.database.exists() and argv[1] != "prepare":
            execute_from_command_line([argv[0], "prepare"])
    execute_from_command_line(list(argv))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
