"""A program that follows the timeline over a real connection, event by event."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import Any

from tests.patience import PATIENCE
from tests.web.daphne_fixture import Served

TOKEN = """
from django.contrib.auth.models import User
from runs.people import api_tokens
user, _ = User.objects.get_or_create(username={name!r})
name = f"stream {{ApiToken.objects.count()}}"
token, text = api_tokens.make(lab, user, name, ApiToken.Scope.LOOK)
result = [token.pk, text]
"""


@dataclass(frozen=True)
class Event:
    """One event as it was read; a comment has the kind ":"."""

    kind: str
    id: int
    data: dict[str, Any]


def token_of(served: Served, name: str = "anna") -> tuple[int, str]:
    """A look token of somebody; its id, and its text."""
    pk, text = served.do(TOKEN.format(name=name))
    return int(pk), str(text)


class Stream:
    """One open stream. Reading waits for the next event, and fails after the time-out."""

    def __init__(
        self,
        served: Served,
        token: str,
        query: str = "",
        *,
        last: str = "",
        method: str = "GET",
        seconds: float = PATIENCE,
    ) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=seconds)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if last:
            headers["Last-Event-ID"] = last
        self._connection.request(method, f"/api/v1/timeline/stream{query}", headers=headers)
        self.answer = self._connection.getresponse()
        self.status = self.answer.status

    def problem(self) -> dict[str, Any]:
        """The refusal that came in place of a stream."""
        said = json.loads(self.answer.read())
        self.close()
        return dict(said)

    def event(self) -> Event | None:
        """The next event, or None at the end of the stream."""
        kind, number, data = "", 0, {}
        while line := self.answer.readline().decode():
            name, _, value = line.rstrip("\n").partition(": ")
            match name:
                case "event":
                    kind = value
                case "id":
                    number = int(value)
                case "data":
                    data = json.loads(value)
                case "":
                    if not line.strip():
                        return Event(kind or ":", number, data)
        return None

    def entries(self, number: int) -> list[Event]:
        """The next entries, comments left out."""
        found: list[Event] = []
        while len(found) < number:
            event = self.event()
            assert event is not None, f"the stream ended after {len(found)} entries"
            if event.kind != ":":
                found.append(event)
        return found

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *args: object) -> None:
        self.close()
