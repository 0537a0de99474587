"""Where a request comes from, as far as that can be believed."""

from __future__ import annotations

from ipaddress import IPv6Address, IPv6Network, ip_address

from django.conf import settings
from django.http import HttpRequest

UNKNOWN = "unknown"


def address(request: HttpRequest) -> str:
    """The network address of the browser, for counting; UNKNOWN when there is none.

    Behind a proxy it is the last hop that the proxy itself wrote down; what stands before that
    came from the browser. Without one no header is believed. Of an IPv6 address the first half
    counts, since a single house has all of the second.
    """
    said = ""
    if settings.BEHIND_PROXY:
        said = request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
    return _counted(said) or _counted(request.META.get("REMOTE_ADDR") or "") or UNKNOWN


def _counted(text: str) -> str:
    """The address in a normal form, without a port; empty when it is none."""
    bare = text
    if text.startswith("["):
        bare = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        bare = text.partition(":")[0]
    try:
        found = ip_address(bare)
    except ValueError:
        return ""
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(IPv6Network((int(found), 64), strict=False))
    return str(found)
