"""Credentials of forges, and the purpose of a call."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Account:
    """One credential on one forge; `api` is the root URL of its API, without a slash at the end.

    Either a `token`, or a GitHub App: its id, its installation, and its private key as PEM.
    """

    api: str
    token: str = field(default="", repr=False)
    app_id: str = ""
    app_installation: str = ""
    app_key: str = field(default="", repr=False)

    @property
    def host(self) -> str:
        """The host whose quota is spent, with its port; empty for an invalid address."""
        try:
            return urlsplit(self.api).netloc.rpartition("@")[2].lower()
        except ValueError:
            return ""

    @property
    def id(self) -> str:
        """Identifies the credential in the quota ledger without revealing it."""
        if self.app_id:
            return f"app {self.app_id}, installation {self.app_installation}"
        told = f"labsite account {self.api} {self.token}"
        return hashlib.sha256(told.encode()).hexdigest()[:12] if self.token else "anonymous"


class Purpose(StrEnum):
    """The purpose of a call, as the quota page lists it."""

    QUEUE = "ready queue"
    PULLS = "pull requests"
    BLOCKERS = "blockers"
    READ = "reading"
    WRITE = "writing"
    SETUP = "setting up"

    @property
    def is_polling(self) -> bool:
        """Whether nobody waits for the answer: such calls leave the share of people alone."""
        return self in (Purpose.QUEUE, Purpose.PULLS, Purpose.BLOCKERS)

    @property
    def now(self) -> Purpose:
        """The purpose in this context: within `awaited`, polling counts as reading."""
        return Purpose.READ if self.is_polling and _IS_AWAITED.get() else self


_IS_AWAITED: ContextVar[bool] = ContextVar("is_awaited", default=False)


@contextmanager
def awaited() -> Iterator[None]:
    """Marks every call in this context as one that a person or an agent waits for."""
    before = _IS_AWAITED.set(True)
    try:
        yield
    finally:
        _IS_AWAITED.reset(before)
