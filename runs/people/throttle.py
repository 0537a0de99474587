"""Counts tries at names, passwords, passkeys and links, so that nobody can guess them.

A try is counted before it is looked at, so that a hundred at once are no way around the limit;
a right one is given back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, unique

from django.db import transaction
from django.utils.crypto import salted_hmac

from runs.core.budgets import ZERO
from runs.core.ports import Lab
from runs.models import Tries
from runs.people import throttle_rules
from runs.people.throttle_rules import Limit

QUARTER = timedelta(minutes=15)
PRUNED_AT_ONCE = 500


@unique  # two of one limit would be one kind, and count together
class Kind(Enum):
    """What is counted: one person's name from one address, or everything from one address."""

    PERSON = Limit(5, QUARTER)
    ADDRESS = Limit(30, QUARTER)
    # Every one leaves a session behind, so these are not given back.
    PASSKEY_QUESTION = Limit(60, QUARTER)
    # Deliveries that nobody signed; apart from people, who may share the forge's address.
    HOOK = Limit(20, QUARTER)


@dataclass(frozen=True, slots=True)
class Door:
    """One thing that tries are counted for. `who` is stored only as a keyed hash."""

    kind: Kind
    who: str

    @property
    def key(self) -> str:
        return salted_hmac(f"tries {self.kind.name}", self.who, algorithm="sha256").hexdigest()


class TooManyTries(Exception):
    """The try was not looked at; `wait` is the time until the next one is."""

    def __init__(self, wait: timedelta) -> None:
        super().__init__(f"too many tries, wait {wait}")
        self.wait = wait


def doors(address: str, name: str = "") -> list[Door]:
    """What a try from this address, for this person if there is a name, counts for.

    Never the name alone: anybody could then keep its owner out.
    """
    found = [Door(Kind.ADDRESS, address)]
    if name:
        found.append(Door(Kind.PERSON, f"{address} {name.casefold()}"))
    return found


def question_doors(address: str) -> list[Door]:
    """What counts a question for a passkey that somebody from this address has asked for."""
    return [Door(Kind.PASSKEY_QUESTION, address)]


def hook_doors(address: str) -> list[Door]:
    """What counts a webhook's delivery from this address whose signature is wrong."""
    return [Door(Kind.HOOK, address)]


def attempt(lab: Lab, tried: Iterable[Door]) -> None:
    """Count one try at each door. Raises TooManyTries when one of them is shut; then none counts."""
    now = lab.now()
    by_key = {door.key: door for door in tried}
    _prune(lab)
    with transaction.atomic():
        rows = _held(sorted(by_key), now)
        limits = {row.key: by_key[row.key].kind.value for row in rows}
        wait = max(throttle_rules.wait(now, row.clear_at, limits[row.key]) for row in rows)
        if wait > ZERO:
            raise TooManyTries(wait)
        for row in rows:
            row.clear_at = throttle_rules.charged(now, row.clear_at, limits[row.key])
            row.save(update_fields=["clear_at"])


def _held(keys: Sequence[str], now: datetime) -> list[Tries]:
    """A row for each key, made when missing, that nobody else changes until the transaction ends."""
    rows: list[Tries] = []
    # One that was there may be pruned before it is held; then the next turn makes it anew.
    while len(rows) < len(keys):
        fresh = [Tries(key=key, clear_at=now) for key in keys]
        Tries.objects.bulk_create(fresh, ignore_conflicts=True)
        rows = list(Tries.objects.select_for_update().filter(key__in=keys).order_by("key"))
    return rows


def was_right(lab: Lab, tried: Iterable[Door]) -> None:
    """Give a counted try back. A person's own earlier mistakes are forgotten with it."""
    with transaction.atomic():
        for door in sorted(tried, key=lambda one: one.key):
            row = Tries.objects.select_for_update().filter(key=door.key).first()
            if row is None:
                continue
            if door.kind is Kind.PERSON:
                row.delete()
            else:
                row.clear_at = max(lab.now(), row.clear_at - door.kind.value.each)
                row.save(update_fields=["clear_at"])


def _prune(lab: Lab) -> None:
    """Forget what says nothing any more, so that the table never holds more than a quarter hour."""
    with transaction.atomic():
        stale = Tries.objects.select_for_update(skip_locked=True).filter(clear_at__lte=lab.now())
        Tries.objects.filter(
            pk__in=list(stale.values_list("pk", flat=True)[:PRUNED_AT_ONCE])
        ).delete()
