"""The quota ledger in the database: what this process asked of forges is added to it in one go."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db import DatabaseError, transaction
from django.db.models import F, Q, Sum

from runs.core.ports import Lab
from runs.forges import cadence_rules
from runs.models import Asked, Project, Quota, QuotaHour

if TYPE_CHECKING:
    from trackers.http.quota import Spent

logger = logging.getLogger(__name__)

KEPT = timedelta(days=30)
COUNTED_IN = timedelta(minutes=10)
COUNTED_FOR = timedelta(hours=1)


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
    Asked.objects.filter(at__lt=lab.now() - COUNTED_FOR - COUNTED_IN).delete()


def polls_of_last_hour(now: datetime) -> Mapping[tuple[int, str], int]:
    """How often each account asked about each repository lately without anybody waiting for it.

    Keys are the account's row and the repository in lower case. Counted in parts of ten minutes.
    """
    rows = Asked.objects.filter(at__gt=now - COUNTED_FOR, at__lte=now).order_by()
    summed = rows.values_list("quota", "repository").annotate(all=Sum("calls"))
    return {(quota, repository): calls for quota, repository, calls in summed}


def over_budget(lab: Lab, projects: Iterable[Project]) -> frozenset[int]:
    """Those of the projects whose repository was asked about as often as it may be in an hour.

    Two queries, and none without such projects.
    """
    named = {one.pk: lab.forges.account_of(one.tracker_root) for one in projects if one.forge_id}
    if not named:
        return frozenset()
    accounts = {(one.host, one.account): one.pk for one in Quota.objects.all()}
    polls = polls_of_last_hour(lab.now())
    return frozenset(
        one.pk
        for one in projects
        if (account := named.get(one.pk)) is not None
        and polls.get((accounts.get((account.host, account.id), 0), repository_of(one)), 0)
        >= cadence_rules.BUDGET
    )


def repository_of(project: Project) -> str:
    """The repository of a project on a forge, as it is counted."""
    return str(project.tracker_root).partition("/")[2].lower()


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
        _store_polls(told, rows, now)
        for line in told:
            _keep_standing(line, rows[line.host, line.account], now)


def _store_polls(told: Sequence[Spent], rows: Mapping[tuple[str, str], int], now: datetime) -> None:
    at = now.replace(minute=now.minute // 10 * 10, second=0, microsecond=0)
    polls = {
        (rows[line.host, line.account], repository[:300]): calls
        for line in told
        for repository, calls in line.polls.items()
    }
    empty = [Asked(quota_id=pk, repository=name, at=at) for pk, name in polls]
    Asked.objects.bulk_create(empty, ignore_conflicts=True)
    for (pk, name), calls in polls.items():
        rows_of = Asked.objects.filter(quota=pk, repository=name, at=at)
        rows_of.update(calls=F("calls") + calls)


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
