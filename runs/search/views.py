"""The page Search, the palette's list by the same search, and the sheet of keyboard shortcuts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from runs.search import finding
from runs.search.places import Reader
from runs.search.rules import LONGEST, Hit, Kind
from runs.web import answers, shortcuts
from runs.web.access import look, may_act, may_administer

PART = "X-Lab-Part"  # sent by our own script, which shows the part in a dialog


@dataclass(frozen=True, slots=True)
class Row:
    """A hit with its address. `number` tells options of one list apart."""

    hit: Hit
    number: int

    @property
    def url(self) -> str:
        return self.hit.address or reverse(f"runs:{self.hit.page}", args=self.hit.ids)

    @property
    def is_act(self) -> bool:
        return self.hit.kind is Kind.ACT

    @property
    def sends(self) -> str:
        """What an act posts, as pairs in JSON."""
        return json.dumps(self.hit.sends)

    @property
    def shows_key(self) -> bool:
        """Whether its number stands before its title: a run's is in the title."""
        return bool(self.hit.key) and self.hit.kind is not Kind.RUN


@require_GET
@look
def search(request: HttpRequest) -> HttpResponse:
    """What fits the words in the address; for the palette the same as options of its list."""
    typed = request.GET.get("q", "")[:LONGEST]
    context = {"typed": typed, "rows": _rows(request, typed), "longest": LONGEST}
    is_part = PART in request.headers
    return _answer(request, "search/_options.html" if is_part else "search/page.html", context)


@require_GET
@look
def sheet(request: HttpRequest) -> HttpResponse:
    """All keyboard shortcuts and the switch that turns them off; for its dialog without the frame."""
    is_part = PART in request.headers
    template = "search/_shortcuts.html" if is_part else "search/shortcuts.html"
    return _answer(request, template, {"groups": shortcuts.sheet()})


def _rows(request: HttpRequest, typed: str) -> Sequence[Row]:
    reader = Reader(may_act(request.user), may_administer(request.user))
    return [Row(hit, number) for number, hit in enumerate(finding.find(typed, reader))]


def _answer(request: HttpRequest, template: str, context: dict[str, object]) -> HttpResponse:
    answer = answers.fresh(render(request, template, context))
    answer["Vary"] = PART
    return answer
