"""What the answers of Gitea and Forgejo mean where they differ from GitHub's. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from trackers.base import Check, CheckState, Comment, Pull, PullState
from trackers.forges import reading

_STATUSES = {
    "success": CheckState.PASSED,
    "skipped": CheckState.PASSED,
    "warning": CheckState.FAILED,
    "failure": CheckState.FAILED,
    "error": CheckState.FAILED,
    "pending": CheckState.RUNNING,
}
# WORK_IN_PROGRESS_PREFIXES of app.ini, in its default.
DRAFT_PREFIXES = ("wip:", "[wip]")
_GITEA = re.compile(r"(?:.*\+gitea-)?v?(\d{1,4})\.(\d{1,4})")


def _branch(entry: Any) -> str:
    label, ref = reading.value(entry, "head", "label"), reading.text(entry, "head", "ref")
    if isinstance(label, str):
        return label.rpartition(":")[2]
    return "" if ref.startswith("refs/") else ref


def _state(entry: Any) -> PullState | None:
    state, merged = reading.text(entry, "state"), reading.value(entry, "merged")
    if merged is True:
        return PullState.MERGED
    return {"open": PullState.OPEN, "closed": PullState.CLOSED}.get(state)


def checks(entries: Iterable[Any], api: str) -> list[Check]:
    """The newest status of each context, by name. An unknown word counts as running.

    Gitea's own jobs link to a path of the server that `api` is on.
    """
    newest: dict[str, tuple[int, Check]] = {}
    for entry in entries:
        name, state = reading.text(entry, "context"), reading.text(entry, "status")
        known = reading.number(entry, "id") or 0
        if not name or not state or newest.get(name, (-1,))[0] > known:
            continue
        found = _STATUSES.get(state, CheckState.RUNNING)
        link = reading.address_at(entry, api, "target_url")
        newest[name] = (known, Check(name, found, link, reading.text(entry, "description")))
    return [check for _, (_, check) in sorted(newest.items())]


def place(entry: Any) -> str:
    """The current name of the repository of an issue."""
    return reading.text(entry, "repository", "full_name")


def on_line(entry: Any) -> Comment | None:
    """A comment on a line of the new text, or of the old one; the other's number is 0."""
    return reading.on_line(entry, "position", "original_position")


def commented(reviews: Iterable[Any], most: int) -> list[int]:
    """The reviews with comments on lines, by their ids, and of many the newest."""
    found = [
        (reading.moment(one, "submitted_at") or datetime.min.replace(tzinfo=UTC), known)
        for one in reviews
        if (known := reading.number(one, "id")) is not None
        and (reading.number(one, "comments_count") or 0) > 0
        and not reading.is_pending(one)
    ]
    return [known for _, known in sorted(found)[-most:]]


def version(told: str) -> tuple[int, int] | None:
    """The version of Gitea, or the one that a Forgejo is compatible with; None if unclear.

    Forgejo tells its own version first: `11.0.1+gitea-1.22.0`.
    """
    found = _GITEA.match(told)
    return (int(found[1]), int(found[2])) if found else None


def pull(entry: Any) -> Pull | None:
    """A pull request; `merged` says whether it was merged.

    When the branch is gone, `head.ref` is the ref that Gitea keeps (refs/pull/7/head) and only
    `head.label` still has the branch's name. One that was pushed for review without a branch
    (AGit) has no name there, and is no branch of ours.
    """
    found = reading.pull(entry, _branch(entry), _state(entry))
    if found is None or found.state is not PullState.OPEN:
        return found
    # Versions that send no `draft` tell it by the title alone, as the default of their setting.
    is_draft = found.is_draft or found.title.casefold().startswith(DRAFT_PREFIXES)
    return replace(found, is_draft=is_draft)


def blocker(entry: Any, repository: str) -> str | None:
    """The key of an open issue that another waits for."""
    return reading.blocker(entry, repository, place(entry))
