"""Addresses of rows. A page names hundreds of them, and Django's own answer takes 40 µs each."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import urlsplit

from django.urls import reverse

KEPT = 20_000


@lru_cache(maxsize=KEPT)
def of(name: str, *ids: int) -> str:
    """The address of a page by its name and the numbers in it."""
    return reverse(name, args=ids)


def path_in(address: str) -> str:
    """The path in an address that a browser sent; empty when it cannot be read as one."""
    try:
        return urlsplit(address).path
    except ValueError:
        return ""
