"""Whether a list goes on after a page, and where: a pure rule over what its headers say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_LINK = re.compile(r"<([^<>]*)>((?:\s*;\s*[^,;<>]*)*)")
_NEXT = re.compile(r";\s*rel\s*=\s*\"?(?:[^\";]*\s)?next(?:\s[^\";]*)?\"?\s*(?:;|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Page:
    """One page as it came: `number` counts from 1, `first` is how many the first page held."""

    number: int
    count: int
    first: int
    size: int
    headers: Mapping[str, str]
    was_unchanged: bool = False
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class Next:
    """Where the list goes on: at an address, or else at the page of a number."""

    number: int
    address: str = ""


def after(page: Page) -> Next | None:
    """The next page, or None at the end of the list.

    What the forge says counts: its link, or its total count; an empty page in the middle is no
    end. Without either, a full page is followed by another, unless it says the same again (some
    lists do not page at all). A full page that is *unchanged* was perhaps the last when its link
    was kept, and is no more: its successor is asked for.
    """
    number = page.number + 1
    link = page.headers.get("link", "")
    if address := next_address(link):
        return Next(number, address)
    if page.repeats:
        return None
    is_full = page.count >= page.size
    total = page.headers.get("x-total-count", "").strip()
    if total.isascii() and total.isdigit() and not (page.was_unchanged and is_full):
        step = min(page.first, page.size) or page.size
        return Next(number) if page.number * step < int(total[:12]) else None
    if link and not page.was_unchanged:
        return None
    return Next(number) if is_full else None


def next_address(link: str) -> str:
    """The address with rel=next of a Link header, or nothing (RFC 8288)."""
    for found in _LINK.finditer(link):
        if _NEXT.search(found[2]):
            return found[1].strip()
    return ""
