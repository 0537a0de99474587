"""What ready issues wait for: the words of their texts, and what the tracker itself knows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from runs.domain import blocking
from runs.domain.blocking import UNASKED, UNKNOWN, Block
from runs.domain.ports import Lab
from runs.work import asking
from runs.work.asking import Root, Silence
from trackers.base import Ability, Issue, Tracker

ROUNDS = 8

Ready = Mapping[tuple[str, str, str], Sequence[Issue] | Silence]


@dataclass
class Waits:
    """By root: what each open issue waits for. `unread` did not say what is open, `mute` did not
    say what they know by themselves, and were not asked about the issues in `unasked`."""

    known: dict[Root, dict[str, tuple[str, ...]]] = field(default_factory=lambda: defaultdict(dict))
    unread: set[Root] = field(default_factory=set)
    mute: set[Root] = field(default_factory=set)
    unasked: dict[Root, set[str]] = field(default_factory=lambda: defaultdict(set))

    def block_of(self, root: Root, key: str) -> Block:
        """What blocks an issue; unknown when that could not be told."""
        waits = self.known[root]
        could_not_tell = root in self.unread and not set(waits.get(key, ())) <= waits.keys()
        if root in self.mute or could_not_tell:
            return UNKNOWN
        found = blocking.block_of(key, waits)
        return UNASKED if found.is_free and key in self.unasked[root] else found


def ask(
    lab: Lab, ready: Ready, free: Sequence[tuple[str, str, str]], enough: Mapping[Root, int]
) -> Waits:
    """Ask what these issues wait for; a tracker only of the `free` ones (kind, root, key), in order.

    What is claimed or worked on is not started anyway, so nothing is spent on it, and nothing on
    what stands behind `enough` others of its root that may start; 0: all of them.

    Issues that are only named are asked for too, and what those name, so that a circle is seen.
    Of what a tracker says by itself only open issues count, as of what stands in the texts.
    """
    waits = Waits()
    for (kind, root, _), issues in ready.items():
        for issue in () if isinstance(issues, Silence) else issues:
            waits.known[kind, root][issue.key] = blocking.references(issue.body)
    said = _by_trackers(lab, waits, free, enough)
    _by_texts(lab, waits)
    for place, blockers in said.items():
        known = waits.known[place]
        for key, others in blockers.items():
            if others is None:
                waits.unasked[place].add(key)
                continue
            known[key] = tuple(dict.fromkeys((*known.get(key, ()), *sorted(others))))
            for other in others:
                known.setdefault(other, ())
    return waits


def _by_trackers(
    lab: Lab, waits: Waits, free: Sequence[tuple[str, str, str]], enough: Mapping[Root, int]
) -> Mapping[Root, Mapping[str, Collection[str] | None]]:
    """What trackers know of the free issues, as far as they know such things."""
    wanted: dict[Root, tuple[Collection[str], int]] = {}
    for place, issues in waits.known.items():
        tracker = lab.tracker_for(place[0]) if place[0] else None
        mine = [key for kind, root, key in free if (kind, root) == place and key in issues]
        keys = list(dict.fromkeys(mine))
        if tracker is not None and Ability.BLOCKERS in tracker.abilities and keys:
            wanted[place] = (keys, enough.get(place, 0))
    said: dict[Root, Mapping[str, Collection[str] | None]] = {}
    for place, answer in asking.ask_roots(lab, wanted, _blockers).items():
        if isinstance(answer, Silence):
            waits.mute.add(place)
        else:
            said[place] = answer
    return said


def _blockers(
    tracker: Tracker, asked: Mapping[str, tuple[Collection[str], int]]
) -> Mapping[str, Mapping[str, Collection[str] | None] | None]:
    """Asks about all roots at once, unless they differ in how many are enough."""
    said: dict[str, Mapping[str, Collection[str] | None] | None] = {}
    for enough in {most for _, most in asked.values()}:
        some = {root: keys for root, (keys, most) in asked.items() if most == enough}
        said |= tracker.blockers(some, enough)
    return said


def _by_texts(lab: Lab, waits: Waits) -> None:
    asked: dict[Root, set[str]] = defaultdict(set)
    for _ in range(ROUNDS):
        named = {root: _named(known) - asked[root] for root, known in waits.known.items()}
        named = {root: keys for root, keys in named.items() if keys and root not in waits.unread}
        if not named:
            break
        found = asking.ask_roots(lab, named, lambda tracker, some: tracker.still_open(some))
        for place, open_ones in found.items():
            asked[place] |= named[place]
            if isinstance(open_ones, Silence):
                waits.unread.add(place)
            else:
                waits.known[place] |= {one.key: blocking.references(one.body) for one in open_ones}


def _named(known: Mapping[str, tuple[str, ...]]) -> set[str]:
    """Keys that are named and not known to be open yet."""
    return {key for keys in known.values() for key in keys} - known.keys()
