"""Which adapter serves which kind of tracker. Adapters are made on demand, never at import."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from trackers.account import Account, Purpose
from trackers.base import Tracker
from trackers.beads.adapter import BeadsTracker
from trackers.beads.command import Runner
from trackers.errors import NotFound, NotUnderstood, Refused

if TYPE_CHECKING:
    from trackers.http.client import Client

FORGES = ("gitea", "github")
# A server that requires a login still answers in the format of its kind.
_TOLD = (200, 401, 403)


def _wall_clock() -> datetime:
    return datetime.now(UTC)


def _nobody() -> Mapping[str, Account]:
    return {}


@dataclass(frozen=True)
class Tools:
    """What adapters are made with: a clock, an HTTP client, accounts by forge, a process runner.

    `client` makes it when it is first needed. `accounts` is asked in pool threads, so it only
    hands out what is in memory.
    """

    now: Callable[[], datetime] = _wall_clock
    client: Callable[[], Client] | None = None
    accounts: Callable[[], Mapping[str, Account]] = _nobody
    runner: Runner | None = None


def tracker(kind: str, tools: Tools | None = None) -> Tracker | None:
    """The adapter of a kind, or None for an unknown kind."""
    tools = tools or Tools()
    if kind == "builtin":
        # Imported late: its models need Django's app registry.
        from trackers.builtin.adapter import BuiltinTracker

        return BuiltinTracker(tools.now)
    if kind in FORGES and tools.client is not None:
        return _forge(kind, tools.client(), tools)
    if kind == "beads" and tools.runner is not None:
        return BeadsTracker(tools.runner, tools.now)
    return None


def _forge(kind: str, client: Client, tools: Tools) -> Tracker:
    # Imported late: an installation without a forge never loads the HTTP library.
    from trackers.forges.gitea import GiteaTracker
    from trackers.forges.github import GitHubTracker

    make = GiteaTracker if kind == "gitea" else GitHubTracker
    return make(client, tools.accounts, tools.now)


def kind_at(client: Client, web: str) -> str | None:
    """`gitea` (Forgejo too), `github`, or None for neither. Raises TrackerError: could not tell."""
    if _is_gitea(_asked(client, f"{web}/api/v1", "/version")):
        return "gitea"
    return "github" if _is_github(_asked(client, f"{web}/api/v3", "/meta")) else None


def _asked(client: Client, api: str, path: str) -> Mapping[str, Any]:
    try:
        told = client.call(Account(api), "GET", path, purpose=Purpose.SETUP, expect=_TOLD).data
    except (NotFound, NotUnderstood, Refused):
        return {}
    return told if isinstance(told, dict) else {}


def _is_gitea(told: Mapping[str, Any]) -> bool:
    """Its errors link to its swagger page, which no other forge does."""
    return isinstance(told.get("version"), str) or str(told.get("url", "")).endswith("/api/swagger")


def _is_github(told: Mapping[str, Any]) -> bool:
    marks = ("verifiable_password_authentication", "installed_version", "documentation_url")
    return any(mark in told for mark in marks)
