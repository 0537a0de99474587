"""What a person is told when the database cannot be used: what happened, and what to do. Pure."""

from __future__ import annotations

_GOES_ON = "Running agents are not touched"
# The words of SQLite and PostgreSQL; the first that fits counts.
_WORDS: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("unable to open", "no such table", "readonly database"),
        "The database cannot be opened: the state folder is not there, or may not be written. "
        f"{_GOES_ON}. Bring the folder back; then everything goes on by itself.",
    ),
    (
        ("is full", "no space left", "disk i/o error"),
        "The disk is full or does not take data, so nothing could be stored. "
        f"{_GOES_ON}. Make room; then everything goes on by itself.",
    ),
    (
        ("read-only transaction",),
        "The database only reads just now, as it does while it moves to another server, so nothing "
        f"was stored. {_GOES_ON}. When it takes changes again, everything goes on by itself.",
    ),
    (
        ("locked", "lock timeout"),
        f"Another program holds the database for too long. {_GOES_ON}. Try again in a moment.",
    ),
)


def database_words(said: str) -> str:
    """Two or three sentences for what the database itself said."""
    lowered = said.lower()
    for signs, words in _WORDS:
        if any(sign in lowered for sign in signs):
            return words
    return f"The database does not answer just now. {_GOES_ON}. Try again in a moment."
