"""What ended badly stands under *Needs you* until somebody has seen it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Q

from runs.core.ports import Lab
from runs.core.states import NoticeKind
from runs.lifecycle.models import NEEDS_SOMEBODY
from runs.models import Run, WatchSession
from runs.overview.attention_rules import SEEN_FOR
from runs.timeline import announce
from runs.watch import rules as watch_rules

TEXT = "dismissed from what needs you"


def opened(row: Run | WatchSession, now: datetime) -> None:
    """Note that somebody has opened the page of something that has ended; it leaves in a day."""
    if row.ended_at is None or row.seen_until is not None:
        return
    try:
        type(row).objects.filter(pk=row.pk, seen_until=None).update(seen_until=now + SEEN_FOR)
    except (OperationalError, InterfaceError):
        return  # a page that only reads is shown nevertheless; it stands there a little longer


def dismiss(lab: Lab, row: Run | WatchSession, by: str) -> None:
    """Take something that has ended off the list."""
    about = {"run": row} if isinstance(row, Run) else {"project": row.project, "watch_id": row.pk}
    with transaction.atomic():
        rows = type(row).objects.filter(pk=row.pk, ended_at__isnull=False)
        if rows.update(seen_until=lab.now()):
            announce.tell(lab, NoticeKind.NEED_DISMISSED, TEXT, by=by, **about)


def dismiss_all(lab: Lab, runs: Sequence[int], sessions: Sequence[int], by: str) -> None:
    """Take off the list what somebody saw there; what ended badly since then stays."""
    now = lab.now()
    on_it = Q(seen_until=None) | Q(seen_until__gt=now)
    watched = WatchSession.objects.filter(
        pk__in=sessions, ended_at__isnull=False, code__in=watch_rules.FAILED
    )
    with transaction.atomic():
        seen = (Run.objects.filter(NEEDS_SOMEBODY, pk__in=runs), watched)
        if count := sum(rows.filter(on_it).update(seen_until=now) for rows in seen):
            text = f"{TEXT}: {count} that ended"
            announce.tell(lab, NoticeKind.NEED_DISMISSED, text, by=by)
