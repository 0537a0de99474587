"""What kind of forge is at an address: asked of the forge itself, without any credential."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trackers.account import Account, Purpose
from trackers.errors import NotFound, NotUnderstood, Refused
from trackers.http.client import Client

# Servers that show nothing to strangers still answer in their own way.
_TOLD = (200, 401, 403)


def kind_at(client: Client, web: str) -> str | None:
    """`gitea` (Forgejo too), `github`, or None for neither. Raises TrackerError: could not tell."""
    if _is_gitea(_asked(client, f"{web}/api/v1", "/version")):
        return "gitea"
    return "github" if _is_github(_asked(client, f"{web}/api/v3", "/meta")) else None


def _asked(client: Client, api: str, path: str) -> Mapping[str, Any]:
    try:
        told = client.call(Account(api), "GET", path, purpose=Purpose.SETUP, expect=_TOLD).data
    except (NotFound, NotUnderstood, Refused):
        return {}
    return told if isinstance(told, dict) else {}


def _is_gitea(told: Mapping[str, Any]) -> bool:
    """Its errors name the page of its API, and no other forge names such a one."""
    return isinstance(told.get("version"), str) or str(told.get("url", "")).endswith("/api/swagger")


def _is_github(told: Mapping[str, Any]) -> bool:
    marks = ("verifiable_password_authentication", "installed_version", "documentation_url")
    return any(mark in told for mark in marks)
