"""What the pages on people show, each with a fixed number of queries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.db.models import Count, OuterRef, Q, Subquery

from runs.models import ApiToken, Delivery, NoticeAddress, Passkey
from runs.people import acts
from runs.people.roles import Role, role_of


@dataclass(frozen=True, slots=True)
class Person:
    """One line of the list. `is_waiting`: has not chosen a password yet."""

    pk: int
    name: str
    role: Role
    is_active: bool
    is_waiting: bool
    last_login: datetime | None
    passkeys: int
    tokens: int


def everyone() -> list[Person]:
    """All people by name."""
    acting = set(acts.acting().values_list("pk", flat=True))
    rows = User.objects.order_by("username").annotate(
        tokens=Count("api_tokens", filter=Q(api_tokens__revoked_at=None), distinct=True),
        passkey_count=Count("passkeys", distinct=True),
    )
    return [_person(user, user.pk in acting) for user in rows]


def tokens_of(user: User) -> list[ApiToken]:
    """The tokens of a person that were not revoked, newest first."""
    return list(ApiToken.objects.filter(user=user, revoked_at=None))


def passkeys_of(user: User) -> list[Passkey]:
    """The passkeys of a person, newest first."""
    return list(Passkey.objects.filter(user=user))


def addresses_of(user: User) -> list[NoticeAddress]:
    """Where a person is told, by name, and how the last notice went; without the addresses themselves."""
    rows = NoticeAddress.objects.filter(user=user).defer("url")
    last = Delivery.objects.filter(address=OuterRef("pk")).order_by("-created_at", "-pk")
    shown = {name: Subquery(last.values(name)[:1]) for name in ("state", "error", "created_at")}
    return list(rows.annotate(**{f"last_{name}": column for name, column in shown.items()}))


def deliveries_of(user: User, most: int = 50) -> list[Delivery]:
    """What was sent to a person lately, newest first."""
    rows = Delivery.objects.filter(address__user=user).select_related("address")
    return list(rows.defer("address__url", "text")[:most])


def _person(user: User, may_act: bool) -> Person:
    return Person(
        pk=user.pk,
        name=user.username,
        role=role_of(is_admin=user.is_superuser, may_act=may_act),
        is_active=user.is_active,
        is_waiting=not user.has_usable_password(),
        last_login=user.last_login,
        passkeys=getattr(user, "passkey_count", 0),
        tokens=getattr(user, "tokens", 0),
    )
