"""One act on many rows: a page that says what will happen, then one result line each.

The choice is in the address, so that nothing of it is lost where a password is asked for between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from runs.bulk import acts, rules
from runs.bulk.acts import Act, Forecast, Item
from runs.bulk.rules import Result
from runs.models import Project
from runs.people import stepup
from runs.web import access, answers
from runs.web.access import username
from runs.wiring import lab

ITEM, SEEN = "item", "seen-"


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the page: what was chosen and what will be, or was, done to it."""

    key: str
    label: str
    url: str
    forecast: Forecast | None = None
    result: Result | None = None


@require_http_methods(["GET", "POST"])
@access.act
def runs(request: HttpRequest, act: str) -> HttpResponseBase:
    """Merge, retry or dismiss runs of a list."""
    chosen = rules.read(_sent(request))
    found = _known(acts.OF_RUNS, act)
    items = acts.of_runs(chosen.keys)
    place = ("run", reverse("runs:history"), "History")
    if request.GET.get("from") == "needs":
        place = ("run", reverse("runs:needs"), "Needs you")
    return _answer(request, found, chosen, items, place)


@require_http_methods(["GET", "POST"])
@access.act
def pulls(request: HttpRequest, project_id: int, act: str) -> HttpResponseBase:
    """Merge pull requests of a project."""
    project, chosen = _project(project_id), rules.read(_sent(request))
    found, items = _known(acts.OF_PULLS, act), acts.of_pulls(project, chosen.keys)
    back = reverse("runs:pulls", args=[project_id])
    return _answer(
        request, found, chosen, items, ("pull request", back, f"Pull requests of {project.name}")
    )


@require_http_methods(["GET", "POST"])
@access.act
def parked(request: HttpRequest, project_id: int, act: str) -> HttpResponseBase:
    """Discard parked branches of a project."""
    project, chosen = _project(project_id), rules.read(_sent(request))
    found, items = _known(acts.OF_PARKED, act), acts.of_parked(project, chosen.keys)
    back = reverse("runs:parked", args=[project_id])
    return _answer(
        request, found, chosen, items, ("branch", back, f"Parked work of {project.name}")
    )


def _answer(
    request: HttpRequest,
    act: Act,
    chosen: rules.Chosen,
    items: Mapping[str, Item],
    place: tuple[str, str, str],
) -> HttpResponseBase:
    """The question for a GET, the results for a POST; a wrong choice is said and nothing done."""
    if act.asks_again and not stepup.is_confirmed(request):
        return stepup.ask(request)
    noun, back, name = place
    context = {"act": act, "noun": noun, "back": back, "place": name, "wrong": chosen.wrong}
    if chosen.wrong:
        status = 422 if request.method == "POST" else 200
        return answers.fresh(render(request, "bulk/page.html", context, status=status))
    if request.method == "POST":
        context |= _done(request, act, chosen.keys, items)
    else:
        context |= _question(act, chosen.keys, items, noun)
    return answers.fresh(render(request, "bulk/page.html", context))


def _question(
    act: Act, keys: Sequence[str], items: Mapping[str, Item], noun: str
) -> dict[str, object]:
    there = [items[key] for key in keys if key in items]
    said = acts.foresee(lab(), act, there)
    lines = [
        Line(item.key, item.label, _url(item), forecast)
        for item, forecast in zip(there, said, strict=True)
    ]
    able = [line for line in lines if line.forecast and line.forecast.can]
    unable = [line for line in lines if line.forecast and not line.forecast.can]
    return {
        "able": able,
        "unable": unable,
        "gone": len(keys) - len(there),
        "count": rules.plural(len(able), noun),
    }


def _done(
    request: HttpRequest, act: Act, keys: Sequence[str], items: Mapping[str, Item]
) -> dict[str, object]:
    seen = {key: request.POST.get(f"{SEEN}{key}", "")[:100] for key in keys}
    results = acts.carry_out(lab(), act, keys, items, seen, username(request))
    lines = [
        Line(one.key, items[one.key].label, _url(items[one.key]), result=one)
        if one.key in items
        else Line(one.key, one.key, "", result=one)
        for one in results
    ]
    left = [line.key for line in lines if line.result and line.result.is_done is None]
    return {"lines": lines, "summary": rules.summary(results), "left": left}


def _url(item: Item) -> str:
    if item.run is not None:
        return reverse("runs:run", args=[item.run.pk])
    if item.number is not None:
        return reverse("runs:pull", args=[item.project.pk, item.number])
    return ""


def _sent(request: HttpRequest) -> Sequence[str]:
    sent = request.POST if request.method == "POST" else request.GET
    return sent.getlist(ITEM)


def _known(known: Mapping[str, Act], act: str) -> Act:
    if act not in known:
        raise Http404("There is no such act.")
    return known[act]


def _project(project_id: int) -> Project:
    return get_object_or_404(Project.objects.select_related("agent", "forge"), pk=project_id)
