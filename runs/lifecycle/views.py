"""The tabs of one run, and the neutral Stop."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from runs import wiring
from runs.followups import pages as follow_up_pages
from runs.lifecycle import pull_page
from runs.lifecycle import stop as run_stop
from runs.models import Project, Run
from runs.overview import attention, queries
from runs.run_pages import tabs
from runs.stop_project import stop_project
from runs.web import answers, fragments, live
from runs.web.access import act, look, may_act, username
from runs.web.forms import EntriesPlace
from runs.web.live import Live

PAGES = {
    tabs.STORY: ("runs:run-live", "lifecycle/page.html"),
    tabs.TERMINAL: ("runs:run-terminal-live", "lifecycle/terminal.html"),
    tabs.CHANGES: ("runs:run-changes-live", "lifecycle/changes.html"),
    tabs.PROMPT: ("runs:run-prompt-live", "lifecycle/prompt.html"),
    tabs.RAW: ("runs:run-raw-live", "run_pages/raw.html"),
}
TIMELINE = {"timeline": "lifecycle/_timeline"}
WILL_STOP = "What runs is ended now. Worktrees and branches are kept, and it counts as neither success nor failure."
STOPPED = "Stopped. Its work is kept; it counts as neither success nor failure."


@require_GET
@look
def tab(request: HttpRequest, run_id: int, name: str) -> HttpResponse:
    """One tab of a run's page: what it shows is read now, and nothing of the other tabs."""
    address, template = PAGES[name]
    context = live.shown(request, Live(f"{name}:{run_id}"), address, run_id)
    if context["can_act"]:
        attention.opened(context["page"].run, wiring.lab().now())
    return answers.fresh(render(request, template, context))


@require_GET
@look
def tab_live(request: HttpRequest, run_id: int, name: str) -> HttpResponse:
    """What of a tab has changed."""
    return live.refresh(request, Live(f"{name}:{run_id}"))


@require_GET
@look
def timeline(request: HttpRequest, run_id: int) -> HttpResponse:
    """Every entry of its timeline, the newest first."""
    shown = _timeline(request, run_id)
    return live.page(request, "run_pages/timeline.html", shown, "runs:run-timeline-live", run_id)


@require_GET
@look
def timeline_live(request: HttpRequest, run_id: int) -> HttpResponse:
    return live.refresh(request, _timeline(request, run_id))


def _timeline(request: HttpRequest, run_id: int) -> Live:
    chosen = EntriesPlace(request.GET)
    chosen.is_valid()
    before = chosen.cleaned_data.get("before")

    def facts() -> dict[str, Any]:
        return {**queries.timeline(run_id, before), "before": before, "run_id": run_id}

    return Live(f"{tabs.TALK}:{run_id}", TIMELINE, facts)


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
    number = stop_project(wiring.lab(), project, username(request))
    text = f"Stopped {number} session{'' if number == 1 else 's'} of {project.name}. Worktrees and branches of runs are kept."
    topic = fragments.here(request)
    regions = fragments.regions(topic, True, request) if answers.is_htmx(request) else {}
    return answers.done(request, regions or {}, reverse("runs:project", args=[project_id]), text)


def _is_sure(request: HttpRequest) -> bool:
    """Whether it was confirmed: with JavaScript by the second press, else on a page that asks."""
    return answers.is_htmx(request) or bool(request.POST.get("sure"))
