"""What goes in and out of a double: a request, an answer, a line of its log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit


class Dropped(Exception):
    """The connection ends without an answer."""


@dataclass(frozen=True)
class Asked:
    """One request as a server sees it; header names are lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def path(self) -> str:
        return unquote(urlsplit(self.target).path)

    @property
    def raw_path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))

    @property
    def token(self) -> str:
        """The credential, whatever the scheme in front of it."""
        return self.headers.get("authorization", "").partition(" ")[2].strip()


@dataclass(frozen=True)
class Told:
    """One answer. `pause` is called between the pieces of a slow body."""

    status: int
    data: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    pause: Callable[[], None] | None = None

    @property
    def body(self) -> bytes:
        if self.raw is not None:
            return self.raw
        return b"" if self.status in (204, 304) else json.dumps(self.data).encode()

    def with_headers(self, **headers: str) -> Told:
        """The same with more headers; `_` in a name stands for `-`."""
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return replace(self, headers={**self.headers, **more})

    def pieces(self) -> Iterator[bytes]:
        """The body as it comes over the wire."""
        if self.pause is None:
            yield self.body
            return
        for at in range(0, len(self.body), max(1, len(self.body) // 8)):
            self.pause()
            yield self.body[at : at + max(1, len(self.body) // 8)]


@dataclass(frozen=True)
class Logged:
    """What was asked and how it went, for tests that count calls; never holds a token."""

    method: str
    path: str
    query: Mapping[str, str]
    status: int
    is_counted: bool
    was_conditional: bool
    login: str
    operation: str


class Refusal(Exception):
    """The forge says no: an answer that a rule deep inside wants to give."""

    def __init__(self, told: Told) -> None:
        super().__init__(told.status)
        self.told = told
