"""What ready issues wait for: the words of their texts, and what the tracker itself knows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from runs.core.ports import Lab
from runs.dispatch import blocking
from runs.dispatch.blocking import UNASKED, UNKNOWN, Block
from runs.forges import fan_out
from runs.forges.fan_out import Root, Silence
from trackers.base import Ability, Issue, Tracker

ROUNDS = 8

Ready = Mapping[tuple[str, str, str], Sequence[Issue] | Silence]


@dataclass(frozen=True, slots=True)
class Line:
    """The issues of one project that nobody works on, in the order in which they would start.

    What stands behind `enough` of them that may start need not be asked about; 0: all are.
    """

    root: Root
    keys: Sequence[str]
    enough: int = 0


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


def ask(lab: Lab, ready: Ready, lines: Sequence[Line]) -> Waits:
    """Ask what these issues wait for; a tracker only of those in a line.

    What is claimed or worked on is not started anyway, so nothing is spent on it. Whom the texts
    block already stands behind all others: no start that is expected of it keeps others unasked.

    Issues that are only named are asked for too, and what those name, so that a circle is seen.
    Of what a tracker says by itself only open issues count, as of what stands in the texts.
    """
    waits = Waits()
    for (kind, root, _), issues in ready.items():
        for issue in () if isinstance(issues, Silence) else issues:
            waits.known[kind, root][issue.key] = blocking.references(issue.body)
    _by_texts(lab, waits)
    for place, blockers in _by_trackers(lab, waits, lines).items():
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
    lab: Lab, waits: Waits, lines: Sequence[Line]
) -> Mapping[Root, Mapping[str, Collection[str] | None]]:
    """What trackers know of the issues in these lines, as far as they know such things."""
    wanted: dict[Root, list[Line]] = defaultdict(list)
    for line in lines:
        tracker = lab.tracker_for(line.root[0]) if line.root[0] else None
        if tracker is not None and Ability.BLOCKERS in tracker.abilities and line.keys:
            is_free = {key: waits.block_of(line.root, key).is_free for key in line.keys}
            keys = sorted(is_free, key=lambda key: not is_free[key])
            wanted[line.root].append(replace(line, keys=keys))
    said: dict[Root, Mapping[str, Collection[str] | None]] = {}
    for place, answer in fan_out.ask_roots(lab, wanted, _blockers).items():
        if isinstance(answer, Silence):
            waits.mute.add(place)
        else:
            said[place] = answer
    return said


def _blockers(
    tracker: Tracker, asked: Mapping[str, Sequence[Line]]
) -> Mapping[str, Mapping[str, Collection[str] | None] | None]:
    """Asks about all roots at once, unless they differ in how many are enough, and about each
    project of a root by itself. What one project leaves unasked, another may have asked."""
    together: dict[tuple[int, int], dict[str, Sequence[str]]] = defaultdict(dict)
    for root, lines in asked.items():
        for number, line in enumerate(lines):
            together[number, line.enough][root] = line.keys
    said: dict[str, Mapping[str, Collection[str] | None] | None] = {root: {} for root in asked}
    for (_, enough), some in sorted(together.items(), key=lambda one: one[0]):
        some = {root: keys for root, keys in some.items() if said[root] is not None}
        for root, answer in tracker.blockers(some, enough).items() if some else ():
            said[root] = _joined(said[root] or {}, some[root], answer)
    return said


def _joined(
    known: Mapping[str, Collection[str] | None],
    keys: Sequence[str],
    answer: Mapping[str, Collection[str] | None] | None,
) -> Mapping[str, Collection[str] | None] | None:
    """What is known of a root with one answer more, in which those that wait for nothing lack."""
    if answer is None:
        return None
    told = {key: answer.get(key, ()) for key in keys}
    return {**known, **{key: by for key, by in told.items() if by is not None or key not in known}}


def _by_texts(lab: Lab, waits: Waits) -> None:
    asked: dict[Root, set[str]] = defaultdict(set)
    for _ in range(ROUNDS):
        named = {root: _named(known) - asked[root] for root, known in waits.known.items()}
        named = {root: keys for root, keys in named.items() if keys and root not in waits.unread}
        if not named:
            break
        found = fan_out.ask_roots(lab, named, lambda tracker, some: tracker.still_open(some))
        for place, open_ones in found.items():
            asked[place] |= named[place]
            if isinstance(open_ones, Silence):
                waits.unread.add(place)
            else:
                waits.known[place] |= {one.key: blocking.references(one.body) for one in open_ones}


def _named(known: Mapping[str, tuple[str, ...]]) -> set[str]:
    """Keys that are named and not known to be open yet."""
    return {key for keys in known.values() for key in keys} - known.keys()
