"""The page of a morning digest, one for each day."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_GET

from runs import wiring
from runs.models import NoticeTimes
from runs.notices import digest_rules, digests
from runs.overview import attention, away, morning, queries
from runs.overview.digest import Needs
from runs.web import live
from runs.web.access import look, me
from runs.web.live import Live


@require_GET
@look
def today(request: HttpRequest) -> HttpResponse:
    """To the digest that ended last."""
    times = NoticeTimes.objects.filter(user=me(request)).first()
    at = (times and times.digest_at) or digest_rules.HOUR
    day = digest_rules.passed(wiring.lab().now(), at, digests.zone_of(times))
    return HttpResponseRedirect(reverse("runs:digest", args=[day.isoformat()]))


@require_GET
@look
def digest(request: HttpRequest, day: str) -> HttpResponse:
    """What was done until the hour of a day, what waits now, and what it cost."""
    lab = wiring.lab()
    try:
        wanted = date.fromisoformat(day)
    except ValueError as error:
        raise Http404 from error
    times = NoticeTimes.objects.filter(user=me(request)).first()
    at, zone = (times and times.digest_at) or digest_rules.HOUR, digests.zone_of(times)
    last = digest_rules.passed(lab.now(), at, zone)
    if not date(2000, 1, 2) <= wanted <= last:
        raise Http404
    since, until = digest_rules.span(wanted, at, zone)
    done = away.away(since, until)
    shown = morning.ended(since, until)
    found = queries.needs(lab, attention.hidden_of(me(request).pk))
    is_quiet = done.is_empty and not (wanted == last and found.needs.total)
    facts: dict[str, Any] = {
        "day": wanted,
        "away": done,
        "runs": shown,
        "more": done.summary.runs - len(shown),
        "needs": found.needs if wanted == last else None,
        "is_quiet": is_quiet,
        "before": wanted - digest_rules.DAY,
        "after": wanted + digest_rules.DAY if wanted < last else None,
        "is_chosen": bool(times and times.digest_at),
    }
    if is_quiet or wanted != last:
        return live.page(request, "overview/morning.html", Live("chrome"), "runs:live", **facts)
    shows = _waits(lambda: found.needs)
    return live.page(request, "overview/morning.html", shows, "runs:digest-live", **facts)


@require_GET
@look
def digest_live(request: HttpRequest) -> HttpResponse:
    """What waits now. What was done until the hour of a day stays."""
    marks = attention.hidden_of(me(request).pk)
    return live.refresh(request, _waits(lambda: queries.needs(wiring.lab(), marks).needs))


def _waits(needs: Callable[[], Needs]) -> Live:
    return Live("chrome", {"digest-waits": "overview/_waits"}, lambda: {"needs": needs()})
