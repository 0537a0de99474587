"""Which programs a piece of work starts, as Python itself tells of them, in whatever thread."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_listeners: list[list[str]] = []
_is_hooked = False


def _hear(event: str, facts: tuple[Any, ...]) -> None:
    if _listeners and event == "subprocess.Popen":
        words = [str(word) for word in facts[1]]
        for one in _listeners:
            one.append(_name(words))


def _name(words: list[str]) -> str:
    """Program and subcommand, without options that have a value of their own."""
    rest = words[1:]
    while rest and rest[0].startswith("-"):
        rest = rest[2 if rest[0] in ("-c", "-C", "-S", "-f") else 1 :]
    return " ".join([words[0], *rest[:1]])


@contextmanager
def started() -> Iterator[list[str]]:
    """The programs that are started meanwhile, in their order. Python keeps a hook for ever, so there is one."""
    global _is_hooked
    if not _is_hooked:
        sys.addaudithook(_hear)
        _is_hooked = True
    found: list[str] = []
    _listeners.append(found)
    try:
        yield found
    finally:
        _listeners.remove(found)
