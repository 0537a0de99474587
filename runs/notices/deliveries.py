"""Tells people outside what the timeline tells, each thing once, and remembers how that went.

The timeline is the outbox: a cursor over it moves in the transaction that writes the deliveries.
A delivery belongs to one process while it is sent; when that process dies nobody knows whether
it arrived, and it is sent again, since a notice that never comes is worse than one that comes twice.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction

from runs.core.ports import Lab, SeamError, UnfitAddress
from runs.core.states import NoticeKind
from runs.models import Delivery, Notice, NoticeAddress, Outbox, Settings
from runs.notices import rules
from runs.notices.rules import Delivering
from runs.timeline import announce
from runs.timeline import queries as timeline

logger = logging.getLogger(__name__)

AT_ONCE = 500
KEPT = timedelta(days=30)
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
    _take_back(lab)
    first = _next(lab)
    if first is not None:
        lab.queue.deliver(first)
    return first is not None


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
    row = due.select_related("address").first()
    if row is None:
        return
    until = lab.now() + LONGEST_SEND
    if not due.filter(tries=row.tries).update(
        state=Delivering.SENDING, sender=lab.process, next_at=until, tries=row.tries + 1
    ):
        return
    error, is_final = "", False
    try:
        lab.notifier.send(row.address.url, row.title, row.text)
    except SeamError as failed:
        error, is_final = str(failed), isinstance(failed, UnfitAddress)
    _settle(lab, row, row.tries + 1, error, is_final)


def try_out(lab: Lab, address: NoticeAddress) -> Delivery:
    """Send a test to an address."""
    words = rules.letter("", "", "Notices of labsite reach this address.", _link(""))
    row = Delivery.objects.create(
        address=address,
        title=words.title,
        text=words.text,
        created_at=lab.now(),
        next_at=lab.now(),
    )
    lab.queue.deliver(row.pk)
    return row


def wait(lab: Lab, row: Delivery, seconds: float = 8.0) -> Delivery:
    """The delivery once its first try is over, or time is up."""
    for _ in range(int(seconds / STEP_SECONDS)):
        row.refresh_from_db()
        if not row.is_open or row.error:
            break
        lab.pause(STEP_SECONDS)
    return row


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
        Delivery.objects.filter(created_at__lt=lab.now() - KEPT).delete()
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
    words = rules.letter(place, topic, notice.text, _link(_path(notice)))
    facts = {
        "title": words.title,
        "text": words.text,
        "sameness": same,
        "created_at": notice.at,
        "next_at": lab.now(),
    }
    Delivery.objects.get_or_create(address=address, notice=notice, defaults=facts)


def _path(notice: Notice) -> str:
    if notice.run_id:
        return f"runs/{notice.run_id}/"
    if notice.watch_id:
        return f"projects/{notice.project_id}/watch/{notice.watch_id}/"
    if notice.group_id:
        return f"projects/{notice.project_id}/groups/{notice.group_id}/"
    return f"projects/{notice.project_id}/" if notice.project_id else ""


def _link(path: str) -> str:
    """Where to look, when it is known under which address people reach labsite."""
    base = Settings.current().public_address
    return f"{base.rstrip('/')}/{path}" if base else ""


def _take_back(lab: Lab) -> None:
    """What a process was sending that is dead, or takes too long, waits again."""
    for row in Delivery.objects.filter(state=Delivering.SENDING):
        if lab.is_process_alive(row.sender) is not False and lab.now() < row.next_at:
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
    if row.notice_id is None:
        rest = None  # somebody looks at a test, and tries again when they want to
    if rest is not None:
        mine.update(state=Delivering.WAITING, next_at=lab.now() + rest, sender="", error=error)
        return
    with transaction.atomic():
        if mine.update(state=Delivering.FAILED, sender="", error=error) and row.notice_id:
            text = f"a notice could not be sent to {row.address.name}: {error}"
            announce.tell(lab, NoticeKind.DELIVERY_FAILED, text)
    logger.warning("notice was not sent", extra={"delivery": row.pk, "error": error})
