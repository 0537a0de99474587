"""Who wants a digest now, and its one notice: the day is noted in the transaction that writes it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from zoneinfo import ZoneInfo

from django.db import transaction
from django.db.models import Q
from django.urls import reverse

from runs.core.ports import Lab
from runs.models import Delivery, NoticeAddress, NoticeTimes
from runs.notices import deliveries, digest_rules, push_rules, rules


def zone_of(times: NoticeTimes | None) -> ZoneInfo:
    """The zone by which somebody's day begins."""
    return (push_rules.zone_of(times.zone) if times else None) or ZoneInfo("UTC")


def due(lab: Lab) -> Sequence[tuple[NoticeTimes, date]]:
    """Those whose digest is to be sent now, with its day."""
    rows = NoticeTimes.objects.filter(digest_at__isnull=False, user__is_active=True)
    found = []
    for times in rows.select_related("user"):
        day = digest_rules.due(lab.now(), times.digest_at, zone_of(times), times.digested_on)
        if day is not None:
            found.append((times, day))
    return found


def write(lab: Lab, times: NoticeTimes, day: date, text: str) -> bool:
    """Write the notice of a day's digest down for each of a person's addresses, once whoever asks.

    False when it was written already. One that is only told what was not seen elsewhere is left out.
    """
    page = reverse("runs:digest", args=[day.isoformat()])
    earlier = Q(digested_on=None) | Q(digested_on__lt=day)
    with transaction.atomic():
        if not NoticeTimes.objects.filter(earlier, pk=times.pk).update(digested_on=day):
            return False
        words = rules.letter("", "", text, deliveries.link(page.removeprefix("/")))
        now = lab.now()
        for address in NoticeAddress.objects.filter(user=times.user_id, after_minutes=0):
            Delivery.objects.create(
                address=address,
                title=f"labsite: the digest of {day:%A}",
                text=words.text,
                page=page,
                created_at=now,
                next_at=now,
            )
    return True
