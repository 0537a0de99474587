"""An agent's screen as HTML: text escaped, colours as classes, nothing else let through."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from ansi2html import Ansi2HTMLConverter
from django.utils.safestring import SafeString, mark_safe

from runs.core import lenient_json
from runs.transcript import frames

LINES = 1200

_STEPS = (0, 95, 135, 175, 215, 255)
_COLOUR = re.compile(r"\x1b\[(?P<codes>[0-9;:]*)m")
_TRUE = re.compile(
    r"(?P<ground>[34]8)[;:]2[;:](?P<space>:?)(?P<r>\d{1,3})[;:](?P<g>\d{1,3})[;:](?P<b>\d{1,3})"
)
_INDEXED = re.compile(r"([34]8):5:(\d{1,3})")
_OTHER = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # window titles, links
    r"|\x1b[PX^_].*?(?:\x1b\\|\Z)"  # device control strings
    r"|\x1b\[[0-?]*[ -/]*[@-~]"  # every other control sequence
    r"|\x1b[ -/]*[0-~]?"
    rf"|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f\x80-\x9f{lenient_json.MARKS}]",
    re.DOTALL,
)


def render(screen: str) -> SafeString:
    """The last lines of a screen, safe to put into a page; colours need static/terminal.css."""
    text = "\n".join(screen.replace("\r\n", "\n").split("\n")[-LINES:])
    parts = [_only_colours(part) for part in _pieces(text)]
    converter = Ansi2HTMLConverter(inline=False, escaped=True, linkify=False, scheme="ansi2html")
    return mark_safe(converter.convert("".join(parts), full=False))  # noqa: S308  (escaped by the converter)


@lru_cache(8192)
def line(text: str) -> SafeString:
    """One line of a screen, with the colours that are in force in it, as HTML."""
    return render(text)


def lines(texts: Iterable[str]) -> list[SafeString]:
    """Each line of a screen as HTML of its own."""
    return [line(text) for text in texts]


def screen_lines(screen: str) -> list[SafeString]:
    """The last lines of a screen, each as HTML of its own."""
    found = frames.coloured(screen.replace("\r\n", "\n"))
    return lines(found[-LINES:])


def coloured(text: str) -> str:
    """A line with its colours and nothing else that a terminal would obey."""
    return "".join(
        piece if _COLOUR.fullmatch(piece) else _OTHER.sub("", piece) for piece in _pieces(text)
    ).replace("\n", " ")


def plain(text: str) -> str:
    """A line without colours or anything else that a terminal would obey."""
    return _COLOUR.sub("", coloured(text))


def nearest(red: int, green: int, blue: int) -> int:
    """The colour of the 256 that comes closest, so that classes are enough."""
    levels = [min(range(6), key=lambda n: abs(_STEPS[n] - value)) for value in (red, green, blue)]
    cube = (16 + 36 * levels[0] + 6 * levels[1] + levels[2], tuple(_STEPS[n] for n in levels))
    step = max(0, min(23, round((sum((red, green, blue)) / 3 - 8) / 10)))
    grey = (232 + step, (8 + 10 * step,) * 3)
    return min((cube, grey), key=lambda known: _distance(known[1], (red, green, blue)))[0]


def _pieces(text: str) -> list[str]:
    """The text cut into colour codes and everything between them."""
    pieces, end = [], 0
    for found in _COLOUR.finditer(text):
        pieces += [text[end : found.start()], found[0]]
        end = found.end()
    return [*pieces, text[end:]]


def _only_colours(piece: str) -> str:
    found = _COLOUR.fullmatch(piece)
    if found is None:
        return _OTHER.sub("", piece)
    codes = _INDEXED.sub(r"\1;5;\2", _TRUE.sub(_indexed, found["codes"]))
    # `4:3` is a curly underline; as `4;3` it would be read as italics.
    return f"\x1b[{re.sub(r':[0-9:]*', '', codes)}m"


def _indexed(found: re.Match[str]) -> str:
    red, green, blue = (min(255, int(found[name])) for name in "rgb")
    return f"{found['ground']};5;{nearest(red, green, blue)}"


def _distance(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))
