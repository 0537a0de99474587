"""The lease of the one judge on a host: database, expiry, and a fencing token."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, QuerySet
from django.db.models.functions import Now

from runs.core.ports import Lab
from runs.models import Host, ManualSession, Run

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


def is_gone(lab: Lab, process: str) -> bool:
    """Whether a process has surely ended that a row names without its host.

    What seems to be of an earlier boot may be another machine's, which nobody here can tell of.
    """
    if lab.is_process_alive(process) is not False:
        return False
    if not lab.machine.identity or _boot(process) == _boot(lab.process):
        return True
    return not Host.objects.filter(removed_at=None).exclude(name=lab.host).exists()


def _boot(process: str) -> str:
    return process.partition(":")[0]


def acquire(lab: Lab) -> int | None:
    """Take the lease of this host; its number, or None when another tick holds it."""
    host = take(lab)
    return None if host is None else host.lease_number


class OtherMachine(Exception):
    """Another state folder works under this host's name; two would end each other's sessions."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Another machine works as host {name}, so nothing is done here. Set LAB_SESSION_HOST "
            f"to another name, or, where this machine takes its place, say ./lab host claim {name}."
        )


class Removed(Exception):
    """People took this host out, and its worker has nothing left to finish."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Host {name} was removed, so its worker does nothing any more; worktrees and branches on "
            f"this machine stay where they are. To have it work again, say ./lab host claim {name} "
            "here; otherwise stop it."
        )


def check_not_removed(name: str) -> None:
    """Raise Removed when a host was taken out and what it had was settled."""
    if not Host.objects.filter(name=name, removed_at__isnull=False).exists():
        return
    rows = (Run.objects, ManualSession.objects)
    if not any(one.filter(host=name, settled_at=None).exists() for one in rows):
        raise Removed(name)


def check_name(lab: Lab) -> None:
    """Raise OtherMachine when another state folder works under this host's name."""
    machines = Host.objects.filter(name=lab.host).values_list("machine", flat=True)
    if any(lab.machine.is_other(machine) for machine in machines):
        raise OtherMachine(lab.host)


def is_here(lab: Lab, host: str) -> bool:
    """Whether what a row has on a host lies on this machine, and not on another of its name by now."""
    if host != lab.host:
        return False
    try:
        check_name(lab)
    except OtherMachine:
        return False
    return True


def take(lab: Lab) -> Host | None:
    """`acquire`, giving the host as it was read with its new number. Raises OtherMachine, Removed.

    The first state folder that takes it has the name from then on.
    """
    host = Host.objects.get_or_create(name=lab.host)[0]
    ours = lab.machine.identity
    if ours and host.machine not in ("", ours):
        raise OtherMachine(lab.host)
    if host.removed_at is not None:
        check_not_removed(host.name)
    held = Held(host.lease_owner, host.lease_expires_at, lab.is_process_alive(host.lease_owner))
    was_ours = (lab.process, lab.host, host.lease_number) in _OVER
    if not (was_ours and held.owner == lab.process) and not is_free(held, lab.now()):
        return None
    number = host.lease_number + 1
    is_new = ours and not host.machine and host.removed_at is None
    mine = {"machine": ours} if is_new else {}
    rows = Host.objects.filter(pk=host.pk, lease_number=host.lease_number, machine=host.machine)
    won = rows.update(
        lease_owner=lab.process,
        lease_number=number,
        lease_expires_at=lab.now() + LENGTH,
        seen_at=Now(),
        **mine,
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
    return bool(rows.update(lease_expires_at=lab.now() + LENGTH, seen_at=Now()))


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
