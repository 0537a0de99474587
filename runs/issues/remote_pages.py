"""Issues and pull requests that are on a forge: what was heard of them last, and the way there.

No copy of the forge: pages lead out, and acts are refused with the place where they are done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import URLPattern, path, reverse

from runs.followups import red_check_rules
from runs.forges import rules as forge_rules
from runs.forges import tracker_card
from runs.forges.tracker_card import Card
from runs.issues.pages import Elsewhere
from runs.models import Project, PullChecks, Settings
from runs.web import answers
from runs.wiring import lab
from trackers.base import Ability

View = Callable[..., HttpResponseBase]
WEB = ("https://", "http://")
_PLACES: Mapping[str, str] = {"issues": "issues", "pulls": "pulls"}
_NAMES: Mapping[str, str] = {"issues": "issues", "pulls": "pull requests"}


@dataclass(frozen=True, slots=True)
class Row:
    """One issue or pull request as it was heard last; without an address it is no link.

    `checks`: how those of a pull request stand, as far as labsite looks at them; `tone` its colour.
    """

    key: str
    title: str
    url: str
    branch: str = ""
    tone: str = ""
    checks: str = ""


def kept_here(what: str, patterns: Sequence[URLPattern]) -> list[URLPattern]:
    """The same addresses, which for a project on another tracker lead to it; costs no query."""
    return [path(str(one.pattern), _guarded(what, one.callback), name=one.name) for one in patterns]


def _guarded(what: str, view: View) -> View:
    @wraps(view)
    def answer(
        request: HttpRequest, *args: Any, project_id: int, **kwargs: Any
    ) -> HttpResponseBase:
        try:
            return view(request, *args, project_id=project_id, **kwargs)
        except Elsewhere as there:
            return _led(request, what, there.project, kwargs.get("number"))

    return answer


def _led(request: HttpRequest, what: str, project: Project, number: int | None) -> HttpResponse:
    """The way out; anything but reading is refused, and nothing was done."""
    card = tracker_card.of(lab(), project, Settings.current())
    if request.method not in ("GET", "HEAD") or answers.is_htmx(request):
        return answers.failed(request, refusal(card, what), 409, _back(project))
    if what == "pulls" and Ability.PULLS not in card.abilities:
        number = None
    facts = {
        "project": project,
        "card": card,
        "what": what,
        "name": _NAMES[what],
        "number": number,
        "url": place_of(card, what, number),
        "rows": rows(card, what) if number is None else (),
        "seen_at": project.queue_seen_at if what == "issues" else project.pulls_seen_at,
        "has_pulls": Ability.PULLS in card.abilities,
    }
    return answers.fresh(render(request, "issues/elsewhere.html", facts))


def refusal(card: Card, what: str) -> str:
    """Why nothing was done, and where it is done instead."""
    where = f"on {card.forge.web}" if card.forge is not None else f"in {card.kind}"
    return f"The {_NAMES[what]} of this project are {where}. Nothing was changed here; do it there."


def place_of(card: Card, what: str, number: int | None = None) -> str:
    """The forge's own page; empty for a tracker without pages."""
    if not card.url:
        return ""
    if number is None:
        return f"{card.url}/{_PLACES[what]}"
    if what == "issues" and card.forge is not None:
        return forge_rules.issue_url(card.forge.web, card.project.tracker_root, str(number))
    single = "pull" if card.project.tracker == "github" else "pulls"
    return f"{card.url}/{single}/{number}"


def rows(card: Card, what: str) -> list[Row]:
    """What was heard last, with addresses that lead to web pages and nowhere else.

    One query where labsite looks at the checks of pull requests, else none.
    """
    project = card.project
    if what == "issues":
        return [Row(str(key), str(title), _safe(url)) for key, title, url in project.queue_seen]
    checks = _describe_checks(project) if project.sends_back_red_checks else {}
    return [
        Row(str(number), str(title), _safe(url), str(head), *checks.get(int(number), ("", "")))
        for number, head, title, url in project.pulls_seen
    ]


def _describe_checks(project: Project) -> Mapping[int | None, tuple[str, str]]:
    """Return by pull request how its checks stood at the last look; of several runs the newest counts."""
    numbers = [int(number) for number, *_ in project.pulls_seen]
    rows = PullChecks.objects.filter(run__project=project, run__pull_number__in=numbers)
    told = rows.order_by("run_id").values_list("run__pull_number", "state", "failed")
    return {number: red_check_rules.describe_state(state, names) for number, state, names in told}


def _safe(url: object) -> str:
    """What a forge calls an address, if a browser may be sent there."""
    return str(url) if str(url).startswith(WEB) else ""


def _back(project: Project) -> str:
    return reverse("runs:project", args=[project.pk])
