"""What people and agents may write: titles and texts, checked and cleaned before they are kept."""

from __future__ import annotations

from itertools import pairwise

from trackers import plain

TITLE_LIMIT = 10_000
TEXT_LIMIT = 200_000
SHORT = 120


class WrongText(ValueError):
    """A text cannot be kept; `field` says which one, the message says what to do."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field
        self.text = text


def title(text: str) -> str:
    """A title that can be kept, outer space removed. Raises WrongText."""
    kept = plain.line(clean(text)).strip()
    if not kept:
        raise WrongText("title", "Write a title.")
    if len(kept) > TITLE_LIMIT:
        raise WrongText("title", _too_long("A title", len(kept), TITLE_LIMIT))
    return kept


def body(text: str, field: str = "body") -> str:
    """A text that can be kept, empty or not. Raises WrongText."""
    kept = clean(text).rstrip()
    if len(kept) > TEXT_LIMIT:
        raise WrongText(field, _too_long("A text", len(kept), TEXT_LIMIT))
    return kept


def comment(text: str) -> str:
    """A comment that can be kept. Raises WrongText for an empty one."""
    kept = body(text, "comment")
    if not kept.strip():
        raise WrongText("comment", "Write a comment first.")
    return kept


def clean(text: str) -> str:
    """Line ends as one letter, and nothing that a database could refuse."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    return text.encode("utf-8", "replace").decode("utf-8")


def one_line(text: str, limit: int = SHORT) -> str:
    """A text on one line, cut for a row."""
    line = " ".join(plain.line(text).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def closes(text: str, key: str) -> bool:
    """Whether a text says that it closes this issue, in a way that trackers understand."""
    words = text.casefold().replace(":", " ").split()
    said = {"close", "closes", "closed", "fix", "fixes", "fixed", "resolve", "resolves", "resolved"}
    pairs = pairwise(words)
    return any(verb in said and ref.rstrip(".,;!)") == f"#{key}" for verb, ref in pairs)


def _too_long(what: str, length: int, limit: int) -> str:
    return f"{what} has at most {limit:,} characters; this one has {length:,}. Make it shorter."
