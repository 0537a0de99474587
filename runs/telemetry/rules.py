"""Who may read the metrics, and how labels stay few."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

HERE = frozenset({"localhost", "127.0.0.1", "[::1]"})
OTHERS = "(others)"


@dataclass(frozen=True, slots=True)
class Asker:
    """What is known of a request: its peer, the name it asked for, the token that it showed."""

    peer: str
    name: str
    is_forwarded: bool
    shown: str = ""


def may_read(asker: Asker, token: str, behind_proxy: bool) -> bool:
    """Whether the metrics are told: to the token's holder, or to a program of this machine.

    Behind a proxy everybody comes from this machine, so there the token alone counts. A proxy that
    nobody declared shows itself by its headers or by the name that browsers ask for.
    """
    if asker.shown:
        return bool(token) and hmac.compare_digest(asker.shown.encode(), token.encode())
    if behind_proxy or asker.is_forwarded:
        return False
    return _is_loopback(asker.peer) and asker.name.lower() in HERE


def _is_loopback(peer: str) -> bool:
    try:
        found = ip_address(peer)
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return (mapped or found).is_loopback


@dataclass(frozen=True, slots=True)
class Share:
    """One project's part of the figures that are told by project."""

    name: str
    active: int
    disk: int


def bounded(shares: Sequence[Share], most: int) -> list[Share]:
    """The first `most` as they are, and what is left in one, so that labels never outnumber that.

    In the order in which they were made: each keeps its place however the others change.
    """
    rest = shares[most:]
    if not rest:
        return list(shares)
    others = Share(OTHERS, sum(one.active for one in rest), sum(one.disk for one in rest))
    return [*shares[:most], others]
