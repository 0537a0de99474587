"""Which issues wait for others: the `## Blocked by` sections of their texts, and cycles among them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_HEADING = re.compile(r"^ {0,3}#{1,6}(?:[ \t]+(?P<text>.*?))?(?:[ \t]+#+)?[ \t]*$")
_TITLE = re.compile(r"blocked[ \t]+by:?", re.IGNORECASE)
# No heading in Markdown, but meant as one, and read so elsewhere: better wait once too often.
_TIGHT = re.compile(r"^ {0,3}#{1,6}blocked[ \t]+by:?(?:[ \t]+#+)?[ \t]*$", re.IGNORECASE)
_FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
_REFERENCE = re.compile(r"(?<![\w/#&])#(\d{1,9})(?![\w])")


def references(body: str) -> tuple[str, ...]:
    """The keys under every "Blocked by" heading, each once, in the order in which they stand.

    The heading may be of any level, with or without a space after its signs, and its section ends
    at the next heading of any level. What stands in a code
    block is an example, and so is `owner/name#5`, which is an issue of another place.
    """
    found: dict[str, None] = {}
    is_inside, fence = False, ""
    for line in body.splitlines():
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence):
                fence = ""
            continue
        if mark:
            fence = mark[1]
            continue
        heading = _HEADING.match(line)
        if _TIGHT.match(line):
            is_inside = True
        elif heading:
            is_inside = bool(_TITLE.fullmatch((heading["text"] or "").strip()))
        elif is_inside:
            found |= dict.fromkeys(str(int(number)) for number in _REFERENCE.findall(line))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Block:
    """What an issue waits for: open issues, or itself by way of others. None: could not tell.

    `is_unasked`: nobody was asked, since others go first.
    """

    by: tuple[str, ...] | None = ()
    cycle: tuple[str, ...] = ()
    is_unasked: bool = False

    @property
    def is_free(self) -> bool:
        """Whether nothing blocks the issue, and that is known."""
        return self.by == ()


FREE = Block()
UNKNOWN = Block(by=None)
UNASKED = Block(by=None, is_unasked=True)


def block_of(key: str, waits_for: Mapping[str, tuple[str, ...]]) -> Block:
    """What blocks an issue, where `waits_for` holds the open issues with what their texts name.

    A reference to an issue that is closed or not there never blocks. A cycle is the way from the
    issue back to itself: nobody can end it by working.
    """
    by = tuple(other for other in waits_for.get(key, ()) if other in waits_for)
    return Block(by, _cycle(key, waits_for))


def _cycle(key: str, waits_for: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The shortest way from an issue back to itself, both ends included; empty when there is none."""
    ways: list[tuple[str, ...]] = [(key,)]
    seen: set[str] = set()
    for way in ways:
        for other in waits_for.get(way[-1], ()):
            if other == key:
                return (*way, key)
            if other in waits_for and other not in seen:
                seen.add(other)
                ways.append((*way, other))
    return ()
