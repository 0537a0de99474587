"""The page on forges: the accounts, and the quota ledger of each, with a fixed number of queries."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.contrib import messages
from django.db.models import Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse

from runs.forges.cadence_rules import BUDGET
from runs.forges.quota import polls_of_last_hour, repository_of
from runs.models import Forge, Project, Quota, QuotaHour, Settings
from runs.web import answers, fragments
from runs.web.access import may_act, may_administer
from runs.wiring import lab
from trackers.account import Purpose

LEDGER_OF = timedelta(hours=24)
LIVE = {"forge-ledger": "forges/_ledger.html"}


@dataclass(frozen=True, slots=True)
class Spent:
    """What one purpose asked within the last day. `unchanged` of it brought nothing new."""

    purpose: str
    calls: int
    unchanged: int


@dataclass(frozen=True, slots=True)
class Pace:
    """How often one project's tracker is asked, and why so seldom.

    `polls` of its hourly `budget` of requests were made in the last hour.
    """

    project: Project
    every: timedelta | None
    why: str
    polls: int = 0
    budget: int = BUDGET


@dataclass(frozen=True, slots=True)
class Line:
    """One account at one host. `forge` is None for one that is not kept any more."""

    host: str
    forge: Forge | None
    quota: Quota | None
    spent: Sequence[Spent]
    paces: Sequence[Pace]
    now: datetime

    @property
    def key(self) -> str:
        return f"account-{self.forge.pk}" if self.forge is not None else f"quota-{self._pk}"

    @property
    def _pk(self) -> int:
        return self.quota.pk if self.quota is not None else 0

    @property
    def is_blocked(self) -> bool:
        until = self.quota.blocked_until if self.quota is not None else None
        return until is not None and until > self.now

    @property
    def is_known(self) -> bool:
        """Whether the forge told what it allows, and its window is not over."""
        quota = self.quota
        if quota is None or quota.limit is None or quota.remaining is None:
            return False
        return quota.reset_at is None or quota.reset_at > self.now

    @property
    def most(self) -> int:
        """The longest bar."""
        return max((one.calls for one in self.spent), default=0) or 1


def lines(now: datetime) -> list[Line]:
    """Every account and what was asked with it. Five queries."""
    quotas = {(one.host, one.account): one for one in Quota.objects.all()}
    spent = _spent(now)
    paces, polls = _paces(), polls_of_last_hour(now)
    found = []
    for forge in Forge.objects.all():
        account = forge.account
        quota = quotas.pop((account.host, account.id), None)
        of_it = spent.get(quota.pk, []) if quota is not None else []
        pk = quota.pk if quota is not None else 0
        mine = [
            replace(pace, polls=polls.get((pk, repository_of(pace.project)), 0))
            for pace in paces.get(forge.pk, [])
        ]
        found.append(Line(account.host, forge, quota, of_it, mine, now))
    return found + [
        Line(one.host, None, one, spent[one.pk], (), now)
        for one in quotas.values()
        if one.pk in spent
    ]


def page(request: HttpRequest) -> HttpResponse:
    """The whole page."""
    facts = _facts(request)
    frame = {"live_url": reverse("runs:forges-live"), "topic": "chrome", "asks": "own"}
    frame["version"] = _tag(request, facts)
    return answers.fresh(render(request, "forges/list.html", {**facts, **frame}))


def refresh(request: HttpRequest) -> HttpResponse:
    """The parts as they are now, or 304 when nothing has changed since the tag that was sent."""
    facts = _facts(request)
    tag = _tag(request, facts)
    if request.headers.get("HX-PTag") == tag:
        return answers.fresh(HttpResponse(status=304))
    can_act = may_act(request.user)
    found = dict(fragments.regions("chrome", can_act, request) or {})
    found |= {name: render_to_string(file, facts) for name, file in LIVE.items()}
    return answers.fresh(HttpResponse(answers.partials(found), headers={"HX-PTag": tag}))


def said(request: HttpRequest, text: str, about: Forge | str, back: str) -> str:
    """Leave a message for the page that comes next; returns its address."""
    messages.success(request, text.format(name=about))
    return back


def _facts(request: HttpRequest) -> dict[str, object]:
    now = lab().now()
    return {
        "now": now,
        "lines": lines(now),
        "people_percent": Settings.current().people_percent,
        "can_manage": may_administer(request.user),
    }


def _tag(request: HttpRequest, facts: Mapping[str, object]) -> str:
    """Changes with the frame and with anything that the ledger shows, ages apart."""
    shown = render_to_string("forges/_ledger.html", {**facts, "now": None, "is_tag": True})
    told = [fragments.version("chrome"), may_act(request.user), shown]
    return hashlib.sha256(repr(told).encode()).hexdigest()[:20]


def _spent(now: datetime) -> Mapping[int, list[Spent]]:
    """What was asked within the last day, by account, in the order of the purposes."""
    rows = QuotaHour.objects.filter(hour__gt=now - LEDGER_OF).order_by()
    summed = rows.values_list("quota", "purpose").annotate(all=Sum("calls"), same=Sum("unchanged"))
    places = {purpose.value: place for place, purpose in enumerate(Purpose)}
    found: dict[int, list[Spent]] = defaultdict(list)
    for quota, purpose, calls, same in sorted(summed, key=lambda row: places.get(row[1], 99)):
        found[quota].append(Spent(purpose, calls, same))
    return found


def _paces() -> Mapping[int, list[Pace]]:
    """How often each project on a forge is asked after."""
    rows = Project.objects.exclude(forge=None).order_by("name")
    found: dict[int, list[Pace]] = defaultdict(list)
    for one in rows.only("name", "forge", "tracker_root", "asked_every", "asked_why"):
        every = timedelta(seconds=one.asked_every) if one.asked_every is not None else None
        found[one.forge_id or 0].append(Pace(one, every, one.asked_why))
    return found
