"""Verbs on personal tokens of the HTTP API: make, find, revoke."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet

from runs.core import tokens
from runs.core.ports import Lab
from runs.core.states import NoticeKind
from runs.models import ApiToken
from runs.timeline import announce

PREFIX = "lab_"
HINT_CHARACTERS = 8
USED_EVERY = timedelta(minutes=1)


class NameTaken(ValueError):
    """No token was made: its owner has a living one of that name."""


def make(
    lab: Lab, user: User, name: str, scope: ApiToken.Scope, expires_at: datetime | None = None
) -> tuple[ApiToken, str]:
    """Store a new token of a user and return it with its text, which nothing can show again.

    Raises NameTaken: of two with one name nobody knows which to revoke.
    """
    text = PREFIX + tokens.new_token()
    with transaction.atomic():
        # Held, so that of two at the same time the second sees the first one's.
        User.objects.select_for_update().get(pk=user.pk)
        if _living(lab).filter(user=user, name=name).exists():
            raise NameTaken(f"You have a token called {name} already.")
        token = ApiToken.objects.create(
            user=user,
            name=name,
            scope=scope,
            digest=tokens.hash_token(text),
            hint=text[:HINT_CHARACTERS],
            created_at=lab.now(),
            expires_at=expires_at,
        )
        told = f"token {name} made; it may {scope}"
        announce.tell(lab, NoticeKind.SETTING_CHANGED, told, by=user.get_username())
    return token, text


def find(lab: Lab, text: str) -> ApiToken | None:
    """The token that a program showed, with its user; None when it is unknown, revoked or expired.

    Notes at most once a minute that it was used.
    """
    now = lab.now()
    token = (
        _living(lab)
        .select_related("user")
        .filter(digest=tokens.hash_token(text), user__is_active=True)
        .first()
    )
    if token is not None and (token.used_at is None or abs(now - token.used_at) >= USED_EVERY):
        ApiToken.objects.filter(pk=token.pk).update(used_at=now)
    return token


def revoke(lab: Lab, token: ApiToken, *, by: str) -> bool:
    """End a token for good; False when it had been ended before."""
    with transaction.atomic():
        won = ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=lab.now())
        if won:
            announce.tell(lab, NoticeKind.SETTING_CHANGED, f"token {token.name} revoked", by=by)
    return bool(won)


def _living(lab: Lab) -> QuerySet[ApiToken]:
    """Tokens that are neither revoked nor expired."""
    rows = ApiToken.objects.filter(revoked_at=None)
    return rows.filter(Q(expires_at=None) | Q(expires_at__gt=lab.now()))
