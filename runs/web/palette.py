"""Writes static/terminal.css and static/code.css: `python -m runs.web.palette`.

The terminal is always dark; a foreground that could not be read on it is made lighter. Code in
diffs takes one Pygments style by day and one by night.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pygments.style import StyleMeta
from pygments.styles import get_style_by_name
from pygments.token import STANDARD_TYPES

Colour = tuple[int, int, int]

GROUND: Colour = (10, 13, 18)
TEXT: Colour = (207, 216, 227)
DAY, NIGHT = "friendly", "github-dark"
DAY_GROUND: Colour = (222, 222, 222)
NIGHT_GROUND: Colour = (44, 48, 52)
ENOUGH = 4.6
PLAIN = "var(--text)"
SIXTEEN: tuple[Colour, ...] = (
    (107, 119, 137), (255, 107, 107), (61, 220, 151), (255, 180, 84),
    (124, 147, 255), (210, 140, 255), (86, 204, 242), (207, 216, 227),
    (141, 151, 166), (255, 143, 143), (120, 235, 185), (255, 208, 138),
    (160, 178, 255), (226, 176, 255), (140, 224, 250), (255, 255, 255),
)  # fmt: skip
STATIC = Path(__file__).resolve().parents[2] / "static"
NOTE = "/* Made by `python -m runs.web.palette`; change that instead. */\n"


def terminal_css() -> str:
    """Rules for the classes that `runs.web.terminal` uses."""
    return NOTE + "@layer parts {\n" + "".join(f"  {rule}\n" for rule in _terminal_rules()) + "}\n"


def code_css() -> str:
    """Rules for the classes of highlighted code, light and dark in one."""
    day, night = _style(DAY, DAY_GROUND), _style(NIGHT, NIGHT_GROUND)
    rules = [
        f"  .code .{name} {{ color: light-dark({day[name]}, {night[name]}); }}\n"
        for name in sorted(day.keys() & night.keys())
        if (day[name], night[name]) != (PLAIN, PLAIN)
    ]
    return NOTE + "@layer parts {\n" + "".join(rules) + "}\n"


def readable(colour: Colour, ground: Colour = GROUND) -> Colour:
    """`colour`, moved away from the ground until it can be read on it (WCAG AA)."""
    target = 255 if _light(ground) < 0.2 else 0
    while contrast(colour, ground) < ENOUGH:
        red, green, blue = (round(part + (target - part) * 0.08) for part in colour)
        if (red, green, blue) == colour:
            return (target, target, target)
        colour = (red, green, blue)
    return colour


def contrast(one: Colour, other: Colour) -> float:
    """The contrast ratio of WCAG."""
    high, low = sorted((_light(one), _light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def table() -> list[Colour]:
    """The 256 colours; the first 16 are ours."""
    steps = (0, 95, 135, 175, 215, 255)
    cube = [(r, g, b) for r in steps for g in steps for b in steps]
    grey = [(8 + 10 * n, 8 + 10 * n, 8 + 10 * n) for n in range(24)]
    return [*SIXTEEN, *cube, *grey]


def _terminal_rules() -> Iterator[str]:
    yield ".term .ansi1 { font-weight: 650; }"
    yield ".term .ansi2 { color: #93a0b2; }"
    yield ".term .ansi3 { font-style: italic; }"
    yield ".term .ansi4 { text-decoration: underline; }"
    yield ".term .ansi9 { text-decoration: line-through; }"
    yield ".term .ansi8 { color: transparent; }"
    yield f".term .inv_foreground {{ color: {_hex(GROUND)}; }}"
    yield f".term .inv_background {{ background: {_hex(TEXT)}; }}"
    for number, colour in enumerate(table()):
        front, _ = _names(number)
        yield f".term :is({', '.join(front)}) {{ color: {_hex(readable(colour))}; }}"
    # After all foregrounds: on a coloured ground the text takes the colour that can be read there.
    for number, colour in enumerate(table()):
        front, back = _names(number)
        fore = _hex(readable(colour))
        yield f".term :is({', '.join(back)}) {{ background: {_hex(colour)}; color: {_hex(_on(colour))}; }}"
        inverse = ", ".join(name.replace(".ansi", ".inv") for name in front)
        yield f".term :is({inverse}) {{ background: {fore}; color: {_hex(GROUND)}; }}"


def _names(number: int) -> tuple[list[str], list[str]]:
    """The class names of a colour as foreground and as background."""
    front, back = [f".ansi38-{number}"], [f".ansi48-{number}"]
    if number < 8:
        return [f".ansi{30 + number}", *front], [f".ansi{40 + number}", *back]
    if number < 16:
        return [f".ansi{82 + number}", *front], [f".ansi{92 + number}", *back]
    return front, back


def _on(colour: Colour) -> Colour:
    """Text for a coloured ground: black or white; one of them can always be read."""
    return max(((0, 0, 0), (255, 255, 255)), key=lambda text: contrast(text, colour))


def _style(name: str, ground: Colour) -> dict[str, str]:
    """Class name to colour, readable on the ground of a changed line."""
    style: StyleMeta = get_style_by_name(name)
    return {
        short: _hex(readable(_parts(colour), ground))
        if (colour := style.style_for_token(token)["color"])
        else PLAIN
        for token, short in STANDARD_TYPES.items()
        if short
    }


def _parts(colour: str) -> Colour:
    return int(colour[0:2], 16), int(colour[2:4], 16), int(colour[4:6], 16)


def _hex(colour: Colour) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


def _light(colour: Colour) -> float:
    """Relative luminance."""
    red, green, blue = (
        part / 255 / 12.92 if part / 255 <= 0.04045 else ((part / 255 + 0.055) / 1.055) ** 2.4
        for part in colour
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


if __name__ == "__main__":
    (STATIC / "terminal.css").write_text(terminal_css())
    (STATIC / "code.css").write_text(code_css())
