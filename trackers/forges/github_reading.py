"""What GitHub's answers mean in our words: pure, entry by entry."""

from __future__ import annotations

from typing import Any

from trackers.base import Check, CheckState, Pull, PullState
from trackers.forges import reading
from trackers.forges.issue_reading import is_pull, issue

__all__ = ["blocked_by", "blocker", "check_run", "is_pull", "issue", "place", "pull", "status"]

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


def pull(entry: Any) -> Pull | None:
    """A pull request; merged is told by the time of merging on a closed one (X-02).

    The merge commit of one that is not merged is a trial of GitHub's own, so it is left out.
    """
    number, head = reading.index(entry), reading.text(entry, "head", "ref")
    state = _state(entry)
    if number is None or not head or state is None:
        return None
    is_merged = state is PullState.MERGED
    return Pull(
        number=number,
        head=head,
        state=state,
        title=reading.text(entry, "title"),
        base=reading.text(entry, "base", "ref"),
        body=reading.text(entry, "body"),
        url=reading.address(entry, "html_url"),
        head_commit=reading.text(entry, "head", "sha"),
        is_fork=reading.is_fork(reading.told(entry, "head"), reading.told(entry, "base")),
        created_at=reading.moment(entry, "created_at"),
        merge_commit=reading.text(entry, "merge_commit_sha") if is_merged else "",
    )


def _state(entry: Any) -> PullState | None:
    state = reading.text(entry, "state")
    if state == "closed":
        return PullState.MERGED if reading.text(entry, "merged_at") else PullState.CLOSED
    return PullState.OPEN if state == "open" else None


def check_run(entry: Any) -> Check | None:
    """A check run. A word that labsite does not know is neither passed nor failed yet."""
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
    return Check(name, state, url)


def status(entry: Any) -> Check | None:
    """A commit status, as a check."""
    name, state = reading.text(entry, "context"), reading.text(entry, "state")
    if not name or not state:
        return None
    found = _STATUSES.get(state, CheckState.RUNNING)
    return Check(name, found, reading.address(entry, "target_url"))


def blocker(entry: Any, repository: str) -> str | None:
    """The key of an open issue that another waits for; None for a closed one.

    One in another repository is named with it, since its number means nothing here.
    """
    key = reading.index(entry)
    if key is None or reading.text(entry, "state") != "open":
        return None
    of = place(entry)
    return str(key) if not of or of.lower() == repository.lower() else f"{of}#{key}"


def place(entry: Any) -> str:
    """The repository of an issue, by the name that it has now."""
    return "/".join(reading.text(entry, "repository_url").split("/")[-2:])
