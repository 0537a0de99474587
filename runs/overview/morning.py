"""The morning digest: what was done in a day, what waits, and what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db.models import Case, When

from runs.core.ports import Lab
from runs.models import Run
from runs.notices import digest_rules, digests
from runs.notices.digest_rules import Told
from runs.overview import attention_rules, away

SHOWN = 8
SECRET = ("project__token", "project__hook_secret")
# Few are shown of many, and a person who comes back looks for these.
_BAD_FIRST = Case(When(outcome__in=attention_rules.BAD, then=0), default=1)


def send_due(lab: Lab) -> int:
    """Write the notices of all digests that are due; how many. Safe in several workers at once."""
    sent = 0
    for times, day in digests.due(lab):
        at = times.digest_at or digest_rules.HOUR
        since, until = digest_rules.span(day, at, digests.zone_of(times))
        sent += digests.write(lab, times, day, digest_rules.words(told(since, until)))
    return sent


def ended(since: datetime, until: datetime) -> Sequence[Run]:
    """Some of the runs that ended in that time, what went badly first. One query."""
    rows = Run.objects.exclude(outcome="").filter(
        ended_at__gt=since, ended_at__lte=until, started_at__isnull=False
    )
    some = rows.light().select_related("project").defer(*SECRET)
    return list(some.order_by(_BAD_FIRST, "-ended_at", "-id")[:SHOWN])


def told(since: datetime, until: datetime) -> Told:
    """The numbers of that time, and how many agents wait now."""
    found = away.away(since, until)
    return Told(
        [(outcome.words, count) for outcome, count in found.summary.counts],
        found.groups_total,
        Run.objects.active().exclude(waits="").count(),
        found.summary.cost,
        found.summary.tokens_words if found.summary.tokens is not None else "",
    )
