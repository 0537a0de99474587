"""`./lab agent try PROFILE`: tries an agent in a scratch repository and says step by step what worked.

The trial is the product's: whoever runs a worker carries it out. Ctrl-C stops it. Imports no
Django, so that arguments are checked before anything is read.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from runs.core.terminal import say

if TYPE_CHECKING:
    from runs.agents.follower import Follower

COST = "This costs one small request to the model."


@dataclass(frozen=True, slots=True)
class Command:
    """A trial that is wanted."""

    left: ClassVar[str] = ""
    lost: ClassVar[str] = ""
    failed: ClassVar[int] = 1

    profile: str
    is_json: bool

    def begin(self) -> Follower:
        """Begin a trial of the profile, or follow its open one. Raises ActRefused."""
        from runs.agents.follower import Follower, profile_named

        profile = profile_named(self.profile)
        say(COST)
        return Follower.begin(profile, is_json=self.is_json)


def read(argv: Sequence[str]) -> Command:
    """What was typed."""
    given = _parser().parse_args(argv)
    return Command(given.profile, given.json)


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
