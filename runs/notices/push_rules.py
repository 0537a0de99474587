"""What may be pushed where, when, how many in one, and with which acts. Pure."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from enum import StrEnum
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

MOST_A_MINUTE = 5
MINUTE = timedelta(minutes=1)
# A push service takes 4,096 bytes, of which the encryption needs about a hundred.
PAYLOAD_BYTES = 3000
SHOWN_TITLES = 4
ACTS = 3
# Addresses that hold another one, which is where they lead: NAT64 is how a network without IPv4
# reaches the services, 6to4 and IPv4-compatible ones lead there no more.
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_BYGONE = (ipaddress.ip_network("2002::/16"), ipaddress.ip_network("::/96"))
# The whole of what programs write for this once, before the key that they name for it. Whatever says
# more may allow more: "Yes, and bypass permissions".
_ONCE = re.compile(
    r"(yes|allow|approve|accept)( once)?(, (proceed|once|allow once|run it))?( \([a-z]{1,5}\))?",
    re.IGNORECASE,
)
_NO = re.compile(r"(no|deny|reject|cancel|refuse)\b", re.IGNORECASE)


class PushVerb(StrEnum):
    """What can be done from a notification."""

    ALLOW = "allow"
    DENY = "deny"
    CONTINUE = "continue"
    STOP = "stop"
    MERGE = "merge"


@dataclass(frozen=True, slots=True)
class Pace:
    """How one push goes out: now alone, now in one with `others` more, or not before `until`."""

    others: bool = False
    until: datetime | None = None


def pace(now: datetime, due: int, sent: Sequence[datetime]) -> Pace:
    """More than five pushes a minute become one. `due`: how many wait; `sent`: those of late."""
    lately = sorted(at for at in sent if timedelta(0) <= now - at < MINUTE)
    if len(lately) >= MOST_A_MINUTE:
        return Pace(until=lately[-MOST_A_MINUTE] + MINUTE)
    return Pace(others=due > 1 and due + len(lately) > MOST_A_MINUTE)


def quiet_until(now: datetime, start: time | None, end: time | None, zone: str) -> datetime | None:
    """When the quiet hours end in which `now` lies; None outside of them.

    By the clock of the zone, over midnight and over changes of daylight saving time. Always later
    than `now`: what waits for an end that is past would be looked at again at once, for ever.
    """
    if start is None or end is None or start == end:
        return None
    place = zone_of(zone) or ZoneInfo("UTC")
    here = now.astimezone(place)
    is_in = start <= here.time() < end if start < end else not end <= here.time() < start
    if not is_in:
        return None
    day = here.date() + timedelta(days=1 if here.time() >= end else 0)
    # An hour that comes twice is over when it is over the time in which `now` lies.
    until = datetime.combine(day, end, place).replace(fold=here.fold).astimezone(now.tzinfo)
    return until if until > now else None


def zone_of(name: str) -> ZoneInfo | None:
    """A time zone by its name in the tz database; None when there is none of that name."""
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        return None


def refusal(endpoint: str, inside: Collection[str]) -> str:
    """Why labsite never calls an endpoint; empty when its form is right.

    A browser names it, and whoever has an account could name any address: only https at its own
    port, at no address inside a network, unless an admin named the host. What the name of the host
    stands for is looked at again before each call.
    """
    try:
        parts = urlsplit(endpoint)
        host, port = parts.hostname or "", parts.port
        host.encode("idna")
    except ValueError:
        return "it is no address"
    if is_named(endpoint, inside):
        return ""
    if parts.scheme != "https" or not host or parts.username or parts.password:
        return "a push service is called by https, without a name or password in its address"
    if port not in (None, 443):
        return "a push service is called at port 443"
    try:
        is_fit = is_outside(host)
    except ValueError:
        is_fit = "." in host and not host.endswith((".local", ".internal", ".localhost"))
    return "" if is_fit else "its host is inside a network"


def is_outside(place: str) -> bool:
    """Whether an IP address is one of the internet. Raises ValueError for what is none."""
    ip = ipaddress.ip_address(place)
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped or ip in _NAT64:
            return is_outside(str(ipaddress.IPv4Address(ip.packed[-4:])))
        if ip.is_site_local or any(ip in one for one in _BYGONE):
            return False
    return ip.is_global and not ip.is_multicast


def is_named(endpoint: str, inside: Collection[str]) -> bool:
    """Whether an admin named the endpoint's host, with its port where it is not the usual one."""
    parts = urlsplit(endpoint)
    return parts.scheme in ("http", "https") and parts.netloc in inside


def allow_and_deny(choices: Sequence[tuple[int, str]]) -> tuple[int | None, int | None]:
    """The digits of the choices that plainly allow once and plainly deny; None unless exactly one does.

    Everything else is read in full on the page.
    """
    allows = [digit for digit, text in choices if _ONCE.fullmatch(text.strip())]
    denies = [digit for digit, text in choices if _NO.match(text)]
    return _only(allows), _only(denies)


def _only(digits: Sequence[int]) -> int | None:
    return digits[0] if len(digits) == 1 else None


def payload(told: dict[str, object], titles: Sequence[str] = ()) -> str:
    """What a push carries, as JSON that fits: of a long text the end is cut.

    `titles`: those of several notices that are told in this one.
    """
    if titles:
        more = len(titles) - SHOWN_TITLES
        lines = [*titles[:SHOWN_TITLES], *([f"and {more} more"] if more > 0 else [])]
        told = {**told, "title": f"labsite: {len(titles)} notices", "body": "\n".join(lines)}
    text = json.dumps(told, ensure_ascii=False)
    while len(text.encode()) > PAYLOAD_BYTES and told["body"]:
        body = str(told["body"])
        told = {**told, "body": f"{body[: int(len(body) * 0.8) - 1]}…" if len(body) > 20 else ""}
        text = json.dumps(told, ensure_ascii=False)
    return text
