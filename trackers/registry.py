"""Which adapter serves which kind of tracker. Adapters are made on demand, never at import."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from trackers.account import Account
from trackers.base import Tracker
from trackers.beads.adapter import BeadsTracker
from trackers.beads.runner import Runner

if TYPE_CHECKING:
    from trackers.http.client import Client

FORGES = ("gitea", "github")


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
    """The adapter of a kind, or None for a kind that labsite cannot drive (LAB-64)."""
    tools = tools or Tools()
    if kind == "builtin":
        # Here, not above: its models need the app registry, which imports come before.
        from trackers.builtin.adapter import BuiltinTracker

        return BuiltinTracker(tools.now)
    if kind in FORGES and tools.client is not None:
        return _forge(kind, tools.client(), tools)
    if kind == "beads" and tools.runner is not None:
        return BeadsTracker(tools.runner, tools.now)
    return None


def _forge(kind: str, client: Client, tools: Tools) -> Tracker:
    # As late as this: who has no forge pays nothing for the HTTP library.
    from trackers.forges.gitea import GiteaTracker
    from trackers.forges.github import GitHubTracker

    make = GiteaTracker if kind == "gitea" else GitHubTracker
    return make(client, tools.accounts, tools.now)
