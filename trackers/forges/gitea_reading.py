"""What Gitea's and Forgejo's answers mean in our words: pure, entry by entry."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from trackers.base import Check, CheckState, Pull, PullState
from trackers.forges import reading
from trackers.forges.issue_reading import is_pull, issue

__all__ = ["blocker", "checks", "is_pull", "issue", "place", "pull", "version"]

_STATUSES = {
    "success": CheckState.PASSED,
    "skipped": CheckState.PASSED,
    "warning": CheckState.FAILED,
    "failure": CheckState.FAILED,
    "error": CheckState.FAILED,
    "pending": CheckState.RUNNING,
}
_GITEA = re.compile(r"(?:.*\+gitea-)?v?(\d{1,4})\.(\d{1,4})")


def pull(entry: Any) -> Pull | None:
    """A pull request; merged is told by its flag (X-02).

    When the branch is gone, `head.ref` is the ref that Gitea keeps (refs/pull/7/head) and only
    `head.label` still has the branch's name. One that was pushed for review without a branch
    (AGit) has no name there, and is no branch of ours.
    """
    number, head = reading.index(entry), _branch(entry)
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


def _branch(entry: Any) -> str:
    label, ref = reading.told(entry, "head", "label"), reading.text(entry, "head", "ref")
    if isinstance(label, str):
        return label.rpartition(":")[2]
    return "" if ref.startswith("refs/") else ref


def _state(entry: Any) -> PullState | None:
    state, merged = reading.text(entry, "state"), reading.told(entry, "merged")
    if merged is True:
        return PullState.MERGED
    return {"open": PullState.OPEN, "closed": PullState.CLOSED}.get(state)


def checks(entries: Iterable[Any]) -> list[Check]:
    """The newest status of each context, by name. Words that are not known are still running."""
    newest: dict[str, tuple[int, Check]] = {}
    for entry in entries:
        name, state = reading.text(entry, "context"), reading.text(entry, "status")
        known = reading.number(entry, "id") or 0
        if not name or not state or newest.get(name, (-1,))[0] > known:
            continue
        found = _STATUSES.get(state, CheckState.RUNNING)
        newest[name] = (known, Check(name, found, reading.address(entry, "target_url")))
    return [check for _, (_, check) in sorted(newest.items())]


def blocker(entry: Any, repository: str) -> str | None:
    """The key of an open issue that another waits for; None for a closed or hidden one.

    One in another repository is named with it, since its number means nothing here.
    """
    key = reading.index(entry)
    if key is None or reading.text(entry, "state") != "open":
        return None
    of = place(entry)
    return str(key) if not of or of.lower() == repository.lower() else f"{of}#{key}"


def place(entry: Any) -> str:
    """The repository of an issue, by the name that it has now."""
    return reading.text(entry, "repository", "full_name")


def version(told: str) -> tuple[int, int] | None:
    """The version of Gitea that a server is, or that a Forgejo says to be like; None if unclear.

    Forgejo tells its own version first: `11.0.1+gitea-1.22.0`.
    """
    found = _GITEA.match(told)
    return (int(found[1]), int(found[2])) if found else None
