"""The quota ledger in the database: what this process asked of forges is added to it in one go."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db import DatabaseError, transaction
from django.db.models import F, Q

from runs.domain.ports import Lab
from runs.models import Quota, QuotaHour

if TYPE_CHECKING:
    from trackers.http.meter import Spent

logger = logging.getLogger(__name__)

KEPT = timedelta(days=30)


def settle(lab: Lab) -> None:
    """Write down what this process asked since the last time; without any question, no query.

    Never raises: what could not be stored is counted again the next time.
    """
    meter = lab.forges.meter()
    if meter is None:
        return
    now = lab.now()
    told = [line for line in meter.settle(now) if line.calls]
    if not told:
        return
    try:
        _store(told, now)
    except DatabaseError as error:
        logger.warning("quota was not written down", extra={"error": str(error)})
        meter.give_back(told)


def prune(lab: Lab) -> None:
    """Forget what was spent more than thirty days ago."""
    QuotaHour.objects.filter(hour__lt=lab.now() - KEPT).delete()


def _store(told: Sequence[Spent], now: datetime) -> None:
    hour = now.replace(minute=0, second=0, microsecond=0)
    with transaction.atomic():
        known = [Quota(host=one.host, account=one.account, seen_at=now) for one in told]
        Quota.objects.bulk_create(known, ignore_conflicts=True)
        rows = {(row.host, row.account): row.pk for row in Quota.objects.all()}
        places = [
            (rows[line.host, line.account], purpose, calls, line.unchanged.get(purpose, 0))
            for line in told
            for purpose, calls in line.calls.items()
        ]
        empty = [QuotaHour(quota_id=pk, hour=hour, purpose=purpose) for pk, purpose, *_ in places]
        QuotaHour.objects.bulk_create(empty, ignore_conflicts=True)
        for pk, purpose, calls, unchanged in places:
            QuotaHour.objects.filter(quota=pk, hour=hour, purpose=purpose).update(
                calls=F("calls") + calls, unchanged=F("unchanged") + unchanged
            )
        for line in told:
            _keep_standing(line, rows[line.host, line.account], now)


def _keep_standing(line: Spent, pk: int, now: datetime) -> None:
    """What was heard last of the quota, unless another process heard something newer."""
    row = Quota.objects.filter(pk=pk)
    if line.standing is not None:
        heard = line.standing
        row.filter(Q(limit=None) | Q(seen_at__lte=heard.seen_at)).update(
            limit=heard.limit,
            remaining=heard.remaining,
            reset_at=heard.reset_at,
            seen_at=heard.seen_at,
        )
    if line.blocked_until is not None:
        longer = Q(blocked_until=None) | Q(blocked_until__lt=line.blocked_until)
        row.filter(longer).update(blocked_until=line.blocked_until, seen_at=now)
