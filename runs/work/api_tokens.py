"""Verbs on personal tokens of the HTTP API: make, find, revoke."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q

from runs.domain import tokens
from runs.domain.ports import Lab
from runs.domain.states import NoticeKind
from runs.models import ApiToken
from runs.work import announce

PREFIX = "lab_"
HINT_CHARACTERS = 8
USED_EVERY = timedelta(minutes=1)


def make(
    lab: Lab, user: User, name: str, scope: ApiToken.Scope, expires_at: datetime | None = None
) -> tuple[ApiToken, str]:
    """Store a new token of a user and return it with its text, which nothing can show again."""
    text = PREFIX + tokens.new_token()
    with transaction.atomic():
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
        ApiToken.objects.select_related("user")
        .filter(Q(expires_at=None) | Q(expires_at__gt=now))
        .filter(digest=tokens.hash_token(text), revoked_at=None, user__is_active=True)
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
