"""The trackers of one process: adapters made once, and the accounts with which they ask."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from runs.core.ports import SeamError
from runs.core.states import ForgeKind
from runs.models import Forge, Quota, Settings
from trackers import registry
from trackers.account import Account
from trackers.base import Finding, Tracker, TrackerError
from trackers.registry import Tools

if TYPE_CHECKING:
    from trackers.forges.github_app import AppTokens
    from trackers.http.client import Client
    from trackers.http.quota import Meter
    from trackers.http.rules import Quota as Heard

GOOD_FOR_SECONDS = 2.0
LEARNED_SECONDS = 10.0
FRESH = timedelta(hours=2)

Accounts = Mapping[str, Mapping[str, Account]]


class Trackers:
    """`tracker_for`, and `Forges` beside it.

    Accounts are read in the thread that asks for a tracker and kept in memory, since a tick asks
    forges in threads that may not use the database. Who only has other trackers pays nothing.
    """

    def __init__(self, tools: Tools, steady: Callable[[], float]) -> None:
        self._client: Client | None = None
        self._make = tools.client
        self._tools = replace(tools, client=self._one_client if tools.client else None)
        self._now = tools.now
        self._steady = steady
        self._learned_at: float | None = None
        self._accounts: Accounts = {}
        self._read_at: float | None = None
        self._made: dict[str, Tracker | None] = {}
        self._apps: AppTokens | None = None
        self._lock = threading.Lock()
        self._client_lock = threading.Lock()

    def tracker_for(self, kind: str) -> Tracker | None:
        """The adapter of a kind, None when labsite cannot drive it or no account is set up."""
        if kind in list(ForgeKind):
            self._refresh()
            if not self._accounts.get(kind):
                return None
        with self._lock:
            if kind not in self._made:
                self._made[kind] = registry.tracker(kind, self._of_kind(kind))
            return self._made[kind]

    def recognise(self, web: str) -> ForgeKind | None:
        if self._make is None:
            return None
        try:
            kind = registry.kind_at(self._one_client(), web)
        except TrackerError as error:
            raise SeamError(str(error)) from error
        return ForgeKind(kind) if kind is not None else None

    def try_out(
        self, kind: ForgeKind, account: Account, repository: str, label: str
    ) -> Sequence[Finding]:
        tools = replace(self._tools, accounts=lambda: {"0": account})
        tracker = registry.tracker(kind, tools)
        if tracker is None:
            return [Finding("tracker", None, "labsite cannot drive this kind of tracker.")]
        return tracker.examine(f"0/{repository}", label)

    def forget(self) -> None:
        self._read_at = None

    def meter(self) -> Meter | None:
        return self._client.meter if self._client is not None else None

    def git_token(self, account: Account, owner: str, name: str) -> str:
        # As late as the client itself.
        from trackers.forges.github_app import AppTokens

        if self._make is None:
            raise SeamError("forges cannot be asked here")
        client = self._one_client()
        with self._client_lock:
            if self._apps is None:
                self._apps = AppTokens(client, self._now)
        try:
            return self._apps.for_git(account, owner, name).token
        except TrackerError as error:
            raise SeamError(str(error)) from error

    def account_of(self, root: str) -> Account | None:
        forge = root.partition("/")[0]
        return next((some[forge] for some in self._accounts.values() if forge in some), None)

    def _one_client(self) -> Client:
        """The client of this process, made when it is first needed."""
        with self._client_lock:
            if self._client is None:
                assert self._make is not None  # noqa: S101
                self._client = self._make()
            return self._client

    def _of_kind(self, kind: str) -> Tools:
        return replace(self._tools, accounts=lambda: self._accounts.get(kind, {}))

    def _refresh(self) -> None:
        """Read the accounts again unless that was just now. Raises DatabaseError."""
        now = self._steady()
        if self._read_at is not None and now - self._read_at < GOOD_FOR_SECONDS:
            return
        found: dict[str, dict[str, Account]] = defaultdict(dict)
        for forge in Forge.objects.all():
            found[forge.kind][str(forge.pk)] = forge.account
        self._accounts, self._read_at = found, now
        if found and self._make is not None:
            self._learn(now)

    def _learn(self, now: float) -> None:
        """What other processes heard of these accounts' quotas, so that all respect one another."""
        if self._learned_at is not None and now - self._learned_at < LEARNED_SECONDS:
            return
        meter, at = self._one_client().meter, self._now()
        share = Settings.objects.filter(pk=1).values_list("people_percent", flat=True).first()
        if share is not None:
            meter.share = share / 100
        for row in Quota.objects.filter(seen_at__gt=at - FRESH):
            meter.learn(row.host, row.account, at, _heard(row, at), row.blocked_until)
        self._learned_at = now


def _heard(row: Quota, now: datetime) -> Heard | None:
    """A row of the ledger as the meter hears it from a forge."""
    from trackers.http.rules import Quota as Heard  # as late as the client itself

    if row.limit is None or row.remaining is None or row.reset_at is None:
        return None
    used = max(0, row.limit - row.remaining)
    return Heard(row.limit, row.remaining, used, row.reset_at - now, "core")
