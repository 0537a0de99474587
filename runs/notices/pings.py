"""Tells a watcher outside after each healthy tick, so that somebody notices when no tick comes."""

from __future__ import annotations

from django.db import transaction

from runs.core.ports import Lab, SeamError
from runs.core.states import NoticeKind
from runs.models import Outbox, Settings
from runs.notices import rules
from runs.timeline import announce


def after_tick(lab: Lab, settings: Settings, is_healthy: bool) -> None:
    """Ask for a ping if one is due; costs one query, and none when no address is set.

    After a tick with errors only a watcher that hears of failures is told.
    """
    if not settings.ping_url or not (is_healthy or settings.ping_failures):
        return
    before = Outbox.objects.get_or_create(pk=1)[0]
    now = lab.now()
    if not rules.may_ping(now, before.pinged_at, before.was_healthy, is_healthy):
        return
    same = Outbox.objects.filter(pk=1, pinged_at=before.pinged_at, was_healthy=before.was_healthy)
    if same.update(pinged_at=now, was_healthy=is_healthy):
        transaction.on_commit(lambda: lab.queue.ping(is_healthy), robust=True)


def carry_out(lab: Lab, is_healthy: bool) -> None:
    """Ping now. The first failure of a row of them is told, and so is the end of it."""
    settings = Settings.current()
    if not settings.ping_url:
        return
    url = settings.ping_url if is_healthy else f"{settings.ping_url.rstrip('/')}/fail"
    error = ""
    try:
        lab.notifier.ping(url)
    except SeamError as failed:
        error = str(failed)[:400] or "no reason given"
    with transaction.atomic():
        if not error:
            if Outbox.objects.filter(pk=1).exclude(ping_error="").update(ping_error=""):
                text = "the watcher outside can be reached again"
                announce.tell(lab, NoticeKind.SETTING_CHANGED, text)
        elif Outbox.objects.filter(pk=1, ping_error="").update(ping_error=error):
            text = f"the watcher outside could not be told that labsite is well: {error}"
            announce.tell(lab, NoticeKind.DELIVERY_FAILED, text)
