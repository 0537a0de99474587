"""Removes control, bidirectional and invisible characters from text.

Titles are written by strangers, and go onto pages, terminals and into the tasks of agents.
"""

from __future__ import annotations

_CONTROLS = (*range(32), *range(127, 160))
_TURNING = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
# No joiners: emoji and whole scripts are written with them.
_UNSEEN = (0xAD, 0x180E, 0x200B, *range(0x2060, 0x2066), *range(0x206A, 0x2070), 0xFEFF)
_NOTES = (*range(0xFFF9, 0xFFFC), *range(0xE0000, 0xE0080))
_SPACES = (*range(9, 14), *range(28, 32), 0x85, 0x2028, 0x2029)

_DROPPED = dict.fromkeys((*_CONTROLS, *_TURNING, *_UNSEEN, *_NOTES))
_OF_LINES = {**_DROPPED, **dict.fromkeys(_SPACES, " ")}
_OF_TEXTS = {**_OF_LINES, ord("\n"): "\n", ord("\t"): "\t", ord("\r"): None}


def line(text: str) -> str:
    """A title on one line."""
    return text if text.isprintable() else text.translate(_OF_LINES)


def text(text: str) -> str:
    """Lines that keep their ends and tabs."""
    return text if text.isprintable() else text.translate(_OF_TEXTS)
