"""Removes what was sent to the outside long ago; the timeline keeps what it told of."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction

from runs.core.ports import Lab
from runs.models import Delivery, Settings
from runs.notices.rules import Delivering

AT_ONCE = 200
STEPS = 10
PAUSE_SECONDS = 0.02


def tend(lab: Lab) -> int:
    """Remove deliveries that are over and older than the setting says, a few at a time; how many.

    The oldest come first, so one look at those tells whether there is anything to do. What is still
    open is passed over: of a person who was deactivated it waits for good.
    """
    before = lab.now() - timedelta(days=Settings.current().delivery_days)
    gone = 0
    for _ in range(STEPS):
        ended = Delivery.objects.exclude(state__in=(Delivering.WAITING, Delivering.SENDING))
        oldest = ended.order_by("pk").only("pk", "created_at")[:AT_ONCE]
        over = [one.pk for one in oldest if one.created_at < before]
        if not over:
            break
        with transaction.atomic():
            Delivery.objects.filter(pk__in=over).delete()
        gone += len(over)
        lab.pause(PAUSE_SECONDS)
    return gone
