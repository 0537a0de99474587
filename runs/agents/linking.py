"""The link that leads into an agent's own page of a session, for agents that have one. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

CONNECTING_FOR = timedelta(seconds=30)
_IDENT = re.compile(r"[A-Za-z0-9_.:-]{1,200}", re.ASCII)


def find_id(text: str, worktree: str, field: str) -> str:
    """The session's id in one of the agent's own files; empty when it is not about this worktree.

    The file is the agent's, so nothing but a plain id is taken out of it.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    for entry in _entries(content):
        ident = entry.get(field)
        if (
            worktree in [v for v in entry.values() if isinstance(v, str)]
            and isinstance(ident, str)
            and _IDENT.fullmatch(ident)
        ):
            return ident
    return ""


def settled(ident: str, url: str, generic: str, age: timedelta) -> str | None:
    """The link to show from now on: the exact one, after a while the generic one or none at all.

    None while it is still being looked for.
    """
    if ident and url:
        return url.replace("{id}", ident)
    return generic if age >= CONNECTING_FOR or not url else None


def _entries(content: Any) -> Iterator[dict[str, Any]]:
    """The objects of a file: itself, or those in its list or under its names."""
    found = content if isinstance(content, list) else [content]
    if isinstance(content, dict):
        found = [content, *content.values()]
    for entry in found:
        if isinstance(entry, dict):
            yield entry
