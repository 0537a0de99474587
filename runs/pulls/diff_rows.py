"""The rows of a diff as HTML: one column of code, or old and new side by side.

Built as text and not by a template: thousands of rows a page would take seconds there. Every
code cell comes escaped from `runs.web.code`; all else in here is numbers and fixed words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from django.utils.safestring import SafeString, mark_safe

Place = tuple[str, int]

_SIGNS = {
    "plus": '<td class="s">+<span class="hide">added</span></td>',
    "minus": '<td class="s">−<span class="hide">removed</span></td>',
}
_NO_SIGN = '<td class="s"></td>'
_VOID = '<td class="n void"></td><td class="s void"></td><td class="void"></td>'


class Shown(Protocol):
    """A line as `runs.pulls.diff` makes it."""

    @property
    def kind(self) -> str: ...
    @property
    def old(self) -> int | None: ...
    @property
    def new(self) -> int | None: ...
    @property
    def html(self) -> SafeString: ...


def rows(
    lines: Sequence[Shown], number: int, talk: Mapping[Place, SafeString], *, is_split: bool
) -> SafeString:
    """The body of the table; `number` is the file's, for the names of its lines."""
    made = _split(lines, number) if is_split else _unified(lines, number)
    width = 6 if is_split else 4
    html = []
    for row, places in made:
        html.append(row)
        html += [
            f'<tr class="talk"><td colspan="{width}">{talk[place]}</td></tr>'
            for place in places
            if place in talk
        ]
    return mark_safe("".join(html))  # noqa: S308  (see the head of this page)


def marks(lines: Sequence[tuple[str, str]]) -> dict[int, tuple[int, int]]:
    """What stands out in a line that replaced another: all between their same beginning and end.

    Only where as many lines came as went, and something of the line stayed.
    """
    found: dict[int, tuple[int, int]] = {}
    for gone, come in _blocks([kind for kind, _ in lines]):
        if len(gone) != len(come):
            continue
        for old, new in zip(gone, come, strict=True):
            head, tail = _same(lines[old][1], lines[new][1])
            if head + tail:
                found[old] = (head, len(lines[old][1]) - tail)
                found[new] = (head, len(lines[new][1]) - tail)
    return found


def _same(old: str, new: str) -> tuple[int, int]:
    """How many letters two lines share at their beginning and end, white space not counted."""
    short = min(len(old), len(new))
    head = next((n for n in range(short) if old[n] != new[n]), short)
    tail = next((n for n in range(short - head) if old[-1 - n] != new[-1 - n]), short - head)
    kept = old[:head].strip() + old[len(old) - tail :].strip()
    return (head, tail) if 2 * len(kept) >= len(old.strip()) / 2 else (0, 0)


def _blocks(kinds: Sequence[str]) -> Iterator[tuple[list[int], list[int]]]:
    """Lines that went and the lines that came right after them."""
    gone: list[int] = []
    come: list[int] = []
    for n, kind in enumerate(kinds):
        if kind == "minus" and not come:
            gone.append(n)
        elif kind == "plus" and gone:
            come.append(n)
        else:
            if gone or come:
                yield gone, come
            gone, come = ([n] if kind == "minus" else []), []
    if gone or come:
        yield gone, come


def _unified(lines: Sequence[Shown], number: int) -> Iterator[tuple[str, list[Place]]]:
    for line in lines:
        if line.kind in ("hunk", "note"):
            yield (
                f'<tr class="{line.kind}"><td class="n"></td><td class="n"></td>{_NO_SIGN}<td>{line.html}</td></tr>',
                [],
            )
            continue
        kind = f' class="{line.kind}"' if line.kind else ""
        old, new = _number(line, number, "old"), _number(line, number, "new")
        sign = _SIGNS.get(line.kind, _NO_SIGN)
        yield f"<tr{kind}>{old}{new}{sign}<td>{line.html}</td></tr>", _places(line)


def _split(lines: Sequence[Shown], number: int) -> Iterator[tuple[str, list[Place]]]:
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.kind in ("hunk", "note"):
            yield f'<tr class="{line.kind}"><td colspan="6">{line.html}</td></tr>', []
            at += 1
        elif line.kind in ("minus", "plus"):
            gone = _run(lines, at, "minus")
            come = _run(lines, at + len(gone), "plus")
            for n in range(max(len(gone), len(come))):
                yield _pair(gone[n : n + 1], come[n : n + 1], number)
            at += len(gone) + len(come)
        else:
            yield _pair([line], [line], number)
            at += 1


def _run(lines: Sequence[Shown], at: int, kind: str) -> Sequence[Shown]:
    end = at
    while end < len(lines) and lines[end].kind == kind:
        end += 1
    return lines[at:end]


def _pair(gone: Sequence[Shown], come: Sequence[Shown], number: int) -> tuple[str, list[Place]]:
    sides = (("old", gone), ("new", come))
    html = "".join(_side(one[0], number, side) if one else _VOID for side, one in sides)
    both = [*gone, *come]
    return f"<tr>{html}</tr>", list(dict.fromkeys(p for one in both for p in _places(one)))


def _side(line: Shown, number: int, side: str) -> str:
    kind = f' class="{line.kind}"' if line.kind else ""
    sign = _SIGNS.get(line.kind, _NO_SIGN)
    if line.kind:
        sign = sign.replace('class="s"', f'class="s {line.kind}"')
    return f"{_number(line, number, side)}{sign}<td{kind}>{line.html}</td>"


def _number(line: Shown, number: int, side: str) -> str:
    """The cell of a line's number. A line's name is L and its new number; O for one that went."""
    value = line.old if side == "old" else line.new
    if value is None:
        return '<td class="n"></td>'
    if side == "old" and line.new is not None:
        return f'<td class="n">{value}</td>'
    letter = "O" if side == "old" else "L"
    return f'<td class="n" id="f{number}-{letter}{value}">{value}</td>'


def _places(line: Shown) -> list[Place]:
    places = (("old", line.old), ("new", line.new))
    return [(side, value) for side, value in places if value is not None]
