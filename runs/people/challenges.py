"""What a browser was asked with a passkey: kept in its session, good for one answer and five minutes."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.core.exceptions import DisallowedHost
from django.db import transaction
from django.http import HttpRequest

from runs import wiring
from runs.core.budgets import ZERO
from runs.people import passkey_rules
from runs.people.passkey_rules import Site
from runs.people.passkeys import Asked

KEY = "passkey_question"
LASTS = timedelta(minutes=5)
STRANGER_SECONDS = 600


def site(request: HttpRequest) -> Site:
    """The site that this browser is at, as passkeys are bound to it. Raises DisallowedHost."""
    host = request.get_host()
    try:
        return passkey_rules.site(request.scheme or "http", host)
    except ValueError as error:
        raise DisallowedHost(f"{host!r} names no port: {error}") from error


def keep(request: HttpRequest, purpose: str, asked: Asked) -> None:
    """Remember a question in the session; it replaces an earlier one."""
    session = request.session
    session[KEY] = {
        "purpose": purpose,
        "challenge": asked.challenge.hex(),
        "handle": asked.handle,
        "at": wiring.lab().now().isoformat(),
    }
    if not request.user.is_authenticated:
        session.set_expiry(STRANGER_SECONDS)


def take(request: HttpRequest, purpose: str) -> Asked | None:
    """The question for which an answer is taken now, once; None when there is none (any more)."""
    kept = _taken(request.session.session_key or "")
    request.session.pop(KEY, None)
    if kept is None or kept["purpose"] != purpose:
        return None
    age = wiring.lab().now() - datetime.fromisoformat(kept["at"])
    if not ZERO <= age < LASTS:
        return None
    return Asked("", bytes.fromhex(kept["challenge"]), kept["handle"])


def stays(request: HttpRequest) -> None:
    """Before a login: the session of a stranger who was asked is short, the one of a person is not."""
    request.session.set_expiry(None)


def _taken(key: str) -> dict[str, Any] | None:
    """Take the question out of the stored session. Of two answers at the same time one gets it."""
    with transaction.atomic():
        if not Session.objects.select_for_update().filter(pk=key).exists():
            return None
        stored = SessionStore(key)
        kept: dict[str, Any] | None = stored.pop(KEY, None)
        if kept is not None:
            stored.save()
        return kept
