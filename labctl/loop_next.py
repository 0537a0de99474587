"""`labctl next`: in a loop that stays, claim the next issue and print it."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping

from labctl.client import Client
from labctl.session import WrongArguments, as_json, client
from labctl.show import line, plain

TYPE_CHECKING = False  # importing `typing` takes as long as Python itself
if TYPE_CHECKING:
    from typing import Any

ADDRESS = "/agent/loop/next"
WAIT_SECONDS, LONGEST_WAIT = 60.0, 600.0
ANSWER_SECONDS = 5.0
TOLD, LATER, NONE = 0, 1, 3
CODES = {"taken": TOLD, "open": TOLD, "none": NONE}
ABOUT = """\
In a loop that stays: claim the next ready issue of this project, put the worktree on a branch of
its own, and print the issue. The same issue is printed again until the completion word says that
it is done.

exit status: 0 an issue is printed; 3 there is none now, and why; 1 it could not be told in time,
so that asking again may help; 2 wrong arguments."""


def add(things: Any) -> None:
    """Teach the command line `next`."""
    asked = things.add_parser(
        "next",
        help="in a loop that stays: claim the next issue and print it (3: there is none)",
        description=ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    asked.set_defaults(status=run)
    asked.add_argument(
        "--wait",
        type=float,
        default=WAIT_SECONDS,
        metavar="SECONDS",
        help=f"how long to wait for the answer at most (default {WAIT_SECONDS:g})",
    )
    asked.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace, env: Mapping[str, str]) -> int:
    """`labctl next`; its exit code."""
    if not 0 <= options.wait <= LONGEST_WAIT:
        raise WrongArguments(f"--wait takes 0 to {LONGEST_WAIT:g} seconds.")
    found = ask(client(env), options.wait)
    code = CODES.get(str(found.get("state")), LATER)
    if options.json:
        print(as_json(found))
    elif code == TOLD:
        print(line(found["text"]), file=sys.stderr)
        print(plain(found["objective"]))
    else:
        print(line(found.get("text")), file=sys.stderr if code == LATER else sys.stdout)
    return code


def ask(
    api: Client,
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, Any]:
    """The answer, or the last one of those that were none yet when time was up. Raises Failed."""
    until = clock() + seconds
    while True:
        began = clock()
        left = max(0.0, until - began)
        found = api.call("POST", ADDRESS, {"seconds": min(left, ANSWER_SECONDS)})
        if found.get("state") != "pending" or clock() >= until:
            return found
        sleep(max(0.0, min(until - clock(), 0.2 - (clock() - began))))
