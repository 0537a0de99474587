"""Which equal passes of a monitor become one entry, and what that says."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

_NUMBERS = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True)
class Passed:
    """One entry of a monitor's passes; `times` and `since` of one that stands for several."""

    pk: int
    text: str
    at: datetime
    times: int = 1
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Fold:
    """The newest of equal entries, which stays and tells of all, and those that it stands for."""

    kept: Passed
    gone: tuple[int, ...] = ()


def fold(passes: Iterable[Passed]) -> list[Fold]:
    """Equal entries in a row as one. `passes` are those of one group, oldest first.

    In a row: no entry that differs in its numbers alone is between them, such as 2/5 between 1/5 and
    1/5. Where two passes tell by turns, each has its own row.
    """
    found: dict[int, Fold] = {}
    last: dict[str, Passed] = {}
    for one in passes:
        shape = _NUMBERS.sub("#", one.text)
        before = last.get(shape)
        gone: tuple[int, ...] = ()
        if before is not None and before.text == one.text:
            gone = (*found.pop(before.pk).gone, before.pk)
            since = before.since or before.at
            one = replace(
                one, times=one.times + before.times, since=min(since, one.since or one.at)
            )
        last[shape] = one
        found[one.pk] = Fold(one, gone)
    return list(found.values())
