"""The pages of a project's settings: shown to whoever may look, stored for whoever may act."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from runs.core.ports import SeamError
from runs.core.states import NoticeKind
from runs.models import Notice, Project
from runs.project_settings import acts, pages
from runs.settings import edit_forms, edits
from runs.settings.acts import TuningRefused
from runs.setup import file_pages, proposals
from runs.setup.file_pages import FileForm
from runs.web import access, answers
from runs.web.access import look, username
from runs.web.refusals import at_fields
from runs.wiring import lab

SAVED = "Saved. What starts from now on works by this; what runs keeps what it began with."
SAME = "Nothing was changed: it was so already."


@require_GET
@look
def first(request: HttpRequest, project_id: int) -> HttpResponse:
    """The first page of settings."""
    return _page(request, pages.ALL[0], pages.form(pages.ALL[0], _project(project_id)))


@require_http_methods(["GET", "POST"])
@look
def settings(request: HttpRequest, project_id: int, group: str) -> HttpResponse:
    """One page of settings. What somebody else changed meanwhile is shown beside what was typed."""
    may_act = access.may_act(request.user)
    if request.method == "POST" and not may_act:
        return access.refused(request)
    found = pages.BY_KEY.get(group)
    if found is None:
        raise Http404("There is no such page of settings.")
    if request.method == "POST" and found.fields:
        return _stored(request, found, project_id)
    shown = pages.form(found, _project(project_id), is_locked=not may_act)
    proposal = None
    if found.key == "setup" and may_act and "look" in request.GET:
        proposal = _propose(shown)
    return _page(request, found, shown, proposal=proposal)


def _propose(form: pages.SettingsForm) -> pages.ShownProposal:
    """Put what the repository suggests into the form; nothing is stored by that."""
    try:
        found = proposals.read_proposal(lab(), form.instance)
    except SeamError as error:
        return pages.ShownProposal(trouble=str(error))
    pages.fill_in(form, found)
    return pages.ShownProposal(found.sentences)


def _stored(request: HttpRequest, group: pages.Group, project_id: int) -> HttpResponse:
    sent = edit_forms.chosen(request.POST, pages.form(group, _project(project_id)))
    form = pages.form(group, _project(project_id), sent)
    if not form.is_valid():
        return _page(request, group, form, 422)
    try:
        changed = acts.store(
            lab(),
            _project(project_id),
            form.values(),
            by=username(request),
            seen=form.cleaned_data["seen"],
        )
    except TuningRefused as refused:
        at_fields(form, refused)
        return _page(request, group, form, 422)
    except edits.ChangedMeanwhile as meanwhile:
        now = pages.form(group, _project(project_id))
        told = Notice.objects.filter(project=project_id, kind=NoticeKind.SETTING_CHANGED)
        conflict = edit_forms.conflict(form, now, meanwhile.names, told)
        edit_forms.marked(form, now.initial["seen"])
        return _page(request, group, form, 409, conflict=conflict)
    back = reverse("runs:project-settings-of", args=[project_id, group.key])
    level: answers.Level = "success" if changed else "info"
    return answers.done(request, {}, back, SAVED if changed else SAME, level)


def show_setup(request: HttpRequest, project_id: int, file_form: FileForm) -> HttpResponse:
    """The page *Set-up* with a file that could not be stored; why stands at its fields."""
    group = pages.BY_KEY["setup"]
    form = pages.form(group, _project(project_id))
    return _page(request, group, form, 422, file_form=file_form)


def _page(
    request: HttpRequest,
    group: pages.Group,
    form: pages.SettingsForm,
    status: int = 200,
    conflict: edit_forms.Conflict | None = None,
    proposal: pages.ShownProposal | None = None,
    file_form: FileForm | None = None,
) -> HttpResponse:
    # A form with errors holds what was typed in its instance: the page is told of what is stored.
    project = _project(form.instance.pk)
    more = file_pages.facts(lab(), project, file_form) if group.key == "setup" else {}
    facts = pages.facts(group, project, form, conflict=conflict, proposal=proposal, **more)
    return answers.fresh(render(request, "project_settings/page.html", facts, status=status))


def _project(project_id: int) -> Project:
    rows = Project.objects.select_related("agent").defer("token", "hook_secret")
    return get_object_or_404(rows, pk=project_id)
