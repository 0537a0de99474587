"""`./lab wait GROUP`: blocks until the monitor of a task group has ended, and prints the result.

The monitor is the product's: whoever runs a worker passes it, and it goes on when this command
ends. While nobody runs a worker this command starts the same programs as `./lab up` does.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from labsite import env, loading, preflight
from labsite.beside.presses import CODE_HUNG_UP, CODE_INTERRUPTED, Presses
from labsite.beside.programs import Programs
from labsite.beside.refused import Refusal
from labsite.supervisor import say
from labsite.wait.lines import HumanLines, JsonLines
from runs.core.paths import Paths
from runs.groups.wait_terms import WrongTerm, read_expected, read_options

ROUND_SECONDS = 0.2
CODE_ARGUMENTS, CODE_FAILED = 2, 3
TIMES = ("poll", "stale", "timeout", "release")
LEFT = "The monitor goes on; its page shows it, and the same command follows it again."


def main(argv: Sequence[str]) -> int:
    """Runs the command: 0 complete, 1 timed out, 2 wrong arguments, 3 no result."""
    given = _parser().parse_args(argv)
    try:
        options = _options(given)
        expected = read_expected(given.expected)
    except WrongTerm as error:
        return _refuse(str(error))
    presses = Presses()
    presses.listen()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labsite.settings")
    try:
        with Programs(Paths(env.state_dir()), say) as programs:
            return _wait(given, options, expected, programs, presses)
    except Refusal as error:
        return _refuse(str(error))
    except (preflight.Problem, env.WrongSetting) as error:
        say(str(error))
        return CODE_FAILED
    except Exception as error:  # Python's own code for it would be that of partial results
        say(f"labsite could not go on: {error!r}. There is no result. {LEFT}")
        return CODE_FAILED


def _wait(
    given: argparse.Namespace,
    options: dict[str, Any],
    expected: int | None,
    programs: Programs,
    presses: Presses,
) -> int:
    programs.prepare()
    # Here, not above: arguments are checked before anything is read or made.
    loading.set_up()
    from labsite.wait.follow import Follower, group_named

    lines = JsonLines(sys.stdout) if given.json else HumanLines(sys.stdout)
    group = group_named(given.group, given.project)
    follower = Follower.begin(group, lines, given.preset, options, expected)
    while True:
        if presses.is_hung_up or presses.take():
            say(LEFT)
            return CODE_HUNG_UP if presses.is_hung_up else CODE_INTERRUPTED
        programs.tend()
        code = follower.news()
        if code is not None:
            return code
        time.sleep(ROUND_SECONDS)


def _options(given: argparse.Namespace) -> dict[str, Any]:
    """The options that were typed, by the names of their columns; the others are the preset's."""
    found: dict[str, Any] = dict(read_options({name: getattr(given, name) for name in TIMES}))
    if given.label is not None:
        found["label"] = given.label
    if given.checkpoints is not None:
        found["has_checkpoints"] = given.checkpoints
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./lab wait",
        description="Wait until the tasks of a group are completed, or time is up, and print the result.",
        epilog="TIME is 30s, 10m, 2h or a number of seconds. What is not given comes from the preset. "
        "Exit codes: 0 complete, 1 timed out with partial results, 2 wrong arguments, 3 the monitor "
        "failed or was stopped, or the group was deleted; 130 interrupted, 129 terminal closed: the monitor then goes on.",
        allow_abbrev=False,
    )
    parser.add_argument("group", help="PROJECT/GROUP, or GROUP where one open group is named so")
    parser.add_argument("--project", default="", help="the project's name")
    parser.add_argument("--preset", help="options under a name; the group's own by default")
    parser.add_argument(
        "--expected", metavar="N", help="so many tasks; all of the group by default"
    )
    parser.add_argument("--poll", metavar="TIME", help="between two listings of the tasks")
    parser.add_argument("--stale", metavar="TIME", help="in progress for longer: stalled")
    parser.add_argument("--timeout", metavar="TIME", help="partial results after it; or none")
    parser.add_argument("--release", metavar="TIME", help="stalled tasks go back after it; or none")
    parser.add_argument("--label", help="put before every message")
    parser.add_argument(
        "--checkpoints", action=argparse.BooleanOptionalAction, help="tell milestones and blockers"
    )
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
    return parser


def _refuse(text: str) -> int:
    say(text)
    return CODE_ARGUMENTS
