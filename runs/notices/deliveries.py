"""Tells people outside what the timeline tells, each thing once, and remembers how that went.

The timeline is the outbox: a cursor over it moves in the transaction that writes the deliveries.
A delivery belongs to one process while it is sent; when that process dies nobody knows whether
it arrived, and it is sent again, since a notice that never comes is worse than one that comes twice.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, Q, Subquery

from runs.core import lease
from runs.core.ports import DeviceGone, Lab, SeamError, UnfitAddress
from runs.core.states import OF_HOSTS, NoticeKind
from runs.models import Delivery, Notice, NoticeAddress, NoticeTimes, Outbox, Settings
from runs.notices import push_rules, pushes, rules
from runs.notices.rules import Delivering
from runs.timeline import announce
from runs.timeline import queries as timeline

logger = logging.getLogger(__name__)

AT_ONCE = 500
LATELY = 50
WEEK = timedelta(days=7)
LONGEST_SEND = timedelta(minutes=2)
DRAIN_SECONDS = 15.0
STEP_SECONDS = 0.1


def post(lab: Lab) -> bool:
    """Write down what is to be sent, and ask once for everything that is due; whether it did."""
    addresses = list(NoticeAddress.objects.filter(user__is_active=True).select_related("user"))
    if not addresses:
        return False
    while _collect(lab, addresses):
        pass
    for address in addresses:
        _test_weekly(lab, address)
    _take_back(lab)
    first = _next(lab)
    if first is not None:
        lab.queue.deliver(first)
    return first is not None


def has_work(now: datetime) -> Q:
    """Whether `post` would find something to do, as a condition of any query.

    An entry that became visible late, with a lower id than the last one, is left to the next.
    """
    addresses = NoticeAddress.objects.filter(user__is_active=True)
    told = Outbox.objects.filter(pk=1)
    unread = Q(Exists(Notice.objects.filter(pk__gt=Subquery(told.values("last_notice")[:1]))))
    open_rows = Delivery.objects.filter(
        Q(state=Delivering.SENDING) | Q(state=Delivering.WAITING, next_at__lte=now)
    )
    tests = addresses.filter(tests_weekly=True).filter(
        Q(tested_at__lte=now - WEEK) | Q(tested_at=None, created_at__lte=now - WEEK)
    )
    has_news = ~Q(Exists(told)) | unread
    return Q(Exists(addresses)) & (has_news | Q(Exists(open_rows)) | Q(Exists(tests)))


def drain(lab: Lab, first: int) -> None:
    """Send one delivery and then whatever else is due, for a bounded time; the rest is asked again.

    One after another, so that a service that hangs holds up no more than one worker; what was
    tried least goes first, so that it does not hold up the others for long either.
    """
    began = lab.steady().seconds
    due: int | None = first
    while due is not None and lab.steady().seconds - began < DRAIN_SECONDS:
        carry_out(lab, due)
        due = _next(lab)


def _next(lab: Lab) -> int | None:
    due = Delivery.objects.filter(
        state=Delivering.WAITING, next_at__lte=lab.now(), address__user__is_active=True
    )
    return due.order_by("tries", "next_at", "pk").values_list("pk", flat=True).first()


def carry_out(lab: Lab, delivery_id: int) -> None:
    """Send one delivery that is due and write down how it went. Safe to call twice."""
    due = Delivery.objects.filter(pk=delivery_id, state=Delivering.WAITING, next_at__lte=lab.now())
    row = due.select_related("address", "notice").first()
    if row is None or _is_held(lab, row):
        return
    others = _others(lab, row)
    if others is None:
        return
    until = lab.now() + LONGEST_SEND
    taken = {"state": Delivering.SENDING, "sender": lab.process, "next_at": until}
    if not due.filter(tries=row.tries).update(**taken, tries=row.tries + 1):
        return
    also = [one for one in others if _joins(one, row, taken)]
    error, is_final = "", False
    try:
        if row.address.is_device:
            titles = [one.title for one in (row, *also)] if also else ()
            pushes.send(lab, row, titles)
        else:
            lab.notifier.send(row.address.url, row.title, row.text)
    except DeviceGone:
        pushes.forget(lab, row.address)
        return
    except SeamError as failed:
        error, is_final = str(failed), isinstance(failed, UnfitAddress)
    for one in (row, *also):
        _settle(lab, one, one.tries + 1, error, is_final)


def _joins(one: Delivery, row: Delivery, taken: Mapping[str, object]) -> bool:
    """Have it go out in the same push; not one that somebody else sends meanwhile."""
    mine = Delivery.objects.filter(pk=one.pk, state=Delivering.WAITING, tries=one.tries)
    if won := bool(mine.update(**taken, tries=one.tries + 1, bundle=row)):
        one.bundle = row
    return won


def _is_held(lab: Lab, row: Delivery) -> bool:
    """Whether it is not sent now: put off to the end of quiet hours, or seen by the person already."""
    if row.is_trial:
        return False  # a test that somebody waits for
    waiting = Delivery.objects.filter(pk=row.pk, state=Delivering.WAITING, tries=row.tries)
    if row.address.is_device and pushes.is_looking(lab, row):
        waiting.update(state=Delivering.SKIPPED, seen_at=lab.now(), error="")
        return True
    if row.notice_id is not None and row.address.after_minutes and _was_seen(row):
        waiting.update(state=Delivering.SKIPPED, error="")
        return True
    times = NoticeTimes.objects.filter(user=row.address.user_id).first()
    if times is None:
        return False
    until = push_rules.quiet_until(lab.now(), times.quiet_from, times.quiet_to, times.zone)
    return until is not None and bool(waiting.update(next_at=until))


def _was_seen(row: Delivery) -> bool:
    """Whether the person saw the same notice at any of their addresses, or on its page."""
    rows = Delivery.objects.filter(notice=row.notice_id, address__user=row.address.user_id)
    return rows.filter(seen_at__isnull=False).exists()


def _others(lab: Lab, row: Delivery) -> Sequence[Delivery] | None:
    """What goes out in the same push; None when none may go out at this minute."""
    if not row.address.is_device or row.notice_id is None:
        return ()
    now = lab.now()
    pushed = Delivery.objects.filter(address=row.address_id, bundle=None, notice__isnull=False)
    sent = pushed.filter(sent_at__gt=now - push_rules.MINUTE).values_list("sent_at", flat=True)
    rows = Delivery.objects.filter(address=row.address_id, state=Delivering.WAITING)
    waiting = rows.filter(next_at__lte=now, notice__isnull=False).order_by("created_at", "pk")
    due = list(waiting.select_related("address", "notice"))
    pace = push_rules.pace(now, len(due), [at for at in sent if at is not None])
    if pace.until is not None:
        rows.filter(pk__in=[one.pk for one in due]).update(next_at=pace.until)
        return None
    others = [one for one in due if one.pk != row.pk] if pace.others else ()
    return [one for one in others if not _is_held(lab, one)]


def try_out(lab: Lab, address: NoticeAddress) -> Delivery:
    """Send a test to an address."""
    row = _test_of(lab, address, "Notices of labsite reach this address.", False)
    lab.queue.deliver(row.pk)
    return row


def _test_weekly(lab: Lab, address: NoticeAddress) -> None:
    """Send the test of this week to an address that wants one; its failure is told."""
    now, before = lab.now(), address.tested_at
    if not address.tests_weekly or now < (before or address.created_at) + WEEK:
        return
    with transaction.atomic():
        mine = NoticeAddress.objects.filter(pk=address.pk, tested_at=before)
        if mine.update(tested_at=now):
            _test_of(lab, address, "The weekly test: notices of labsite reach this address.", True)


def _test_of(lab: Lab, address: NoticeAddress, text: str, is_self_test: bool) -> Delivery:
    words = rules.letter("", "", text, link(""))
    return Delivery.objects.create(
        address=address,
        title=words.title,
        text=words.text,
        created_at=lab.now(),
        next_at=lab.now(),
        is_self_test=is_self_test,
    )


def wait(lab: Lab, row: Delivery, seconds: float = 8.0) -> Delivery:
    """The delivery once its first try is over, or time is up."""
    for _ in range(int(seconds / STEP_SECONDS)):
        row.refresh_from_db()
        if not row.is_open or row.error:
            break
        lab.pause(STEP_SECONDS)
    return row


def lately() -> list[tuple[object, ...]]:
    """How the newest deliveries stand: it changes with each of them. One query."""
    shown = ("pk", "state", "tries", "error", "delivered_at", "seen_at", "acted_at")
    return list(Delivery.objects.values_list(*shown)[:LATELY])


def _collect(lab: Lab, addresses: Sequence[NoticeAddress]) -> bool:
    """Turn the next stretch of the timeline into deliveries; True when there may be more."""
    with transaction.atomic():
        outbox = Outbox.objects.select_for_update().get_or_create(pk=1)[0]
        stretch = timeline.read(outbox.last_notice, AT_ONCE)
        if not stretch.entries:
            return False
        for notice in stretch.entries:
            for address in addresses:
                _write(lab, notice, address)
        Outbox.objects.filter(pk=1).update(last_notice=stretch.entries[-1].pk)
    return len(stretch.entries) == AT_ONCE


def _write(lab: Lab, notice: Notice, address: NoticeAddress) -> None:
    topic = rules.topic_of(notice.kind, notice.outcome)
    if not rules.is_wanted(topic, address.topics, address.created_at, notice.at):
        return
    place = notice.project.name if notice.project else ""
    if notice.issue_key:
        place = f"{place} #{notice.issue_key}"
    run = str(notice.run_id or "")
    same = rules.sameness(notice.kind, notice.outcome, f"{place} {run}", notice.text)
    lately = Delivery.objects.filter(
        address=address, sameness=same, created_at__gt=notice.at - rules.SAME
    )
    if lately.exists():
        return
    words = rules.letter(place, topic, notice.text, link(_path(notice)))
    facts = {
        "title": words.title,
        "text": words.text,
        "sameness": same,
        "created_at": notice.at,
        "next_at": lab.now() + timedelta(minutes=address.after_minutes),
    }
    Delivery.objects.get_or_create(address=address, notice=notice, defaults=facts)


def _path(notice: Notice) -> str:
    if notice.run_id:
        return f"runs/{notice.run_id}/"
    if notice.watch_id:
        return f"projects/{notice.project_id}/watch/{notice.watch_id}/"
    if notice.group_id:
        return f"projects/{notice.project_id}/groups/{notice.group_id}/"
    if notice.kind in OF_HOSTS:
        return "hosts/"
    return f"projects/{notice.project_id}/" if notice.project_id else ""


def link(path: str) -> str:
    """Where to look, when it is known under which address people reach labsite."""
    base = Settings.current().public_address
    return f"{base.rstrip('/')}/{path}" if base else ""


def _take_back(lab: Lab) -> None:
    """What a process was sending that is dead, or takes too long, waits again."""
    for row in Delivery.objects.filter(state=Delivering.SENDING):
        if not lease.is_gone(lab, row.sender) and lab.now() < row.next_at:
            continue
        _settle(
            lab, row, row.tries, "labsite was interrupted while it sent this", False, row.sender
        )


def _settle(
    lab: Lab, row: Delivery, tries: int, error: str, is_final: bool, sender: str = ""
) -> None:
    """Write down how one try went, if it is still this try's to say."""
    mine = Delivery.objects.filter(
        pk=row.pk, state=Delivering.SENDING, sender=sender or lab.process, tries=tries
    )
    if not error:
        mine.update(state=Delivering.SENT, sent_at=lab.now(), sender="", error="")
        return
    rest = rules.pause(tries, is_final)
    if row.is_trial:
        rest = None  # somebody looks at a test, and tries again when they want to
    if rest is not None:
        again = {"state": Delivering.WAITING, "next_at": lab.now() + rest, "bundle": None}
        mine.update(**again, sender="", error=error)
        return
    with transaction.atomic():
        # Of several in one push it is told once, by the one that led them.
        is_told = not row.is_trial and row.bundle_id is None
        if mine.update(state=Delivering.FAILED, sender="", error=error) and is_told:
            what = (
                "the digest" if row.page else "the weekly test" if row.is_self_test else "a notice"
            )
            text = f"{what} could not be sent to {row.address.name}: {error}"
            announce.tell(lab, NoticeKind.DELIVERY_FAILED, text)
    logger.warning("notice was not sent", extra={"delivery": row.pk, "error": error})
