"""A project's page *Loops*: terms, presets, roles and memories."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs.loop_pages.settings_forms import PRESETS, RoleForm, TermsForm, one_shot_agents
from runs.loop_settings import settings_acts, unfit
from runs.loop_settings.settings_acts import LoopSettingsRefused
from runs.loops import acts
from runs.loops.roles import ISSUES
from runs.models import LoopMemory, LoopRole, Project
from runs.settings import edit_forms
from runs.settings.edit_forms import stored, told_as
from runs.web import answers
from runs.web import live as live_parts
from runs.web.access import act, look, username
from runs.web.refusals import status_of
from runs.wiring import lab

SAVED = "Saved. Loops that begin from now on work by this."
SAME = "Nothing was changed: it was so already."
ROLE_REMOVED = "The role was removed. Loops that run keep it."
MEMORY_REMOVED = "The memory was removed."
TEMPLATES = {"issues": ISSUES}
PARTS = {"loop-roles": "loops/_roles", "loop-memories": "loops/_memories"}


@require_GET
@look
def page(request: HttpRequest, project_id: int) -> HttpResponse:
    """Whether and how runs of the project are loops; `preset` fills its values in, stored on saving."""
    return _page(request, _project(project_id))


@require_GET
@look
def live(request: HttpRequest, project_id: int) -> HttpResponse:
    """Its parts as they are now; the form stays as somebody left it."""
    return live_parts.refresh(request, _parts(_project(project_id)))


@require_POST
@act
def terms(request: HttpRequest, project_id: int) -> HttpResponse:
    """Limits and switches."""
    project = _project(project_id)
    agents = one_shot_agents()

    def now() -> TermsForm:
        return TermsForm.stored(agents, settings_acts.terms_row(project), {})

    form = TermsForm(agents, edit_forms.chosen(request.POST, now()))

    def store() -> bool:
        given = {"by": username(request), "seen": form.cleaned_data["seen"]}
        return settings_acts.store_terms(
            lab(), project, form.values(), resume=form.resume(), **given
        )

    changed = stored(form, store, now, told_as("loops: ", project=project))
    if changed is None:
        return _page(request, project, form)
    return _done(request, project, changed)


@require_http_methods(["GET", "POST"])
@act
def role_new(request: HttpRequest, project_id: int) -> HttpResponse:
    """Write down another role."""
    project = _project(project_id)
    agents = one_shot_agents()
    if request.method == "POST":
        form = RoleForm(agents, request.POST)
    else:
        template = TEMPLATES.get(request.GET.get("template", ""))
        form = RoleForm.template(agents, template) if template else RoleForm(agents)

    def store() -> bool:
        settings_acts.add_role(lab(), project, form.values(), by=username(request))
        return True

    return _edited(request, project, form, store)


@require_http_methods(["GET", "POST"])
@act
def role(request: HttpRequest, project_id: int, role_id: int) -> HttpResponse:
    """Change a role."""
    project, row, agents = _project(project_id), _role(project_id, role_id), one_shot_agents()
    form = RoleForm.stored(agents, row)
    if request.method == "POST":
        form = RoleForm(agents, edit_forms.chosen(request.POST, form))

    def store() -> bool:
        who, seen = username(request), form.cleaned_data["seen"]
        return settings_acts.change_role(lab(), row, form.values(), by=who, seen=seen)

    return _edited(request, project, form, store, row)


@require_POST
@act
def role_remove(request: HttpRequest, project_id: int, role_id: int) -> HttpResponse:
    """Take a role out."""
    row, by = _role(project_id, role_id), username(request)
    remove = lambda: settings_acts.remove_role(lab(), row, by=by)  # noqa: E731
    return _pressed(request, project_id, remove, ROLE_REMOVED)


@require_POST
@act
def memory_remove(request: HttpRequest, project_id: int, memory_id: int) -> HttpResponse:
    """Forget a text."""
    project, by = _project(project_id), username(request)
    remove = lambda: settings_acts.remove_memory(lab(), project, memory_id, by=by)  # noqa: E731
    return _pressed(request, project_id, remove, MEMORY_REMOVED)


def _facts(project: Project) -> dict[str, Any]:
    """Everything on the page but its form. Four queries beside those of the frame."""
    row = settings_acts.terms_row(project)
    roles = list(LoopRole.objects.filter(project=project).select_related("profile"))
    memories = acts.memories(project.pk)
    return {
        "project": project,
        "terms": row,
        "roles": roles,
        "takes_resume": unfit.takes_resume(roles),
        "memories": memories,
        "memory_count": LoopMemory.objects.filter(project=project).count(),
        "presets": PRESETS,
    }


def _page(request: HttpRequest, project: Project, form: TermsForm | None = None) -> HttpResponse:
    preset = request.GET.get("preset", "")
    if preset not in ("", *settings_acts.PRESETS):
        raise Http404("There is no such preset.")

    def facts() -> dict[str, Any]:
        found = _facts(project)
        filled = settings_acts.PRESETS.get(preset, {})
        shown = form or TermsForm.stored(one_shot_agents(), found["terms"], filled)
        return {**found, "form": shown, "preset": preset}

    shown = live_parts.of_project(project, PARTS, facts)
    status = 409 if form and form.conflict else None
    at = "runs:loop-settings-live"
    return live_parts.page(request, "loops/settings.html", shown, at, project.pk, status=status)


def _parts(project: Project) -> live_parts.Live:
    return live_parts.of_project(project, PARTS, lambda: _facts(project))


def _edited(
    request: HttpRequest,
    project: Project,
    form: RoleForm,
    store: Callable[[], bool],
    row: LoopRole | None = None,
) -> HttpResponse:
    """The form of a new or a stored role: shown, stored, or shown again with what is wrong."""
    if request.method == "POST":
        pk = row.pk if row else 0

        def now() -> RoleForm:
            return RoleForm.stored(one_shot_agents(), _role(project.pk, pk))

        changed = stored(form, store, now, told_as("role ", project=project))
        if changed is not None:
            return _done(request, project, changed)
    context = {"project": project, "form": form, "row": row}
    status = edit_forms.status(form)
    return answers.fresh(render(request, "loops/role.html", context, status=status))


def _done(request: HttpRequest, project: Project, changed: bool) -> HttpResponse:
    back = reverse("runs:loop-settings", args=[project.pk])
    level: answers.Level = "success" if changed else "info"
    return answers.done(request, {}, back, SAVED if changed else SAME, level)


def _pressed(
    request: HttpRequest, project_id: int, change: Callable[[], bool], text: str
) -> HttpResponse:
    """A button in a row: the parts of the page as they are now."""
    back = reverse("runs:loop-settings", args=[project_id])
    try:
        changed = change()
    except LoopSettingsRefused as refused:
        return answers.failed(request, refused.text, status_of(refused), back)
    said = text if changed else SAME
    return live_parts.changed(request, _parts(_project(project_id)), back, said)


def _project(project_id: int) -> Project:
    rows = Project.objects.select_related("agent").defer("token", "hook_secret")
    return get_object_or_404(rows, pk=project_id)


def _role(project_id: int, role_id: int) -> LoopRole:
    rows = LoopRole.objects.select_related("project", "project__agent")
    return get_object_or_404(rows, pk=role_id, project_id=project_id)
