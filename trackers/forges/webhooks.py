"""Sets up a webhook on a forge and replaces an earlier one with the same address."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trackers.account import Purpose
from trackers.forges import reading
from trackers.forges.repository import Need, RepositoryClient

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


def set_hook(repo: RepositoryClient, kind: str, address: str, secret: str) -> None:
    """Have everything that labsite heeds delivered to an address, signed. Raises TrackerErrors.

    The earlier one is deleted last, so that it is still there when the forge fails in between; on
    GitHub, which allows no two with one address, first. Gitea cannot change the secret of a hook.
    """
    known = repo.every("hooks", purpose=Purpose.SETUP, need=Need.HOOKS)
    earlier = [
        number
        for one in known
        if (number := reading.number(one, "id")) is not None
        and reading.text(one, "config", "url") == address
    ]
    if kind == "github":
        _delete(repo, earlier)
    named, events = _KINDS[kind]
    config = {"url": address, "content_type": "json", "secret": secret}
    body = {**named, "active": True, "events": list(events), "config": config}
    repo.send("POST", "hooks", json=body, need=Need.HOOKS, expect=(201,))
    if kind != "github":
        _delete(repo, earlier)


def _delete(repo: RepositoryClient, hooks: Iterable[int]) -> None:
    for number in hooks:
        where = ("hooks", number)
        repo.send("DELETE", *where, json=None, need=Need.HOOKS, expect=(204, 404))
