"""The lease of the one judge on a host: database, expiry, and a fencing token."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, QuerySet

from runs.core.ports import Lab
from runs.models import Host

LENGTH = timedelta(seconds=60)

# Ticks of this process that are over although the database could not be told.
_OVER: set[tuple[str, str, int]] = set()


@dataclass(frozen=True, slots=True)
class Held:
    """What is known of a lease that somebody may hold."""

    owner: str
    expires_at: datetime | None
    owner_lives: bool | None


def is_free(held: Held, now: datetime) -> bool:
    """Whether a lease may be taken: nobody's, expired, its owner is dead, or from a wrong clock."""
    if not held.owner or held.expires_at is None or held.owner_lives is False:
        return True
    return now >= held.expires_at or held.expires_at - now > LENGTH


def acquire(lab: Lab) -> int | None:
    """Take the lease of this host; its number, or None when another tick holds it."""
    host = take(lab)
    return None if host is None else host.lease_number


def take(lab: Lab) -> Host | None:
    """`acquire`, giving the host as it was read with its new number."""
    host = Host.objects.get_or_create(name=lab.host)[0]
    held = Held(host.lease_owner, host.lease_expires_at, lab.is_process_alive(host.lease_owner))
    was_ours = (lab.process, lab.host, host.lease_number) in _OVER
    if not (was_ours and held.owner == lab.process) and not is_free(held, lab.now()):
        return None
    number = host.lease_number + 1
    won = Host.objects.filter(pk=host.pk, lease_number=host.lease_number).update(
        lease_owner=lab.process, lease_number=number, lease_expires_at=lab.now() + LENGTH
    )
    _OVER.discard((lab.process, lab.host, number))
    host.lease_number = number
    return host if won else None


def note_over(lab: Lab, number: int) -> None:
    """Note that a tick of this process has ended which could not give its lease back."""
    _OVER.add((lab.process, lab.host, number))


def renew(lab: Lab, number: int) -> bool:
    """Extend the lease; False when it was lost, and then the tick must stop."""
    rows = Host.objects.filter(name=lab.host, lease_number=number)
    return bool(rows.update(lease_expires_at=lab.now() + LENGTH))


def release(lab: Lab, number: int) -> None:
    """Give the lease back, if it is still ours."""
    Host.objects.filter(name=lab.host, lease_number=number).update(
        lease_owner="", lease_expires_at=None
    )


def is_held(lab: Lab, number: int) -> Exists:
    """A condition for rows that only the tick with this lease may write."""
    return Exists(Host.objects.filter(name=lab.host, lease_number=number))


def update(rows: QuerySet[Any], row: Any, lab: Lab, number: int, **columns: object) -> bool:
    """Update one of `rows` as a step of the tick with this lease; False: somebody was first.

    Optimistic locking: it applies only if `version`, which grows by one, is the one that was read.
    """
    mine = rows.filter(is_held(lab, number), pk=row.pk, version=row.version)
    return bool(mine.update(**columns, version=row.version + 1))


class Lost(Exception):
    """The lease went to another tick; the one that notices stops at once."""


def keep(lab: Lab, number: int) -> None:
    """`renew`, raising Lost."""
    if not renew(lab, number):
        raise Lost
