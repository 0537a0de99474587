"""The switches of checks as options of a command. Imports no Django, so that they are checked first."""

from __future__ import annotations

import argparse

from runs.core.refusal import ActRefused
from runs.validation import specs
from runs.validation.specs import Switch, Switches, UnfitThreshold, UnknownSwitch

HELP = f"comma-separated, of: {', '.join(Switch)}"


def add(parser: argparse.ArgumentParser) -> None:
    """Let a command take the switches."""
    parser.add_argument("--disable-validations", metavar="LIST", help=HELP)
    parser.add_argument(
        "--coverage-threshold",
        metavar="N",
        help=f"percentage of the code that tests have to reach (a project's default is {specs.MIN_PERCENT:g})",
    )
    parser.add_argument(
        "--keep-worktrees",
        action="store_true",
        default=None,
        help="keep the clean worktrees in which commands failed",
    )


def read(given: argparse.Namespace) -> Switches:
    """What was typed. Raises ActRefused."""
    try:
        percent = given.coverage_threshold
        return Switches(
            specs.switches(given.disable_validations or ""),
            None if percent is None else specs.threshold(percent),
            given.keep_worktrees,
        )
    except UnknownSwitch as error:
        raise ActRefused(f"Error: --disable-validations: {error}") from error
    except UnfitThreshold as error:
        raise ActRefused(f"Error: --coverage-threshold: {error}") from error
