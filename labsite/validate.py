"""`./lab validate`: what `runs.on_request.command` describes, with signals, settings and exit codes around it."""

from __future__ import annotations

import os
from collections.abc import Sequence

from labsite import env, loading, preflight
from labsite.follow import Presses, Programs
from runs.core.paths import Paths
from runs.core.ports import SeamError
from runs.core.refusal import ActRefused
from runs.core.terminal import CODE_ARGUMENTS, CODE_HUNG_UP, CODE_INTERRUPTED, say
from runs.on_request import command

CODE_NOT_RUN = 3


def main(argv: Sequence[str]) -> int:
    """Run the command; its exit code. Arguments are checked before anything is read or made."""
    try:
        wanted = command.read(argv)
    except ActRefused as error:
        return _refuse(error)
    presses = Presses()
    presses.listen()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labsite.settings")
    try:
        Programs(Paths(env.state_dir())).prepare()  # tables that can be read; nothing is started
        if presses.is_pressed:
            return CODE_INTERRUPTED
        loading.set_up()
        code = wanted.carry_out(lambda: not presses.is_pressed)
        return CODE_HUNG_UP if presses.is_hung_up and code == CODE_INTERRUPTED else code
    except ActRefused as error:
        return _refuse(error)
    except (preflight.Problem, env.WrongSetting) as error:
        say(str(error))
    except SeamError as error:
        say(f"It could not be run: {error}")
    except Exception as error:  # Python's own code for it would be that of a failed check
        say(f"labsite could not go on: {error!r}.")
    return CODE_NOT_RUN


def _refuse(error: ActRefused) -> int:
    say(error.text)
    return CODE_ARGUMENTS
