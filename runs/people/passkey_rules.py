"""Where passkeys work, and when one looks like a copy."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Site:
    """The address by which a browser reaches us, as passkeys are bound to it.

    `why_not` is empty where passkeys work, else a sentence with what to do.
    """

    name: str
    origin: str
    why_not: str = ""


def site(scheme: str, host: str) -> Site:
    """The site of a request's scheme and host (with its port, if any)."""
    parts = urlsplit(f"//{host}")
    name, port = parts.hostname or "", parts.port
    at = f":{port}" if port and port != DEFAULT_PORTS.get(scheme) else ""
    origin = f"{scheme}://{f'[{name}]' if ':' in name else name}{at}"
    return Site(name, origin, _why_not(scheme, name, at))


def is_copy(stored: int, shown: int) -> bool:
    """Whether a passkey counts its uses and shows one that was counted before.

    Then a second device holds the same key, or somebody plays back what they have overheard.
    """
    return (stored > 0 or shown > 0) and shown <= stored


def _why_not(scheme: str, name: str, at: str) -> str:
    if _is_address(name):
        there = (
            f" On this machine, open http://localhost{at} instead." if name == "127.0.0.1" else ""
        )
        return f"Passkeys need a name, and this page was opened by an IP address.{there}"
    if scheme != "https" and name != "localhost" and not name.endswith(".localhost"):
        return "Passkeys need https. Put a proxy with a certificate in front of labsite."
    return ""


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
