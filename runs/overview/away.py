"""Notes who is here, and gathers what ended while somebody was not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.db.models import Count, F, Q, QuerySet, Sum
from django.db.models.functions import Coalesce

from runs.groups import endings as group_endings
from runs.models import Run
from runs.overview import away_rules, outages
from runs.overview.away_rules import Ended, Summary
from runs.overview.models import Visit
from runs.overview.outage_rules import Outage

_TOLD = Q(tokens_in__isnull=False) | Q(tokens_out__isnull=False)


@dataclass(frozen=True, slots=True)
class Away:
    """What ended between two visits, in numbers: runs, and task groups in each way; and outages.

    What of it needs somebody stands in the list of what does.
    """

    since: datetime
    until: datetime
    summary: Summary
    groups: Sequence[tuple[str, int]]
    outages: Sequence[Outage] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.summary.runs or self.groups or self.outages)

    @property
    def groups_total(self) -> int:
        return sum(number for _, number in self.groups)


def note(user: User, now: datetime) -> bool:
    """Note that somebody is here, and answer whether there is something to tell them.

    That begins with a visit, if something ended before it. What they did not put away of an
    earlier visit stays until something newer takes its place.
    """
    visit, is_first = Visit.objects.get_or_create(user=user, defaults={"seen_at": now})
    if is_first:
        return False
    noted = {"seen_at": now}
    if away_rules.was_away(visit.seen_at, now) and not away(visit.seen_at, now).is_empty:
        noted |= {"away_since": visit.seen_at, "away_until": now}
    # Of two requests that come back at once, one begins the visit, and both know of it.
    if Visit.objects.filter(pk=visit.pk, seen_at=visit.seen_at).update(**noted):
        return "away_until" in noted or visit.away_until is not None
    return Visit.objects.filter(pk=visit.pk, away_until__isnull=False).exists()


def untold(user: User) -> Away | None:
    """What this person was not here for, until they put it away; None for nothing."""
    visit = Visit.objects.filter(user=user, away_until__isnull=False).first()
    if visit is None or visit.away_since is None or visit.away_until is None:
        return None
    return away(visit.away_since, visit.away_until)


def put_away(user: User, until: str) -> bool:
    """Not shown again, on any device; False when there is something newer than what was shown."""
    visit = Visit.objects.filter(user=user, away_until__isnull=False).first()
    if visit is None or visit.away_until is None:
        return True
    if until and visit.away_until.isoformat() != until:
        return False
    rows = Visit.objects.filter(pk=visit.pk, away_until=visit.away_until)
    return bool(rows.update(away_since=None, away_until=None))


def away(since: datetime, until: datetime) -> Away:
    """What ended in that time. Three queries, each by its own index; one more after an outage."""
    begin = away_rules.begin(since, until)
    ended = Run.objects.exclude(outcome="").filter(ended_at__gt=begin, ended_at__lte=until)
    ended = ended.filter(started_at__isnull=False)
    groups = group_endings.between(begin, until)
    told = outages.between(begin, until)
    return Away(since, until, away_rules.summary(_sums(ended)), groups, told)


def _sums(ended: QuerySet[Run]) -> list[Ended]:
    rows = (
        ended.order_by()
        .values("outcome")
        .annotate(
            runs=Count("pk"),
            pulls=Count("pk", filter=Q(pull_number__isnull=False)),
            priced=Count("cost_usd"),
            cost=Sum("cost_usd"),
            tokens=Sum(Coalesce(F("tokens_in"), 0) + Coalesce(F("tokens_out"), 0), filter=_TOLD),
        )
    )
    return [Ended(**row) for row in rows]
