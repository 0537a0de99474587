"""What ended badly stands under *Needs you* until somebody has seen it."""

from __future__ import annotations

from datetime import datetime

from django.db import InterfaceError, OperationalError

from runs.domain import watching
from runs.domain.needing import SEEN_FOR
from runs.models import Run, WatchSession


def opened(row: Run | WatchSession, now: datetime) -> None:
    """Note that somebody has opened the page of something that has ended; it leaves in a day."""
    if row.ended_at is None or row.seen_until is not None:
        return
    try:
        type(row).objects.filter(pk=row.pk, seen_until=None).update(seen_until=now + SEEN_FOR)
    except (OperationalError, InterfaceError):
        return  # a page that only reads is shown nevertheless; it stands there a little longer


def dismiss(row: Run | WatchSession, now: datetime) -> None:
    """Take something that has ended off the list."""
    type(row).objects.filter(pk=row.pk, ended_at__isnull=False).update(seen_until=now)


def dismiss_all(now: datetime) -> int:
    """Take everything off the list that has ended badly; returns how much nobody had opened."""
    sessions = WatchSession.objects.filter(ended_at__isnull=False, code__in=watching.FAILED)
    number = 0
    for rows in (Run.objects.exclude(outcome=""), sessions):
        rows.filter(seen_until__gt=now).update(seen_until=now)
        unseen = rows.filter(seen_until=None)
        number += unseen.update(seen_until=now)
    return number
