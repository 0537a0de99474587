"""Sets a webhook up on a forge, in place of an earlier one with the same address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trackers.account import Purpose
from trackers.forges import reading
from trackers.forges.dialect import Need
from trackers.forges.visit import Visit

# By the API's own names. Gitea has events of its own for labels and for new commits.
_KINDS: Mapping[str, tuple[Mapping[str, Any], tuple[str, ...]]] = {
    "gitea": (
        {"type": "gitea"},
        (
            *("issues", "issue_label", "issue_comment", "pull_request", "pull_request_sync"),
            *("push", "status"),
        ),
    ),
    "github": (
        {"name": "web"},
        ("issues", "issue_comment", "pull_request", "push", "check_run", "status"),
    ),
}


def set_hook(visit: Visit, kind: str, address: str, secret: str) -> None:
    """Have everything that labsite heeds delivered to an address, signed. Raises TrackerErrors.

    An earlier one goes first: GitHub keeps no two with one address, and Gitea changes no secret.
    """
    known = visit.every("hooks", purpose=Purpose.SETUP, need=Need.HOOKS)
    for one in known:
        number = reading.number(one, "id")
        if number is not None and reading.text(one, "config", "url") == address:
            where = ("hooks", number)
            visit.send("DELETE", *where, json=None, need=Need.HOOKS, expect=(204, 404))
    named, events = _KINDS[kind]
    config = {"url": address, "content_type": "json", "secret": secret}
    body = {**named, "active": True, "events": list(events), "config": config}
    visit.send("POST", "hooks", json=body, need=Need.HOOKS, expect=(201,))
