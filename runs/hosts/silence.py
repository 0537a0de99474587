"""Tells people that a host with runs fell silent, once a silence, and that it is back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction
from django.db.models import (
    DurationField,
    Exists,
    ExpressionWrapper,
    F,
    OuterRef,
    Q,
    Subquery,
    Value,
)
from django.db.models.functions import Now

from runs.core.ports import Lab
from runs.core.states import NoticeKind
from runs.hosts import facts, rules
from runs.hosts.rules import HostState, News
from runs.models import Host, Run, Settings
from runs.timeline import announce

MOST_NAMED = 3


def tell(lab: Lab) -> None:
    """Tell what is new of hosts, each thing by one worker alone. A host that asks is not silent."""
    settings = Settings.current()
    for host in Host.objects.with_silence().filter(removed_at=None):
        state = facts.state_of(host, settings)
        if host.name == lab.host and state is HostState.UNKNOWN:
            continue
        runs = _active_on(host.name)
        match rules.news(state, len(runs), was_told=host.silent_since is not None):
            case News.SILENT:
                _tell_silent(lab, host, runs)
            case News.BACK:
                _tell_back(lab, host, runs)


def has_news(host: str) -> Q:
    """Whether `tell` would find something, as a condition of any query; for PostgreSQL only."""
    interval = Settings.objects.filter(pk=1).values("tick_seconds")[:1]
    limit = ExpressionWrapper(
        Subquery(interval) * Value(timedelta(seconds=rules.SILENT_INTERVALS)), DurationField()
    )
    there = Host.objects.filter(removed_at=None)
    at_work = Exists(Run.objects.active().filter(host=OuterRef("name")))
    silent = there.filter(at_work, silent_since=None, seen_at__lt=Now() - limit).exclude(name=host)
    back = there.filter(silent_since__isnull=False, seen_at__gte=Now() - limit)
    return Q(Exists(silent)) | Q(Exists(back))


def _active_on(name: str) -> Sequence[Run]:
    rows = Run.objects.active().filter(host=name)
    return list(rows.select_related("project").order_by("pk"))


def _tell_silent(lab: Lab, host: Host, runs: Sequence[Run]) -> None:
    if host.seen_at is None:
        return
    named = ", ".join(f"{run.project.name} #{run.issue_key}" for run in runs[:MOST_NAMED])
    more = " and more" if len(runs) > MOST_NAMED else ""
    there = "a run is" if len(runs) == 1 else f"{len(runs)} runs are"
    text = (
        f"host {host.name} gives no sign of life since {host.seen_at:%-d %b, %H:%M:%S} UTC, and "
        f"{there} there ({named}{more}). Nothing was ended and nothing is taken over: wait until the "
        "machine is back, or give its runs up on Hosts."
    )
    with transaction.atomic():
        # Not one that another worker told of, or that was heard meanwhile.
        rows = Host.objects.filter(pk=host.pk, silent_since=None, seen_at=host.seen_at)
        if rows.update(silent_since=F("seen_at")):
            announce.tell(lab, NoticeKind.HOST_SILENT, text)


def _tell_back(lab: Lab, host: Host, runs: Sequence[Run]) -> None:
    if host.seen_at is None or host.silent_since is None:
        return
    minutes = max(1, round((host.seen_at - host.silent_since).total_seconds() / 60))
    with transaction.atomic():
        rows = Host.objects.filter(pk=host.pk, silent_since=host.silent_since)
        if rows.update(silent_since=None):
            there = ", and what runs there goes on" if runs else "; nothing runs there any more"
            text = f"host {host.name} is back after {minutes} min{there}"
            announce.tell(lab, NoticeKind.HOST_BACK, text)
