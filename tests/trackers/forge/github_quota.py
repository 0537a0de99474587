"""GitHub's hourly quota: who spends whose, what costs nothing, and what the headers say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from tests.trackers.forge.asking import Asked, Told
from tests.trackers.forge.double import Double


@dataclass
class Quota:
    """One credential's hour."""

    used: int = 0
    until: datetime | None = None


class Counting(Double):
    """A forge that counts; `limit` requests in an hour."""

    def __init__(self, now: Callable[[], datetime] | None, limit: int) -> None:
        super().__init__(now)
        self.limit = limit
        self.quotas: dict[str, Quota] = {}

    def spend(self, token: str, used: int) -> None:
        """Let so much of a credential's hour be used."""
        self._quota(token).used = used

    def gives_etags(self) -> bool:
        return True

    def is_counted(self, asked: Asked, told: Told) -> bool:
        """Everything but a 304 and what was refused for want of quota."""
        free = told.status in (304, 401)
        is_out = told.status in (403, 429) and told.headers.get("x-ratelimit-remaining") == "0"
        return not free and not is_out

    def finish(self, asked: Asked, told: Told, is_counted: bool) -> Told:
        quota = self._quota(asked.token)
        quota.used += is_counted
        assert quota.until is not None
        token = self.tokens.get(asked.token)
        scopes = {"x_oauth_scopes": "repo"} if token and token.kind == "classic" else {}
        return told.with_headers(
            x_ratelimit_limit=str(self.limit),
            x_ratelimit_remaining=str(max(0, self.limit - quota.used)),
            x_ratelimit_used=str(quota.used),
            x_ratelimit_reset=str(int(quota.until.timestamp())),
            x_ratelimit_resource="core",
            x_github_request_id="0000:1:2:3:4",
            **scopes,
        )

    def _quota(self, token: str) -> Quota:
        """A person's tokens share one hour; without any, the address has one."""
        known = self.tokens.get(token)
        quota = self.quotas.setdefault(known.person.login if known else "", Quota())
        if quota.until is None or quota.until <= self.now():
            quota.used, quota.until = 0, self.now() + timedelta(hours=1)
        return quota

    def is_used_up(self, asked: Asked) -> bool:
        return self._quota(asked.token).used >= self.limit

    def used_up(self, asked: Asked) -> Told:
        """The primary limit, as the documentation words it."""
        known = self.tokens.get(asked.token)
        whose = f"user ID {known.person.id}" if known else "127.0.0.1"
        return self.error(403, f"API rate limit exceeded for {whose}.").with_headers(
            x_ratelimit_remaining="0"
        )
