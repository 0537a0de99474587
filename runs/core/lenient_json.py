"""Values out of JSON lines that somebody else wrote: what is not as expected counts as not there.

Standard library only: the launcher of a session uses it too.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

LINE_LIMIT = 256 * 1024
TEXT_LIMIT = 4096
MOST = 2**53
MOST_MONEY = 1_000_000
YEARS = range(2020, 2200)

Entry = dict[str, Any]

# Marks that turn or hide the text around them, for a character class.
MARKS = (
    r"\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
)
# Those, and controls but tab and line end.
_UNSEEN = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f{MARKS}]")
_MARKS = re.compile(f"[{MARKS}]")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}")


def entry(raw: bytes) -> Entry | None:
    """The JSON object of one line; None for anything else, for a broken or a too long line."""
    if len(raw) > LINE_LIMIT or not raw.lstrip().startswith(b"{"):
        return None
    try:
        found = json.loads(raw.decode("utf-8", "replace"), parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def at(value: Any, *path: str) -> Any:
    """What lies under these names; None when something on the way is no object."""
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def items(value: Any, *path: str) -> list[Entry]:
    """The objects of a list."""
    found = at(value, *path)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def text(value: Any, *path: str) -> str:
    """A text that a database and a terminal can keep: no control character but line ends and tabs."""
    found = at(value, *path)
    if not isinstance(found, str):
        return ""
    found = found.encode("utf-8", "replace").decode("utf-8").replace("\r\n", "\n")
    return _UNSEEN.sub("", found)


def without_marks(text: str) -> str:
    """A text without marks that turn or hide the text around them; controls and colours stay."""
    return text if text.isascii() else _MARKS.sub("", text)


def line(value: Any, *path: str, limit: int = 300) -> str:
    """A text on one line, cut at `limit` letters."""
    found = " ".join(text(value, *path).split())
    return found if len(found) <= limit else f"{found[: limit - 1]}…"


def word(value: Any, *path: str) -> str:
    """An id or another single word that is safe to put into a command; empty for anything else."""
    found = at(value, *path)
    return found if isinstance(found, str) and _ID.fullmatch(found) else ""


def count(value: Any, *path: str) -> int | None:
    """A whole number that can be meant: not negative, not beyond what a database keeps."""
    found = at(value, *path)
    return found if type(found) is int and 0 <= found <= MOST else None


def length(value: Any, *path: str) -> float | None:
    """A length of time, in whatever unit, that is not negative."""
    found = at(value, *path)
    return found if type(found) in (int, float) and 0 <= found <= MOST else None


def money(value: Any, *path: str) -> Decimal | None:
    """An amount in whole currency with six places."""
    found = at(value, *path)
    if type(found) not in (int, float) or not 0 <= found <= MOST_MONEY:
        return None
    return Decimal(repr(found)).quantize(Decimal("0.000001"))


def moment(seconds: Any) -> datetime | None:
    """A moment given in seconds, or thousandths of them, since 1970."""
    if type(seconds) not in (int, float) or not 0 <= seconds <= MOST:
        return None
    found = seconds / 1000 if seconds > 10**11 else seconds
    try:
        when = datetime.fromtimestamp(found, UTC)
    except (ArithmeticError, OSError, ValueError):
        return None
    return when if when.year in YEARS else None
