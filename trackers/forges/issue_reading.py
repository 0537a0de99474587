"""How the forges tell of an issue; Gitea took the shape over from GitHub. Pure."""

from __future__ import annotations

from typing import Any

from trackers.base import Issue
from trackers.forges import reading


def issue(entry: Any) -> Issue | None:
    """An issue; None for a pull request, which forges list among the issues (X-02)."""
    key, state = reading.index(entry), reading.text(entry, "state")
    if key is None or is_pull(entry) or state not in ("open", "closed"):
        return None
    return Issue(
        key=str(key),
        title=reading.text(entry, "title"),
        body=reading.text(entry, "body"),
        author=reading.login(entry),
        labels=reading.labels(entry),
        is_open=state == "open",
        url=reading.address(entry, "html_url"),
        milestone=reading.text(entry, "milestone", "title"),
    )


def is_pull(entry: Any) -> bool:
    """Whether an entry of the issue list is a pull request."""
    return reading.told(entry, "pull_request") is not None
