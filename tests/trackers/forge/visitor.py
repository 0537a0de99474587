"""The product's client on a double: one clock for both, and nothing waits on the wall."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.trackers.forge.double import Double
from trackers.account import Account
from trackers.http import AnswerCache, Client, Meter

FORGE = "1"


def a_client(forge: Double, folder: Path | None = None) -> Client:
    """A client that asks this forge; its pauses move the forge's clock. `folder` keeps answers."""
    return Client(
        transport=forge.transport(),
        meter=Meter(steady=lambda: forge.now().timestamp()),
        cache=AnswerCache(folder),
        now=forge.now,
        steady=lambda: forge.now().timestamp(),
        pause=forge.clock.advance,
        random=lambda: 1.0,
    )


def accounts(forge: Double, token: str) -> Mapping[str, Account]:
    """What an adapter finds under the first part of a root."""
    return {FORGE: Account(forge.api, token)}
