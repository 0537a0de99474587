"""A forge made of prepared answers, a clock that only moves when told, and a client between them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import httpx

from trackers.account import Account
from trackers.http.cache import AnswerCache
from trackers.http.client import Client
from trackers.http.quota import Meter

TOKEN = "ghp_0123456789SECRETabcdef"
HERE = Account("https://forge.example/api/v1", TOKEN)
START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

Reply = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]


@dataclass
class Clock:
    """Wall and steady time; pausing moves both, and the wall can be set alone."""

    wall: datetime = START
    steady: float = 1000.0
    pauses: list[float] = field(default_factory=list)

    def now(self) -> datetime:
        return self.wall

    def monotonic(self) -> float:
        return self.steady

    def pass_by(self, seconds: float) -> None:
        self.wall += timedelta(seconds=seconds)
        self.steady += seconds

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.pass_by(seconds)


class Forge(httpx.BaseTransport):
    """Gives its answers one after the other, the last one for ever, and remembers what was asked."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.asked: list[httpx.Request] = []
        self._lock = threading.Lock()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        with self._lock:
            self.asked.append(request)
            reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        return reply(request) if callable(reply) else reply

    def queries(self) -> list[str]:
        return [request.url.query.decode() for request in self.asked]


def a_client(
    forge: httpx.BaseTransport,
    clock: Clock | None = None,
    folder: Path | None = None,
    share: float = 0.4,
) -> Client:
    clock = clock or Clock()
    return Client(
        transport=forge,
        meter=Meter(share, clock.monotonic),
        cache=AnswerCache(folder),
        now=clock.now,
        steady=clock.monotonic,
        pause=clock.pause,
        random=lambda: 1.0,
    )


def ok(data: object = (), **headers: str) -> httpx.Response:
    """200 with data; headers are written with underscores."""
    return httpx.Response(200, json=data, headers=_named(headers))


def said(status: int, message: str = "", **headers: str) -> httpx.Response:
    """An error as forges send it."""
    return httpx.Response(status, json={"message": message}, headers=_named(headers))


def rates(limit: int, remaining: int, reset: datetime, **more: str) -> dict[str, str]:
    """GitHub's rate headers, by the names that `ok` and `said` take."""
    return {
        "x_ratelimit_limit": str(limit),
        "x_ratelimit_remaining": str(remaining),
        "x_ratelimit_reset": str(int(reset.timestamp())),
        **more,
    }


def http_date(at: datetime) -> str:
    return format_datetime(at.astimezone(UTC), usegmt=True)


def _named(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): text for name, text in headers.items()}
