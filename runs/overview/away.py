"""Notes who is here, and gathers what ended while somebody was not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.db.models import Case, Count, F, Q, QuerySet, Sum, When
from django.db.models.functions import Coalesce

from runs.core.states import NoticeKind
from runs.groups import endings as group_endings
from runs.groups.endings import GroupEnds
from runs.models import Notice, Run, WatchSession
from runs.overview import attention_rules, away_rules
from runs.overview.away_rules import Ended, Summary
from runs.overview.models import Visit
from runs.watch import rules as watch_rules

SHOWN = 8
SHOWN_PAUSES = 5
SECRET = ("project__token", "project__hook_secret")
# Few are shown of many, and a person who comes back looks for these.
_BAD_FIRST = Case(When(outcome__in=attention_rules.BAD, then=0), default=1)
_TOLD = Q(tokens_in__isnull=False) | Q(tokens_out__isnull=False)


@dataclass(frozen=True, slots=True)
class Away:
    """What ended between two visits: the numbers, some runs, what paused, failed, and groups."""

    since: datetime
    until: datetime
    summary: Summary
    runs: Sequence[Run]
    pauses: Sequence[Notice]
    watches: Sequence[WatchSession]
    groups: GroupEnds

    @property
    def is_empty(self) -> bool:
        return not (self.summary.runs or self.pauses or self.watches or self.groups)

    @property
    def more(self) -> int:
        return self.summary.runs - len(self.runs)


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
    """What ended in that time, what went badly first. Seven queries, each by its own index."""
    begin = away_rules.begin(since, until)
    ended = Run.objects.exclude(outcome="").filter(ended_at__gt=begin, ended_at__lte=until)
    ended = ended.filter(started_at__isnull=False)
    some = ended.light().select_related("project").defer(*SECRET)
    told = (NoticeKind.AUTO_PAUSED, NoticeKind.AGENT_HELD)
    pauses = Notice.objects.filter(kind__in=told, at__gt=begin, at__lte=until)
    failed = WatchSession.objects.filter(
        ended_at__gt=begin, ended_at__lte=until, code__in=watch_rules.FAILED
    )
    return Away(
        since,
        until,
        away_rules.summary(_sums(ended)),
        list(some.order_by(_BAD_FIRST, "-ended_at", "-id")[:SHOWN]),
        list(pauses.select_related("project").order_by("-at")[:SHOWN_PAUSES]),
        list(failed.select_related("project").defer(*SECRET).order_by("-ended_at")[:SHOWN_PAUSES]),
        group_endings.between(begin, until),
    )


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
