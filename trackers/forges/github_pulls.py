"""Pull requests of given heads on GitHub: one list per tick, and each new head once (LAB-12)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from trackers.account import Purpose
from trackers.base import Pull
from trackers.forges import github_reading, reading
from trackers.forges.dialect import Need
from trackers.forges.heads import Heads, Seen, newest, reaches
from trackers.forges.visit import Leaf, Visit

_NEWEST_FIRST = {"state": "all", "sort": "updated", "direction": "desc"}
# GitHub takes seconds for a hundred of them, since each brings two repositories along.
PAGE = 40
MOST_PAGES_BACK = 4


def pulls(visit: Visit, known: Heads, wanted: Collection[str]) -> list[Pull]:
    """Every pull request of these heads, however old (X-03).

    The newest page tells what changed. A head whose last look-up it does not reach back to is
    asked for by its name, which GitHub answers exactly.
    """
    front = _leaf(visit, 1)
    as_of = newest(front.items)
    known.learn(seen(front.items))
    if not front.has_more:
        known.settle_all(as_of)
        return known.of(wanted)
    back = {head: at for head in wanted if (at := known.complete_since(head)) is not None}
    if back and not _caught_up(visit, known, front, min(back.values())):
        back = {}
    owner = _owner(front.items) or visit.repository.owner
    for head in sorted(set(wanted) - set(back)):
        params = {"state": "all", "head": f"{owner}:{head}"}
        known.learn(seen(_every(visit, params)))
    known.settle(wanted, as_of)
    return known.of(wanted)


def seen(entries: Iterable[Any]) -> list[Seen]:
    """The pull requests that could be read, each with the time of its last change."""
    found = ((github_reading.pull(entry), entry) for entry in entries)
    return [Seen(one, reading.moment(entry, "updated_at")) for one, entry in found if one]


def _caught_up(visit: Visit, known: Heads, front: Leaf, since: Any) -> bool:
    """Read on until the list comes to what was known before; False when that is far."""
    leaf, number = front, 1
    while leaf.has_more and not reaches(leaf.items, since):
        if number >= MOST_PAGES_BACK:
            return False
        number += 1
        leaf = _leaf(visit, number)
        known.learn(seen(leaf.items))
    return True


def _leaf(visit: Visit, number: int) -> Leaf:
    return visit.leaf(
        "pulls",
        purpose=Purpose.PULLS,
        need=Need.READ_PULLS,
        params=_NEWEST_FIRST,
        number=number,
        size=PAGE,
    )


def _every(visit: Visit, params: dict[str, str]) -> list[Any]:
    return visit.every("pulls", purpose=Purpose.PULLS, need=Need.READ_PULLS, params=params)


def _owner(entries: Iterable[Any]) -> str:
    """Whose the repository is by now. After it was handed over, its old owner has no such heads."""
    owners = (reading.text(entry, "base", "repo", "owner", "login") for entry in entries)
    return next((owner for owner in owners if owner), "")
