"""Runs: the list, one run, and the neutral Stop."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from runs import wiring
from runs.core.states import Outcome
from runs.followups import pages as follow_up_pages
from runs.lifecycle import pull_page
from runs.lifecycle import stop as run_stop
from runs.models import Project, Run
from runs.overview import attention, queries
from runs.web import answers, fragments, live
from runs.web.access import act, look, may_act, username
from runs.web.forms import RunFilter
from runs.web.live import Parts

RUNS = {name: f"{file}.html" for name, file in fragments.RUNS.items()}
WILL_STOP = "What runs is ended now. Worktrees and branches are kept, and it counts as neither success nor failure."
STOPPED = "Stopped. Its work is kept; it counts as neither success nor failure."


@require_GET
@look
def run(request: HttpRequest, run_id: int) -> HttpResponse:
    context = live.facts(request, f"run:{run_id}", "runs:run-live", run_id)
    if context["can_act"]:
        attention.opened(context["page"].run, wiring.lab().now())
    return answers.fresh(render(request, "lifecycle/page.html", context))


@require_GET
@look
def run_live(request: HttpRequest, run_id: int) -> HttpResponse:
    return live.refresh(request, f"run:{run_id}")


@require_GET
@look
def pull(request: HttpRequest, run_id: int) -> HttpResponse:
    """The run's pull request on its forge, with what was checked there; asked for now."""
    context = dict(pull_page.of(wiring.lab(), run_id))
    context["can_act"] = may_act(request.user)
    if context["can_act"] and pull_page.is_open(context):
        newest = follow_up_pages.of_pull(context["project"], context["run"].branch)
        number = context["pull"].number
        context["changes_wanted"] = follow_up_pages.changes_box(wiring.lab(), newest, pull=number)
    return answers.fresh(render(request, "pulls/run_pull.html", context))


@require_GET
@look
def pull_live(request: HttpRequest, run_id: int) -> HttpResponse:
    """The same, asked for again; only while somebody has the page before them."""
    context = dict(pull_page.of(wiring.lab(), run_id))
    part = render_to_string("pulls/_run_pull.html", context, request)
    return answers.fresh(HttpResponse(answers.partials({"run-pull": part})))


@require_GET
@look
def runs(request: HttpRequest) -> HttpResponse:
    """All runs, newest first, narrowed by outcome and project."""
    facts = _runs(request)
    facts["outcomes"] = [(one.value, one.words) for one in Outcome]
    topic = "chrome" if facts["is_narrowed"] else "runs"
    return live.listed(
        request, "lifecycle/runs.html", Parts(RUNS, lambda: facts), facts["page"], topic
    )


@require_GET
@look
def runs_live(request: HttpRequest) -> HttpResponse:
    """The same runs as they are now."""
    return live.relisted(request, Parts(RUNS, lambda: _runs(request)))


def _runs(request: HttpRequest) -> dict[str, Any]:
    chosen = RunFilter(request.GET)
    chosen.is_valid()
    wanted = chosen.cleaned_data
    outcome, project_id = wanted.get("outcome", ""), wanted.get("project")
    page = queries.runs(wiring.lab(), outcome, project_id, wanted.get("before"))
    is_narrowed = bool(outcome or project_id or wanted.get("before"))
    found = {"page": page, "outcome": outcome, "project_id": project_id}
    return {**found, "is_narrowed": is_narrowed}


@require_POST
@act
def stop(request: HttpRequest, run_id: int) -> HttpResponse:
    """End one run now; worktree and branch are kept. Asks first, as `_is_sure` says."""
    found = get_object_or_404(Run.objects.select_related("project"), pk=run_id)
    if not _is_sure(request):
        what = f"the run of issue {found.issue_key}"
        back = reverse("runs:run", args=[run_id])
        context = {"project": found.project, "what": what, "will": WILL_STOP, "back": back}
        return answers.fresh(render(request, "lifecycle/stop.html", context))
    if run_stop.stop(wiring.lab(), found, username(request)):
        text, level = STOPPED, "success"
    else:
        text, level = "It had ended already, so nothing was stopped.", "info"
    regions = fragments.after_stop(request, found) if answers.is_htmx(request) else {}
    back = reverse("runs:run", args=[run_id])
    return answers.done(request, regions, back, text, level)  # type: ignore[arg-type]


@require_POST
@act
def stop_all(request: HttpRequest, project_id: int) -> HttpResponse:
    """End every session of one project, each run by the same neutral Stop. Asks first."""
    project = get_object_or_404(Project, pk=project_id)
    if not _is_sure(request):
        what, back = f"all sessions of {project.name}", reverse("runs:project", args=[project_id])
        context = {"project": project, "what": what, "will": WILL_STOP, "back": back}
        return answers.fresh(render(request, "lifecycle/stop.html", context))
    number = run_stop.stop_all(wiring.lab(), project, username(request))
    text = f"Stopped {number} session{'' if number == 1 else 's'} of {project.name}. Worktrees and branches of runs are kept."
    topic = fragments.here(request)
    regions = fragments.regions(topic, True, request) if answers.is_htmx(request) else {}
    return answers.done(request, regions or {}, reverse("runs:project", args=[project_id]), text)


def _is_sure(request: HttpRequest) -> bool:
    """Whether it was confirmed: with JavaScript by the second press, else on a page that asks."""
    return answers.is_htmx(request) or bool(request.POST.get("sure"))
