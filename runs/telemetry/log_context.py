"""What the lines are about that a piece of work logs: its run, project and host, or its request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_HERE: ContextVar[Mapping[str, object] | None] = ContextVar("log_context", default=None)


def current() -> Mapping[str, object]:
    """The keys that every log line has here."""
    return _HERE.get() or {}


@contextmanager
def about(**what: object) -> Iterator[None]:
    """Give these keys to all lines that are logged inside."""
    token = _HERE.set({**current(), **what})
    try:
        yield
    finally:
        _HERE.reset(token)


def of(run: Any) -> dict[str, object]:
    """The keys of a run, whose project is loaded."""
    return {"run_id": run.pk, "project": run.project.slug, "host": run.host}


def begin_request(name: str) -> None:
    """Name the request that this context serves until its end: Django logs how it went after all else."""
    _HERE.set({"request_id": name})


def note(**what: object) -> None:
    """Give these keys to what is logged from here to the end of the request."""
    _HERE.set({**current(), **what})
