"""Which folders of a repository are checked out, as a person writes them. Pure."""

from __future__ import annotations

import re

MOST_FOLDERS = 100
_PATTERN = re.compile(r"[*?\[\]\\!#\x00-\x1f\x7f]")


def read_folders(text: str) -> tuple[str, ...]:
    """Return the folders of a list with one a line, without slashes around them.

    Raises ValueError, with the reason, for what git could not take for a folder of the repository.
    """
    found = [line.strip() for line in text.splitlines() if line.strip()]
    for line in found:
        if reason := _why_unfit(line):
            raise ValueError(f"{line[:80]}: {reason}")
    if len(found) > MOST_FOLDERS:
        raise ValueError(f"At most {MOST_FOLDERS} folders.")
    return tuple(dict.fromkeys(line.strip("/") for line in found))


def _why_unfit(line: str) -> str:
    parts = line.strip("/").split("/")
    rules = (
        (not line.strip("/"), "leave it empty for the whole repository."),
        (_PATTERN.search(line), "write the name of a folder; patterns are not possible."),
        (any(part in ("", ".", "..", ".git") for part in parts), "it leads out of the repository."),
        (len(line) > 300, "it is too long."),
    )
    return next((reason for is_so, reason in rules if is_so), "")
