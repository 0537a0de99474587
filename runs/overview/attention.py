"""What stands under *Needs you*: until somebody has seen it, and what each person has hidden there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from django.contrib.auth.models import User
from django.db import InterfaceError, OperationalError, transaction

from runs.core.ports import Lab
from runs.core.states import NoticeKind
from runs.models import HiddenNeed, NoticeTimes, Run, WatchSession
from runs.notices import push_rules
from runs.overview import hiding_rules
from runs.overview.attention_rules import SEEN_FOR, Need, NeedKind
from runs.overview.hiding_rules import Choice, Hidden
from runs.timeline import announce


def opened(row: Run | WatchSession, now: datetime) -> None:
    """Note that somebody has opened the page of something that has ended; it leaves in a day."""
    if row.ended_at is None or row.seen_until is not None:
        return
    try:
        type(row).objects.filter(pk=row.pk, seen_until=None).update(seen_until=now + SEEN_FOR)
    except (OperationalError, InterfaceError):
        return  # a page that only reads is shown nevertheless; it stands there a little longer


def dismiss(lab: Lab, run: Run, by: str) -> None:
    """Take a run that has ended off everybody's list, as people do in lists of runs."""
    with transaction.atomic():
        rows = Run.objects.filter(pk=run.pk, ended_at__isnull=False)
        if rows.update(seen_until=lab.now()):
            text = "dismissed from what needs somebody"
            announce.tell(lab, NoticeKind.NEED_DISMISSED, text, by=by, run=run)


def hidden_of(user_id: int) -> tuple[Hidden, ...]:
    """What somebody has hidden, whether or not it is still in force. One query."""
    rows = HiddenNeed.objects.filter(user=user_id).order_by("need")
    return tuple(Hidden(*row) for row in rows.values_list("need", "facts", "until"))


def hide(
    lab: Lab, user: User, present: Sequence[Need], found: Sequence[Need], choice: Choice
) -> int:
    """Take some of what is there off this person's list; how many of them were on it.

    For everybody else what they dismissed counts as opened. What is there no more is forgotten.
    """
    now, by = lab.now(), user.get_username()
    at = hiding_rules.until(choice, now, _zone(user))
    rows = HiddenNeed.objects.filter(user=user)
    with transaction.atomic():
        known = {mark.need: mark for mark in hidden_of(user.pk)}
        wanted = [Hidden(need.id, need.facts, at) for need in found]
        fresh = [mark for mark in wanted if known.get(mark.need) != mark]
        HiddenNeed.objects.bulk_create(
            [HiddenNeed(user=user, need=one.need, facts=one.facts, until=at) for one in fresh],
            update_conflicts=True,
            unique_fields=["user", "need"],
            update_fields=["facts", "until"],
        )
        there = {need.id for need in present}
        if gone := [need for need in known if need not in there]:
            rows.filter(need__in=gone).delete()
        if choice is Choice.DISMISS:
            _opened(found, now)
        if fresh:
            announce.tell(lab, NoticeKind.NEED_DISMISSED, _told(found, fresh, at), by=by)
    return len(fresh)


def bring_back(lab: Lab, user: User, needs: Sequence[str]) -> int:
    """Put what this person has hidden back on their list, all of it where none is named."""
    rows = HiddenNeed.objects.filter(user=user)
    with transaction.atomic():
        count, _ = (rows.filter(need__in=needs) if needs else rows).delete()
        if count:
            text = f"brought back what needs somebody: {count}"
            announce.tell(lab, NoticeKind.NEED_DISMISSED, text, by=user.get_username())
    return count


def _opened(found: Sequence[Need], now: datetime) -> None:
    ended = [need for need in found if need.is_over]
    watches = {need.about[-1] for need in ended if need.kind is NeedKind.WATCH}
    runs = {need.about[-1] for need in ended if need.kind is not NeedKind.WATCH}
    for rows in (Run.objects.filter(pk__in=runs), WatchSession.objects.filter(pk__in=watches)):
        rows.filter(seen_until=None, ended_at__isnull=False).update(seen_until=now + SEEN_FOR)


def _told(found: Sequence[Need], fresh: Sequence[Hidden], at: datetime | None) -> str:
    names = {need.id: f"{need.title} {need.what}" for need in found}
    said = names[fresh[0].need] if len(fresh) == 1 else f"{len(fresh)} things"
    end = f"snoozed until {at:%d %b %H:%M} UTC" if at else "dismissed"
    return f"{end} from their own list of what needs them: {said}"


def _zone(user: User) -> ZoneInfo:
    times = NoticeTimes.objects.filter(user=user).values_list("zone", flat=True).first()
    return push_rules.zone_of(times or "UTC") or ZoneInfo("UTC")
