"""Takes known secrets out of what programs print. Pure, and cheap where there is none.

A secret is found although the text does not hold it as it is: with colours in it, broken over
lines, escaped as in JSON (`\\u002d`, `\\/`) or in a URL (`%2B`), with invisible characters in it, or
as base64. At least a third of a secret, and no fewer than 20 characters of its beginning, count as
the secret: programs cut long lines. What is not found: a secret that somebody disguised on purpose.

Standard library only: the launcher of a session uses it too.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

HIDDEN = "[hidden]"
FILE = "secrets.json"  # in a run's folder, until its launcher has read it
SHORTEST = 8
PART = 20
BEGUN = 4
MOST = 2000
ROOM = 100  # for what a run has of its own, beside the values of files
_FRAME = "│┃⎿"

# What stands between the letters of a text but does not belong to it: colours and other control
# sequences, characters that nobody sees, and line ends (as they are or as `\n`) with what frames a
# line. No part of it looks at a run of spaces or backslashes more than twice, however long it is.
_CONTROL = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))"
_UNSEEN = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
_SIDE = f" \t\r\n\x0b\x0c\xa0{_FRAME}"
_NOISE = (
    rf"{_CONTROL}|(?:(?<![ \t{_FRAME}])[ \t{_FRAME}]++)?(?:[\r\n]|(?<!\\)\\++[nr])"
    rf"(?:[{_SIDE}]|(?<!\\)\\++[nrt])*+|{_UNSEEN}"
)
_BACKSLASH = r"(?<!\\)\\++(?:u[0-9a-fA-F]{4}|[t\"/])|\\\\"
_CODE = r"%[0-7][0-9a-fA-F]|&(?:amp|lt|gt|quot|apos|#39|#x27|#34);"
_DROPPED = re.compile(_NOISE)
_EITHER = re.compile(f"(?P<noise>{_NOISE})|(?P<escape>{_BACKSLASH}|{_CODE})")
# The same in steps, each of which costs next to nothing where there is nothing for it.
_CONTROLS = re.compile(_CONTROL)
_BACKSLASHES = re.compile(
    r"\\(?:(?<=[^\\]\\)|(?<=\A\\))\\*+(?:u[0-9a-fA-F]{4}|[nrt\"/])|(?:\\\\)++"
)
_CODES = re.compile(_CODE)
_UNSEEN_ONES = re.compile(f"{_UNSEEN}+")
_ENTITIES = {
    **{"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"},
    **{"#39": "'", "#x27": "'", "#34": '"'},
}
_COVERED = re.compile(b"\x01+")
_EATEN = frozenset('0123456789abcdefABCDEFnrtu"/')
_ODD = frozenset("\\%&")
_MARKS = ("lab_", "ghs_")
# What labsite itself makes, and what GitHub lends an App for an hour, is known by its form.
_TOKEN = re.compile(
    r"(?<![\w-])(?:lab_(?=[\w-]*[a-z])(?=[\w-]*[A-Z])[\w-]{30,}|ghs_[A-Za-z0-9]{36,})", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Mask:
    """What takes a set of secrets out of texts; call it with a text."""

    secrets: tuple[str, ...] = field(default=(), repr=False)
    _wanted: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    _starts: tuple[str, ...] = field(default=(), repr=False)
    _odd: tuple[str, ...] = field(default=(), repr=False)

    def __call__(self, text: str) -> str:
        """The text with each secret replaced; the very same text when it holds none."""
        return _replaced(text, self._spans) if self.is_in(text) else text

    def line(self, raw: bytes) -> bytes:
        """One line that a program printed, without its line end, text or JSON."""
        text = raw.decode("utf-8", "surrogateescape")
        if not self.is_in(text):
            return raw
        with contextlib.suppress(ValueError, RecursionError):
            if text.lstrip().startswith(("{", "[")):
                return json.dumps(self.value(json.loads(text))).encode()
        return self(text).encode("utf-8", "surrogateescape")

    def value(self, value: Any) -> Any:
        """The same JSON value with each text in it masked, names of objects included."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, list):
            return [self.value(one) for one in value]
        if isinstance(value, dict):
            return {self(str(name)): self.value(one) for name, one in value.items()}
        return value

    def is_in(self, text: str) -> bool:
        """Whether a secret may be in a text. Never wrong about one that has none of them."""
        plain, was_escaped = _plain(text)
        if any(mark in plain and _TOKEN.search(plain) for mark in _MARKS):
            return True
        for start in self._starts:
            if start in plain:
                return True
        # What reads as an escape may be none: then the text stands as it is.
        return was_escaped and any(start in text for start in self._odd)

    def is_begun(self, text: str) -> bool:
        """Whether the text ends inside a secret, which what follows may complete."""
        longest = max(map(len, self.secrets), default=0)
        plain, _ = _plain(text[-4 * longest :])
        for secret in self.secrets:
            at = plain.rfind(secret[:BEGUN])
            if at >= 0 and len(plain) - at < len(secret) and secret.startswith(plain[at:]):
                return True
        return False

    def _spans(self, plain: str) -> Iterator[tuple[int, int]]:
        for found in _TOKEN.finditer(plain):
            yield found.span()
        for start, whole in self._wanted:
            at = plain.find(start)
            while at >= 0:
                length = _shared(plain, at, whole)
                if length == len(whole) or length >= max(PART, len(whole) // 3):
                    yield at, at + length
                at = plain.find(start, at + length)


NOTHING = Mask()


def mask(secrets: Iterable[str], of_files: Iterable[str] = ()) -> Mask:
    """A mask of these values. Shorter than 8 characters is none; each line of a longer text is one.

    Where there are too many, those of files give way to all others, the shortest first.
    """
    first = _longest({line for one in secrets for line in _lines(one)}, MOST)
    more = {line for one in of_files for line in _lines(one)}.difference(first)
    known = _longest({*first, *_longest(more, max(0, MOST - ROOM - len(first)))}, MOST)
    wanted: dict[str, str] = {}
    for secret in known:
        for form in _forms(secret):
            wanted[form] = form[:PART] if len(form) >= PART + SHORTEST else form
    return Mask(
        secrets=tuple(known),
        _wanted=tuple((start, whole) for whole, start in wanted.items()),
        _starts=tuple(dict.fromkeys(wanted.values())),
        _odd=tuple(start for whole, start in wanted.items() if _may_be_eaten(whole)),
    )


def _longest(lines: Iterable[str], most: int) -> list[str]:
    return sorted(lines, key=len, reverse=True)[:most]


def _may_be_eaten(secret: str) -> bool:
    """Whether what stands before it may read as an escape together with how it begins."""
    return secret[0] in _EATEN or ";" in secret[:5] or bool(_ODD & set(secret))


def _lines(secret: str) -> list[str]:
    """A key of several lines is printed in many ways, but its lines stay as they are."""
    found = [line.strip() for line in secret.splitlines()]
    return [
        line
        for line in found
        if len(_DROPPED.sub("", line)) >= SHORTEST and not line.startswith("-----")
    ]


def _forms(secret: str) -> Iterator[str]:
    yield secret
    plain, _ = _plain(secret)
    if plain != secret and len(plain) >= SHORTEST:
        yield plain
    if not secret.isascii():
        yield "".join(one if one.isascii() else _in_url(one) for one in plain)
    yield from _as_base64(secret.encode("utf-8", "surrogatepass"))


def _as_base64(secret: bytes) -> Iterator[str]:
    """The letters that stand for the secret whatever stands before and after it."""
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + secret).decode().rstrip("=")
        after = (before + len(secret)) % 3
        sure = whole[(0, 2, 3)[before] : len(whole) - (1 if after else 0)]
        if len(sure) >= SHORTEST + 2:
            yield sure
            if "+" in sure or "/" in sure:
                yield sure.replace("+", "-").replace("/", "_")


def _in_url(letter: str) -> str:
    return "".join(f"%{byte:02X}" for byte in letter.encode("utf-8", "surrogatepass"))


def _plain(text: str) -> tuple[str, bool]:
    """The text without noise, escapes read; and whether there was any escape."""
    found = _CONTROLS.sub("", text) if "\x1b" in text else text
    before = found
    if "\\" in found:
        found = _BACKSLASHES.sub(lambda one: _read(one[0]), found)
    if "%" in found or "&" in found:
        found = _CODES.sub(lambda one: _read(one[0]), found)
    was_escaped = found is not before
    if "\n" in found:
        found = "".join([one.strip(_SIDE) for one in found.split("\n")])
    return found if found.isprintable() else _UNSEEN_ONES.sub("", found), was_escaped


def _read(escape: str) -> str:
    """The letter that an escape stands for."""
    if escape[0] == "%":
        return chr(int(escape[1:], 16))
    if escape[0] == "&":
        return _ENTITIES[escape[1:-1]]
    letter = escape.lstrip("\\")
    if letter[:1] == "u":
        return chr(int(letter[1:], 16))
    return {"t": "\t", "n": "\n", "r": "\n", "": "\\" * (len(escape) // 2)}.get(letter, letter)


def _shared(plain: str, at: int, whole: str) -> int:
    """How many letters of a secret stand there."""
    if plain.startswith(whole, at):
        return len(whole)
    there = plain[at : at + len(whole)]
    return next((n for n, letter in enumerate(there) if whole[n] != letter), len(there))


def _replaced(text: str, find: Callable[[str], Iterable[tuple[int, int]]]) -> str:
    """The text with what is found in it, as it reads or as it stands, replaced."""
    plain, places = _placed(text)
    covered = bytearray(len(text))
    for start, end in find(plain):
        for first, last in places[start:end]:
            covered[first:last] = b"\1" * (last - first)
    for start, end in find(text):
        covered[start:end] = b"\1" * (end - start)
    found: list[str] = []
    at = 0
    for match in _COVERED.finditer(covered):
        between = text[at : match.start()]
        # A secret that goes on behind noise is said to be hidden once.
        found += [between, HIDDEN] if not at or _DROPPED.sub("", between) else [between]
        at = match.end()
    return "".join([*found, text[at:]]) if at else text


def _placed(text: str) -> tuple[str, list[tuple[int, int]]]:
    """The text without noise, and where each of its letters stands."""
    letters: list[str] = []
    places: list[tuple[int, int]] = []
    at = 0
    for match in _EITHER.finditer(text):
        letters.append(text[at : match.start()])
        places += [(n, n + 1) for n in range(at, match.start())]
        at = match.end()
        if match["escape"] is not None:
            read = _UNSEEN_ONES.sub("", _read(match["escape"]))
            letters.append(read)
            places += [match.span()] * len(read)
    letters.append(text[at:])
    places += [(n, n + 1) for n in range(at, len(text))]
    return "".join(letters), places


_remembered = NOTHING


def remember(known: Mask) -> None:
    """What this process knows from now on: for log lines, which are written anywhere, by anybody."""
    global _remembered
    _remembered = known


def remembered(text: str) -> str:
    """The text without what this process was told to remember; nobody is asked."""
    return _remembered(text)
