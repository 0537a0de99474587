"""What somebody chose in a list, how much of it may go at once, and what the outcome is in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MOST = 100
LONGEST = 250  # characters of a branch's name, the longest key that a row has
NOTHING = "No row was chosen. Go back, choose some, then press again."
TOO_MANY = f"At most {MOST} rows go at once. Nothing was done. Go back and choose fewer."


@dataclass(frozen=True, slots=True)
class Chosen:
    """The keys of rows, each once, in the order of the list; `wrong` says why none of them may go."""

    keys: tuple[str, ...] = ()
    wrong: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one row. `is_done` is None for one whose turn did not come."""

    key: str
    is_done: bool | None
    text: str


def read(sent: Sequence[str]) -> Chosen:
    """What a form sent as chosen; what no row's key can be counts as a row that is not there."""
    keys = tuple(dict.fromkeys(key[:LONGEST].replace("\0", "") for key in sent))
    if not keys:
        return Chosen(wrong=NOTHING)
    return Chosen(wrong=TOO_MANY) if len(keys) > MOST else Chosen(keys)


def summary(results: Sequence[Result]) -> str:
    """How many were done, how many refused, how many not tried, in a sentence."""
    said = (
        ("done", sum(one.is_done is True for one in results)),
        ("refused", sum(one.is_done is False for one in results)),
        ("not tried", sum(one.is_done is None for one in results)),
    )
    return ", ".join(f"{count} {word}" for word, count in said if count)


def plural(count: int, one: str) -> str:
    """A count with its noun: 1 run, 3 runs, 2 branches."""
    more = "es" if one.endswith("ch") else "s"
    return f"{count} {one}" if count == 1 else f"{count} {one}{more}"
