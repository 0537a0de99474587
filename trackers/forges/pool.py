"""Asking many things of forges at once, each failing alone (LAB-13)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from trackers.errors import TrackerError

# The client lets no more than a few calls to one host run at once; more hands would only wait.
HANDS = 8

Key = TypeVar("Key")
Found = TypeVar("Found")


def side_by_side(
    keys: Collection[Key], ask: Callable[[Key], Found]
) -> dict[Key, Found | TrackerError]:
    """The answer for each key, or the error that stands for it."""

    def one(key: Key) -> Found | TrackerError:
        try:
            return ask(key)
        except TrackerError as error:
            return error

    asked = list(dict.fromkeys(keys))
    if len(asked) < 2:
        return {key: one(key) for key in asked}
    with ThreadPoolExecutor(min(HANDS, len(asked)), thread_name_prefix="forge") as pool:
        return dict(zip(asked, pool.map(one, asked), strict=True))
