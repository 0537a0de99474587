"""`./lab watch PROJECT`: opens a watch session, follows it to its end, and exits with its code.

The session is the product's: whoever runs a worker works on it, and it goes on when this command
is killed or its terminal closed. Ctrl-C once drains, twice aborts, three times kills. While
nobody runs a worker this command starts the same programs as `./lab up` does, beside itself.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
import time
from collections.abc import Sequence

from labsite import env, loading, preflight
from labsite.beside.presses import CODE_HUNG_UP, CODE_INTERRUPTED, Presses
from labsite.beside.programs import Programs
from labsite.beside.refused import Refusal
from labsite.supervisor import say
from labsite.watch.lines import HumanLines, JsonLines, Lines
from labsite.watch.refused import NotYet
from runs.core.paths import Paths
from runs.watch.session import EVERY, LIMIT, Request, Terms, WrongTerms, read_terms

ROUND_SECONDS = 0.25
CODE_ARGUMENTS = 2
STEPS = (Request.DRAIN, Request.ABORT, Request.KILL)
LEFT = "A session that was opened goes on with the product; its page says how it stands."
SAID = {
    Request.DRAIN: "Draining: nothing new starts, what runs may finish. Ctrl-C again interrupts it.",
    Request.ABORT: "Aborting: what runs is interrupted and has ten seconds. Ctrl-C again kills it.",
    Request.KILL: "Killing what runs.",
}


def main(argv: Sequence[str]) -> int:
    """Runs the command. The exit code is the session's, or 2 for wrong arguments."""
    given = _parser().parse_args(argv)
    try:
        terms = read_terms(given.watch, _typed(given.max_issues), _typed(given.validate_every))
    except WrongTerms as error:
        return _refuse(error.text)
    presses = Presses()
    presses.listen()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labsite.settings")
    try:
        paths = Paths(env.state_dir())
        with Programs(paths, say) as programs:
            return watch(given.project, terms, _lines(given.json), programs, presses)
    except Refusal as error:
        return _refuse(str(error))
    except (preflight.Problem, env.WrongSetting) as error:
        say(str(error))
        return 1
    except Exception as error:
        say(f"labsite could not go on: {error!r}. {LEFT}")
        return 1


def watch(project: str, terms: Terms, lines: Lines, programs: Programs, presses: Presses) -> int:
    """Open a session and follow it to its end; its exit code. Raises Refusal."""
    programs.prepare()
    say_once = functools.cache(say)
    # Here, not above: arguments are checked before anything is read or made.
    loading.set_up()
    from labsite.watch.follow import Follower

    follower = None
    while follower is None:
        if presses.is_hung_up or presses.take():
            return CODE_HUNG_UP if presses.is_hung_up else CODE_INTERRUPTED
        programs.tend()
        try:
            follower = Follower.open(project, terms, lines)
        except NotYet:
            say_once("The project is being cloned; its session is opened when that is done.")
            time.sleep(ROUND_SECONDS)
    while not presses.is_hung_up:
        pressed = presses.take()
        if pressed:
            asked = step_of(pressed)
            if follower.ask(asked):
                say(SAID[asked])
        programs.tend()
        code = follower.news()
        if code is not None:
            return code
        time.sleep(ROUND_SECONDS)
    say(LEFT)
    return CODE_HUNG_UP


def step_of(pressed: int) -> Request:
    """What so many presses ask for; once draining, each one escalates."""
    return STEPS[min(pressed, len(STEPS)) - 1]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./lab watch",
        description="Work on a project's ready issues by itself, and exit with how that went.",
        epilog="Exit codes: 0 all passed, 1 a validation or an issue failed, 2 wrong arguments, "
        "3 the tracker could not be read three times in a row, 130 interrupted or a run was stopped by a "
        "person, 129 terminal closed: "
        "the session then goes on. Ctrl-C once drains, twice aborts, three times kills.",
        allow_abbrev=False,
    )
    parser.add_argument("project", help="the project's name")
    parser.add_argument(
        "--watch", action="store_true", help="wait for new issues instead of ending without any"
    )
    parser.add_argument(f"--{LIMIT}", metavar="N", help="end after so many issues")
    parser.add_argument(
        f"--{EVERY}", metavar="N", help="validate after so many issues (10 with --watch)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    return parser


def _typed(text: str | None) -> str | None:
    """An empty argument was typed too, and is no number."""
    return text if text is None else text.strip() or "none"


def _lines(is_json: bool) -> Lines:
    return JsonLines(sys.stdout) if is_json else HumanLines(sys.stdout)


def _refuse(text: str) -> int:
    say(text)
    return CODE_ARGUMENTS
