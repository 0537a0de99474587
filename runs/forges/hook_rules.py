"""What a webhook's delivery is, and whether it was signed: pure checks of what a forge sent.

Gitea and Forgejo send GitHub's headers beside their own. Of the body only its signature is looked
at: whoever knows the secret may ask for a look, and nobody's words are believed.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from runs.core.states import ForgeKind

MOST_BYTES = 2 * 1024 * 1024
REMEMBERED = timedelta(days=30)
SILENT_FOR = timedelta(hours=1)
LATE = timedelta(minutes=5)
CONTENT_TYPES = ("application/json", "application/x-www-form-urlencoded")

_SIGNATURES = ("X-Hub-Signature-256", "X-Forgejo-Signature", "X-Gitea-Signature")
_EVENTS = ("X-GitHub-Event", "X-Forgejo-Event", "X-Gitea-Event")
_DELIVERIES = ("X-GitHub-Delivery", "X-Forgejo-Delivery", "X-Gitea-Delivery")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_EVENT = re.compile(r"[a-z0-9_.-]{1,60}")
_DELIVERY = re.compile(r"[\x21-\x7e]{1,100}")
# What says nothing of issues, pull requests or code. Whatever is not known may, so it wakes.
_ELSEWHERE = frozenset(
    {"fork", "gollum", "member", "milestone", "package", "page_build", "public", "release"}
    | {"repository_advisory", "security_advisory", "sponsorship", "star", "team_add"}
    | {"watch", "wiki"}
)
# As the forges' own pages name them. Gitea and Forgejo tell of labels in an event of their own:
# without it a new ready issue is not heard of.
EVENTS: Mapping[str, tuple[str, ...]] = {
    ForgeKind.GITEA: (
        *("Issues", "Issue Labeled", "Issue Comment", "Pull Request"),
        *("Pull Request Synchronized", "Push", "Statuses"),
    ),
    ForgeKind.GITHUB: (
        *("Issues", "Issue comments", "Pull requests", "Pushes", "Check runs", "Statuses"),
    ),
}


class HookDid(StrEnum):
    """What a delivery did."""

    WOKE = "woke"
    GREETED = "greeted"
    NOTHING = "nothing"

    @property
    def words(self) -> str:
        return {
            "woke": "looked at the project",
            "greeted": "nothing, the forge only said hello",
            "nothing": "nothing, this is not about issues or pull requests",
        }[self.value]


@dataclass(frozen=True, slots=True)
class Sent:
    """What the headers of a delivery say. Empty where they are missing or odd."""

    event: str = ""
    delivery: str = ""
    signatures: tuple[str, ...] = ()
    content_type: str = ""


def read(headers: Mapping[str, str]) -> Sent:
    """What a delivery says of itself; `headers` are looked up without regard to case."""
    given = {name.casefold(): value.strip() for name, value in headers.items()}

    def first(names: tuple[str, ...], pattern: re.Pattern[str]) -> str:
        found = (given.get(name.casefold(), "") for name in names)
        return next((one for one in found if pattern.fullmatch(one)), "")

    lowered = {name: value.lower() for name, value in given.items()}
    event = next((lowered[n] for n in map(str.casefold, _EVENTS) if lowered.get(n)), "")
    signed = [lowered.get(name.casefold(), "").removeprefix("sha256=") for name in _SIGNATURES]
    return Sent(
        event=event if _EVENT.fullmatch(event) else "",
        delivery=first(_DELIVERIES, _DELIVERY),
        signatures=tuple(one for one in signed if _DIGEST.fullmatch(one)),
        content_type=lowered.get("content-type", "").partition(";")[0].strip(),
    )


def is_signed(secret: str, body: bytes, signatures: tuple[str, ...]) -> bool:
    """Whether one of the signatures is the body's, compared in constant time.

    An empty secret signs nothing.
    """
    wanted = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    found = [hmac.compare_digest(wanted, one) for one in signatures]
    return any(found) and bool(secret)


def digest(body: bytes) -> str:
    """Names a body, so that it is known again."""
    return hashlib.sha256(body).hexdigest()


def tells_of_issues(event: str) -> bool:
    """Whether a hook that sends this sends what changes a ready queue; pushes alone do not."""
    return event.startswith("issue") and event != "issue_comment"


def tells_of_pulls(event: str) -> bool:
    """Whether it is about a pull request: one that was opened, pushed to, reviewed, merged, closed."""
    return event.startswith("pull_request")


def is_silent(
    now: datetime, since: datetime, heard: datetime | None, changed: datetime | None
) -> bool:
    """Whether a webhook says nothing although things change.

    `since`: when it got its secret; `heard`: its last delivery; `changed`: when labsite last found
    something changed by asking. One that works tells of a change before it is found that way.
    """
    last = max(since, heard) if heard is not None else since
    return changed is not None and changed > last + LATE and now - last >= SILENT_FOR


def what_to_do(event: str) -> HookDid:
    """What a delivery of this event does."""
    if event == "ping":
        return HookDid.GREETED
    return HookDid.NOTHING if event in _ELSEWHERE else HookDid.WOKE
