"""What goes wrong on demand: instead of an answer, or to an answer.

    forge.faults.add(faults.status(502), times=2, path="/pulls")
    forge.faults.add(faults.broken_entries(), method="GET")

A fault *instead of* an answer leaves the forge as it was; one *to* an answer comes after the act.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from tests.trackers.forge.asking import Asked, Dropped, Told

Change = Callable[[Asked, Told], Told]
Instead = Callable[[Asked], Told]
HTML = (
    b"<!doctype html><html><head><title>Sign in</title></head><body>Please sign in.</body></html>"
)


@dataclass
class Fault:
    """One thing that goes wrong, for the next `times` requests that it is about."""

    instead: Instead | None = None
    change: Change | None = None
    times: int = 1
    path: str = ""
    method: str = ""
    page: int = 0

    def is_about(self, asked: Asked) -> bool:
        """Whether this request meets it; `path` is a part of the path."""
        return (
            self.times > 0
            and self.path in asked.path
            and self.method in ("", asked.method)
            and (not self.page or asked.query.get("page", "1") == str(self.page))
        )


class Faults:
    """What is still to go wrong, in the order in which it was said."""

    def __init__(self) -> None:
        self.planned: list[Fault] = []

    def add(self, fault: Fault, *, times: int = 1, path: str = "", method: str = "") -> None:
        """Let the next `times` requests meet it; `path` is a part of their path."""
        self.planned.append(replace(fault, times=times, path=path, method=method))

    def clear(self) -> None:
        """Everything is well again."""
        self.planned.clear()

    def next(self, asked: Asked) -> Fault | None:
        """What this request meets, used up by it."""
        for fault in self.planned:
            if fault.is_about(asked):
                fault.times -= 1
                return fault
        return None


FOREVER = 10**9


def status(code: int, message: str = "", **headers: str) -> Fault:
    """Answer a status with a message, as both forges word an error; `_` in a header is `-`."""
    told = Told(code, {"message": message or f"status {code}"}).with_headers(**headers)
    return Fault(instead=lambda asked: told)


def limited(retry_after: str | None = None, code: int = 429) -> Fault:
    """Too many requests, with or without Retry-After (seconds or an HTTP date)."""
    headers = {"retry_after": retry_after} if retry_after is not None else {}
    return status(code, "Too many requests", **headers)


def secondary(retry_after: str | None = None, code: int = 403) -> Fault:
    """GitHub's secondary limit: quota is left, and perhaps Retry-After says how long."""
    headers = {"x_ratelimit_remaining": "4000", "x_ratelimit_limit": "5000"}
    if retry_after is not None:
        headers["retry_after"] = retry_after
    return status(
        code,
        "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",
        **headers,
    )


def primary(reset: float, code: int = 403) -> Fault:
    """GitHub's hourly limit: nothing left until `reset`, in seconds since 1970."""
    return status(
        code,
        "API rate limit exceeded for user ID 1.",
        x_ratelimit_limit="5000",
        x_ratelimit_remaining="0",
        x_ratelimit_used="5000",
        x_ratelimit_reset=str(int(reset)),
        x_ratelimit_resource="core",
    )


def drop() -> Fault:
    """The connection ends before anything is done."""

    def instead(asked: Asked) -> Told:
        raise Dropped

    return Fault(instead=instead)


def lost() -> Fault:
    """What was asked is done, and then the connection ends without an answer."""

    def change(asked: Asked, told: Told) -> Told:
        raise Dropped

    return Fault(change=change)


def html() -> Fault:
    """A sign-in page of something in between, with status 200."""
    return Fault(instead=lambda asked: Told(200, raw=HTML, headers={"content-type": "text/html"}))


def redirect(location: str, code: int = 301) -> Fault:
    """Sent elsewhere."""
    return status(code, "Moved", location=location)


def slow(seconds: float, pause: Callable[[float], None] = time.sleep) -> Fault:
    """The body comes in eight pieces, `seconds` in all; `pause` may move a clock instead."""
    return Fault(change=lambda asked, told: replace(told, pause=lambda: pause(seconds / 8)))


def truncated() -> Fault:
    """The JSON ends in the middle."""
    return _raw(lambda body: body[: max(1, len(body) * 2 // 3)])


def not_json() -> Fault:
    """A body that is no JSON although its type says so."""
    return _raw(lambda body: b"upstream connect error\x00\xff")


def big(size: int) -> Fault:
    """A body of so many bytes."""
    return _raw(lambda body: b'["' + b"x" * size + b'"]')


def wrong_types() -> Fault:
    """Valid JSON in which every value is of another type than it should be."""
    return _data(lambda data: _twisted(data, itertools.count()))


def another_shape(data: Any) -> Fault:
    """Valid JSON of another shape altogether: null, a number, an object where a list belongs."""
    return _data(lambda _: data)


def unknown_fields() -> Fault:
    """Every object has fields that no description knows, as a newer version would send."""
    return _data(_grown)


def broken_entries() -> Fault:
    """A list begins with entries that cannot be read: no head, no number, no object."""
    broken: list[Any] = [
        {"number": 90, "state": "open", "title": "no head"},
        {"number": "ninety", "title": "no number", "state": "open", "head": {"ref": "afk/7"}},
        {"number": None, "head": None, "title": None, "labels": None, "user": 7},
        {"number": -3, "labels": [None, 7, {"name": None}], "title": 3, "state": "open"},
        None,
        "an entry",
        [],
    ]
    return _data(lambda data: [*broken, *data] if isinstance(data, list) else data)


def empty_page(page: int) -> Fault:
    """One page of a list is empty although headers say that there is more after it."""
    fault = _data(lambda data: [] if isinstance(data, list) else data)
    return replace(fault, page=page)


def without_headers(*names: str) -> Fault:
    """Some headers of the answer are missing, as behind a proxy that drops them."""

    def change(asked: Asked, told: Told) -> Told:
        kept = {name: value for name, value in told.headers.items() if name not in names}
        return replace(told, headers=kept)

    return Fault(change=change)


def _raw(change: Callable[[bytes], bytes]) -> Fault:
    return Fault(change=lambda asked, told: replace(told, raw=change(told.body)))


def _data(change: Callable[[Any], Any]) -> Fault:
    def changed(asked: Asked, told: Told) -> Told:
        return replace(told, raw=json.dumps(change(told.data)).encode())

    return Fault(change=changed)


def _twisted(data: Any, turn: Iterator[int]) -> Any:
    if isinstance(data, dict):
        return {name: _twisted(value, turn) for name, value in data.items()}
    if isinstance(data, list) and data:
        return [_twisted(value, turn) for value in data]
    every: list[Any] = [17, "seventeen", True, None, [17], {"seventeen": 17}, -0.5]
    wrong = [value for value in every if type(value) is not type(data)]
    return wrong[next(turn) % len(wrong)]


def _grown(data: Any) -> Any:
    if isinstance(data, dict):
        grown = {name: _grown(value) for name, value in data.items()}
        return {"from_the_future": {"a": [1, None]}, **grown, "another": None}
    return [_grown(value) for value in data] if isinstance(data, list) else data
