"""Reads what a person typed for `./lab wait`: lengths of time and numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping

MOST = 1_000_000
NONE = "none"
_LENGTH = re.compile(r"([0-9]{1,9})([smh]?)", re.ASCII)
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}
# By the options' names; those that can be left away altogether may be `none`.
_TIMES = {"poll": False, "stale": False, "timeout": True, "release": True}


class WrongTerm(ValueError):
    """One option cannot be used; the text says which and why."""


def read_options(typed: Mapping[str, str | None]) -> dict[str, int | None]:
    """What was typed of `poll`, `stale`, `timeout` and `release`, as columns in seconds.

    What was not typed is left to the preset. Raises WrongTerm.
    """
    found = {}
    for name, may_be_none in _TIMES.items():
        text = typed.get(name)
        if text is not None:
            found[f"{name}_seconds"] = _seconds(name, text.strip(), may_be_none)
    return found


def read_expected(text: str | None) -> int | None:
    """The number of tasks to wait for; None when it was not typed. Raises WrongTerm."""
    if text is None:
        return None
    given = text.strip()
    if not given.isascii() or not given.isdigit() or int(given) > MOST:
        raise WrongTerm("Error: --expected is a whole number of tasks")
    return int(given)


def _seconds(name: str, text: str, may_be_none: bool) -> int | None:
    if may_be_none and text == NONE:
        return None
    found = _LENGTH.fullmatch(text)
    number = int(found[1]) * _UNITS[found[2]] if found else 0
    if not number:
        more = ", or none" if may_be_none else ""
        raise WrongTerm(
            f"Error: --{name} is a length of at least one second, such as 30s, 10m{more}"
        )
    return number
