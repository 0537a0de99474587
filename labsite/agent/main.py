"""`./lab agent try PROFILE`: tries an agent in a scratch repository and says step by step what worked.

The trial is the product's: whoever runs a worker carries it out. While nobody runs a worker this
command starts the same programs as `./lab up` does, beside itself. Ctrl-C stops the trial.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence

from labsite import env, loading, preflight
from labsite.beside.presses import CODE_HUNG_UP, CODE_INTERRUPTED, Presses
from labsite.beside.programs import Programs
from labsite.beside.refused import Refusal
from labsite.supervisor import say
from runs.core.paths import Paths

ROUND_SECONDS = 0.2
CODE_FAILED, CODE_ARGUMENTS = 1, 2
COST = "This costs one small request to the model."


def main(argv: Sequence[str]) -> int:
    """Runs the command: 0 all steps passed, 1 a step failed, 2 wrong arguments."""
    given = _parser().parse_args(argv)
    presses = Presses()
    presses.listen()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labsite.settings")
    try:
        with Programs(Paths(env.state_dir()), say) as programs:
            return _try(given.profile, given.json, programs, presses)
    except Refusal as error:
        say(str(error))
        return CODE_ARGUMENTS
    except (preflight.Problem, env.WrongSetting) as error:
        say(str(error))
        return CODE_FAILED
    except Exception as error:
        say(f"labsite could not go on: {error!r}.")
        return CODE_FAILED


def _try(name: str, is_json: bool, programs: Programs, presses: Presses) -> int:
    programs.prepare()
    loading.set_up()
    from labsite.agent.follow import Follower, profile_named

    profile = profile_named(name)
    say(COST)
    follower = Follower.begin(profile, sys.stdout, is_json=is_json)
    was_pressed = False
    while True:
        if presses.is_hung_up:
            return CODE_HUNG_UP
        if presses.take():
            if was_pressed:
                return CODE_INTERRUPTED
            was_pressed = True
            follower.stop()
            say("Stopping the trial. Ctrl-C again does not wait for it.")
        programs.tend()
        code = follower.news()
        if code is not None:
            return CODE_INTERRUPTED if was_pressed else code
        time.sleep(ROUND_SECONDS)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./lab agent", description="Try agents before they work.", allow_abbrev=False
    )
    acts = parser.add_subparsers(metavar="ACT", required=True)
    made = acts.add_parser(
        "try",
        help="start one on a task of one line, in a scratch repository",
        description=f"Start an agent on a task of one line, in a scratch repository. {COST}",
        epilog="Exit codes: 0 all steps passed, 1 a step failed, 2 wrong arguments, 130 interrupted.",
        allow_abbrev=False,
    )
    made.add_argument("profile", help="the name of its profile, as Settings shows it")
    made.add_argument(
        "--json", action="store_true", help="one JSON object a step, and one at the end"
    )
    return parser
