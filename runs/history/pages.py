"""What the page *History* shows of the runs that fit."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.contrib.auth.models import User
from django.utils.safestring import SafeString

from runs.core.ports import Lab
from runs.core.states import Outcome
from runs.history import filters, finding
from runs.history.filters import ACTIVE, Asked, Place, Sort
from runs.models import AgentProfile, Run
from runs.spending import limit_rules
from runs.web import addresses

FILES = {"history-news": "history/_news", "history-rows": "history/_rows"}
NAMES = 200
COLUMNS = (("Took", Sort.TOOK), ("Cost", Sort.COST), ("Ended", Sort.ENDED))
SEARCH, DATE = SafeString('type="search"'), SafeString('type="date"')
DECIMAL = SafeString('inputmode="decimal"')
_BEHIND = (
    ("agent", "Agent", ""),
    ("model", "Model", ""),
    ("person", "Started by", ""),
    ("since", "Ended from", DATE),
    ("until", "Ended until", DATE),
    ("least", "Cost at least, $", DECIMAL),
    ("most", "Cost at most, $", DECIMAL),
)


@dataclass(frozen=True, slots=True)
class Typed:
    """One text field of the filters: how it is typed, what stands in it, what is wrong and offered."""

    name: str
    label: str
    kind: str
    typed: str
    wrong: str
    offered: Sequence[str]


@dataclass(frozen=True, slots=True)
class Past:
    """One row: a run with how long it took and what it cost."""

    run: Run
    used: timedelta | None

    @property
    def model(self) -> str:
        """The model that its agent named, or else the one that was chosen."""
        return self.run.agent_model or self.run.model

    @property
    def cost(self) -> str:
        """Empty where nobody told one, which is not nothing."""
        cost = self.run.cost_usd
        return "" if cost is None else limit_rules.money(cost)

    @property
    def shown(self) -> tuple[object, ...]:
        """What of it changes while somebody reads; its clock counts by itself."""
        run = self.run
        state = (run.state, run.outcome, run.is_counting, run.gate_turn, run.attempts)
        return (run.pk, *state, run.issue_title, run.pull_number, self.cost, self.model)


@dataclass(frozen=True, slots=True)
class Head:
    """A column that the list can be sorted by. `order`: how it is sorted now, for screen readers."""

    name: str
    url: str
    order: str


def row(run: Run, now: datetime) -> Past:
    """A run as its row shows it at a moment."""
    return Past(run, run.age(now) if run.did_start else None)


class History:
    """One page of the list as it was at one moment; read when it is first asked for.

    `place` is the address of the page on one project's runs; empty: the runs of all.
    """

    def __init__(self, lab: Lab, asked: Asked, place: str = "") -> None:
        self.now = lab.now()
        self.asked = asked
        self.place = place
        self.at = asked.place.at or self.now

    @cached_property
    def found(self) -> finding.Found:
        return finding.page(self.asked.wanted, self.asked.place, self.now)

    @cached_property
    def rows(self) -> Sequence[Past]:
        return [row(run, self.now) for run in self.found.runs]

    @cached_property
    def news(self) -> int:
        """How many runs began or ended since; a page further down is told of none."""
        has_news = self.asked.place.after is None and self.at < self.now
        return finding.news(self.asked.wanted, self.at) if has_news else 0

    @property
    def seen(self) -> str:
        """A tag that changes with what is shown. Three queries."""
        told = (self.news, [one.shown for one in self.rows])
        return hashlib.sha256(repr(told).encode()).hexdigest()[:20]

    @property
    def address(self) -> str:
        """The query string of this page as it was at its moment, for its refreshes."""
        return filters.address(self.asked.wanted, replace(self.asked.place, at=self.at))

    def facts(self) -> Mapping[str, Any]:
        """What the live parts show."""
        wanted, last = self.asked.wanted, self.found.last
        older = filters.address(wanted, Place(last, self.at)) if last is not None else ""
        first = filters.address(wanted)
        narrowed = replace(wanted, project=None) if self.place else wanted
        return {
            "list_url": self.place or addresses.of("runs:history"),
            "of_project": bool(self.place),
            "rows": self.rows,
            "news": self.news,
            "is_more_news": self.news >= finding.MOST_NEWS,
            "older": older,
            "first": first,
            "is_first": self.asked.place.after is None or self.found.is_lost,
            "is_narrowed": narrowed.is_narrowed,
            "heads": [_head(self.asked, name, sort) for name, sort in COLUMNS],
        }


def form(asked: Asked, is_lost: bool) -> Mapping[str, Any]:
    """What the form of the filters shows: what was typed, what is wrong with it, what is offered.

    Two queries.
    """
    wrong = dict(asked.wrong)
    if is_lost:
        wrong["after"] = "The run where this page began is gone; here is the first page."
    elsewhere = [text for name, text in wrong.items() if name in ("after", "at", "sort")]
    profiles = AgentProfile.objects.order_by("name").only("name", "model_names")
    names = User.objects.order_by("username").values_list("username", flat=True)
    agents = list(profiles)
    offered: defaultdict[str, Sequence[str]] = defaultdict(tuple)
    offered["agent"] = [one.name for one in agents]
    offered["model"] = sorted({name for one in agents for name in one.model_names})
    offered["person"] = list(names[:NAMES])
    return {
        "typed": asked.typed,
        "wrong": wrong,
        "wrong_place": elsewhere[:1],
        "wanted": asked.wanted,
        "has_more": asked.wanted.has_more or any(name in wrong for name, *_ in _BEHIND),
        "outcomes": [(ACTIVE, "still running"), *((one.value, one.words) for one in Outcome)],
        "sorts": [(one.value, one.words) for one in Sort],
        "fields": [
            Typed(name, label, kind, asked.typed.get(name, ""), wrong.get(name, ""), offered[name])
            for name, label, kind in _BEHIND
        ],
        "words_field": Typed(
            "text", "", SEARCH, asked.typed.get("text", ""), wrong.get("text", ""), ()
        ),
        "query": filters.address(asked.wanted),
    }


def _head(asked: Asked, name: str, sort: Sort) -> Head:
    now = asked.wanted.sort
    is_this = now.key == sort.key
    url = filters.address(asked.wanted, sort=now.other if is_this else sort)
    order = ("descending" if now.is_down else "ascending") if is_this else ""
    return Head(name, url, order)
