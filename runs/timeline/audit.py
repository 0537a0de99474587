"""Who did what, when: the timeline's entries that carry a person's name, narrowed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from django.db.models import Q, QuerySet

from runs.models import Notice


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which acts are looked for; what is empty narrows nothing. Days are whole ones, in UTC."""

    by: str = ""
    kind: str = ""
    project: int | None = None
    since: date | None = None
    until: date | None = None
    text: str = ""
    before: int | None = None


def acts(wanted: Wanted, limit: int) -> list[Notice]:
    """At most `limit` acts, newest first, each with its project; `before` is the last one seen."""
    rows = Notice.objects.exclude(by="").select_related("project")
    rows = rows.filter(_narrowed(wanted)).defer("project__token")
    if wanted.before is not None:
        rows = _before(rows, wanted.before)
    return list(rows.order_by("-at", "-id")[:limit])


def _narrowed(wanted: Wanted) -> Q:
    found = Q()
    if wanted.by:
        found &= Q(by=wanted.by)
    if wanted.kind:
        found &= Q(kind=wanted.kind)
    if wanted.project is not None:
        found &= Q(project_id=wanted.project)
    if wanted.since is not None:
        found &= Q(at__gte=_start(wanted.since))
    if wanted.until is not None and wanted.until < date.max:
        found &= Q(at__lt=_start(wanted.until + timedelta(days=1)))
    if wanted.text:
        found &= Q(text__icontains=wanted.text) | Q(issue_key=wanted.text.removeprefix("#"))
    return found


def _before(rows: QuerySet[Notice], last: int) -> QuerySet[Notice]:
    """What comes after an act in the list. One that was removed meanwhile counts by its id."""
    at = Notice.objects.filter(pk=last).values_list("at", flat=True).first()
    if at is None:
        return rows.filter(pk__lt=last)
    return rows.filter(at__lte=at).filter(Q(at__lt=at) | Q(pk__lt=last))


def _start(day: date) -> datetime:
    return datetime.combine(day, time.min, UTC)
