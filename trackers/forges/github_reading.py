"""What the answers of GitHub mean where they differ from Gitea's. No I/O."""

from __future__ import annotations

from typing import Any

from trackers.base import Check, CheckState, Comment, Pull, PullState
from trackers.forges import reading

_GOOD = frozenset({"success", "neutral", "skipped"})
_BAD = frozenset(
    {"failure", "timed_out", "cancelled", "action_required", "stale", "startup_failure"}
)
_STATUSES = {
    "success": CheckState.PASSED,
    "failure": CheckState.FAILED,
    "error": CheckState.FAILED,
    "pending": CheckState.RUNNING,
}


def blocked_by(entry: Any) -> int | None:
    """How many open issues GitHub says an issue waits for; None where it does not say."""
    return reading.number(entry, "issue_dependencies_summary", "blocked_by")


def _state(entry: Any) -> PullState | None:
    state = reading.text(entry, "state")
    if state == "closed":
        return PullState.MERGED if reading.text(entry, "merged_at") else PullState.CLOSED
    return PullState.OPEN if state == "open" else None


def check_run(entry: Any) -> Check | None:
    """A check run. An unknown word counts as running."""
    name, status = reading.text(entry, "name"), reading.text(entry, "status")
    if not name or not status:
        return None
    conclusion = reading.text(entry, "conclusion")
    state = CheckState.RUNNING
    if status == "completed" and conclusion in _GOOD:
        state = CheckState.PASSED
    elif status == "completed" and conclusion in _BAD:
        state = CheckState.FAILED
    url = reading.address(entry, "html_url") or reading.address(entry, "details_url")
    told = (reading.text(entry, "output", part) for part in ("title", "summary", "text"))
    summary = "\n".join(filter(None, told))
    return Check(name, state, url, summary, reading.number(entry, "id") or 0)


def status(entry: Any) -> Check | None:
    """A commit status, as a check."""
    name, state = reading.text(entry, "context"), reading.text(entry, "state")
    if not name or not state:
        return None
    found = _STATUSES.get(state, CheckState.RUNNING)
    link, said = reading.address(entry, "target_url"), reading.text(entry, "description")
    return Check(name, found, link, said)


def place(entry: Any) -> str:
    """The current name of the repository of an issue."""
    return "/".join(reading.text(entry, "repository_url").split("/")[-2:])


def on_line(entry: Any) -> Comment | None:
    """A comment on a line; an outdated one has only the line that it was about at first."""
    return reading.on_line(entry, "line", "original_line")


def pull(entry: Any) -> Pull | None:
    """A pull request; a closed one with `merged_at` was merged."""
    return reading.pull(entry, reading.text(entry, "head", "ref"), _state(entry))


def blocker(entry: Any, repository: str) -> str | None:
    """The key of an open issue that another waits for."""
    return reading.blocker(entry, repository, place(entry))
