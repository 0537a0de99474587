"""A project's page *Checks*: policy, commands, switches, reviewers, proposals and import."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs.core.ports import SeamError
from runs.models import CheckCommand, Project, Reviewer
from runs.settings import edit_forms
from runs.settings.edit_forms import EditForm, stored, told_as
from runs.specs import acts, mala_file, pages
from runs.specs.acts import SpecRefused
from runs.specs.forms import CommandForm, ImportForm, PolicyForm, ReviewerForm, TermsForm
from runs.specs.mala_file import Taken, UnfitFile
from runs.validation import specs
from runs.validation.spec_models import terms_of
from runs.validation.specs import Scope
from runs.web import answers
from runs.web import live as live_parts
from runs.web.access import act, look, username
from runs.wiring import lab

if TYPE_CHECKING:
    from runs.specs import spec_file

SAVED = "Saved. Work that is checked from now on is checked by this."
SAME = "Nothing was changed: it was so already."
REMOVED = "It was removed. Checks that run now keep what they began with."
NOT_READ = "The repository could not be read, so nothing is proposed: {error}"
UNTOUCHED = "Nothing was changed."
MOST_SAID = 20  # reasons why a file is refused
TAKEN = "{added} commands were added, {changed} were changed. Nothing was run."


@require_GET
@look
def page(request: HttpRequest, project_id: int) -> HttpResponse:
    """Everything that decides when a run of the project is believed."""
    return _page(request, pages.project_of(project_id))


@require_GET
@look
def live(request: HttpRequest, project_id: int) -> HttpResponse:
    """Its parts as they are now; forms stay as somebody left them."""
    return live_parts.refresh(request, _parts(pages.project_of(project_id)))


@require_GET
@look
def as_json(request: HttpRequest, project_id: int, scope: str) -> HttpResponse:
    """The spec of a scope, as it would be run now."""
    if scope not in set(Scope):
        raise Http404("There is no such scope.")
    spec = specs.effective(terms_of(pages.project_of(project_id)), Scope(scope))
    return answers.fresh(JsonResponse(specs.to_json(spec), json_dumps_params={"indent": 2}))


@require_POST
@act
def policy(request: HttpRequest, project_id: int) -> HttpResponse:
    """What the project believes as the end of a run."""
    project = pages.project_of(project_id)
    form = PolicyForm(edit_forms.chosen(request.POST, PolicyForm.stored(project)))

    def store() -> bool:
        given = form.cleaned_data
        who = username(request)
        return acts.store_policy(lab(), project, given["policy"], by=who, seen=given["seen"])

    def now() -> PolicyForm:
        return PolicyForm.stored(pages.project_of(project_id))

    changed = stored(form, store, now, told_as("the completion policy", project=project))
    if changed is None:
        return _page(request, project, policy=form)
    return _done(request, project, changed)


@require_POST
@act
def terms(request: HttpRequest, project_id: int) -> HttpResponse:
    """Switches and numbers."""
    project = pages.project_of(project_id)

    def now() -> TermsForm:
        return TermsForm.stored(acts.terms_row(project))

    form = TermsForm(edit_forms.chosen(request.POST, now()))

    def store() -> bool:
        who, seen = username(request), form.cleaned_data["seen"]
        return acts.store_terms(lab(), project, form.values(), by=who, seen=seen)

    changed = stored(form, store, now, told_as("checks: ", project=project))
    if changed is None:
        return _page(request, project, terms=form)
    return _done(request, project, changed)


@require_http_methods(["GET", "POST"])
@act
def command_new(request: HttpRequest, project_id: int) -> HttpResponse:
    """Write down another command."""
    project = pages.project_of(project_id)
    form = CommandForm(request.POST) if request.method == "POST" else CommandForm()

    def store() -> bool:
        acts.add_command(lab(), project, form.command(), by=username(request))
        return True

    return _edited(request, project, "specs/command.html", form, store)


@require_http_methods(["GET", "POST"])
@act
def command(request: HttpRequest, project_id: int, command_id: int) -> HttpResponse:
    """Change a command."""
    project, row = pages.project_of(project_id), _command(project_id, command_id)

    def now() -> CommandForm:
        return CommandForm.stored(_command(project_id, command_id))

    form = CommandForm.stored(row)
    if request.method == "POST":
        form = CommandForm(edit_forms.chosen(request.POST, form))

    def store() -> bool:
        who, seen = username(request), form.cleaned_data["seen"]
        return acts.change_command(lab(), row, form.command(), by=who, seen=seen)

    return _edited(
        request,
        project,
        "specs/command.html",
        form,
        store,
        Stored(row, f"command {row.name} ", now),
    )


@require_POST
@act
def command_move(request: HttpRequest, project_id: int, command_id: int) -> HttpResponse:
    """Earlier or later among those of its kind."""
    row, is_up = _command(project_id, command_id), request.POST.get("to") != "down"
    return _pressed(
        request,
        project_id,
        lambda: acts.move_command(lab(), row, is_up=is_up, by=username(request)),
        "",
    )


@require_POST
@act
def command_remove(request: HttpRequest, project_id: int, command_id: int) -> HttpResponse:
    """Take a command out."""
    row = _command(project_id, command_id)
    by = username(request)
    return _pressed(request, project_id, lambda: acts.remove_command(lab(), row, by=by), REMOVED)


@require_http_methods(["GET", "POST"])
@act
def reviewer_new(request: HttpRequest, project_id: int) -> HttpResponse:
    """Write down another reviewer."""
    project, profiles = pages.project_of(project_id), pages.profiles()
    form = ReviewerForm(profiles, request.POST if request.method == "POST" else None)

    def store() -> bool:
        acts.add_reviewer(lab(), project, form.values(), by=username(request))
        return True

    return _edited(request, project, "specs/reviewer.html", form, store)


@require_http_methods(["GET", "POST"])
@act
def reviewer(request: HttpRequest, project_id: int, reviewer_id: int) -> HttpResponse:
    """Change a reviewer."""
    project, row = pages.project_of(project_id), _reviewer(project_id, reviewer_id)
    profiles = pages.profiles()

    def now() -> ReviewerForm:
        return ReviewerForm.stored(profiles, _reviewer(project_id, reviewer_id))

    form = ReviewerForm.stored(profiles, row)
    if request.method == "POST":
        form = ReviewerForm(profiles, edit_forms.chosen(request.POST, form))

    def store() -> bool:
        who, seen = username(request), form.cleaned_data["seen"]
        return acts.change_reviewer(lab(), row, form.values(), by=who, seen=seen)

    return _edited(
        request,
        project,
        "specs/reviewer.html",
        form,
        store,
        Stored(row, f"reviewer {row.name} ", now),
    )


@require_POST
@act
def reviewer_remove(request: HttpRequest, project_id: int, reviewer_id: int) -> HttpResponse:
    """Take a reviewer out."""
    row = _reviewer(project_id, reviewer_id)
    by = username(request)
    return _pressed(request, project_id, lambda: acts.remove_reviewer(lab(), row, by=by), REMOVED)


@require_http_methods(["GET", "POST"])
@act
def propose(request: HttpRequest, project_id: int) -> HttpResponse:
    """What the repository's files suggest; stored is what somebody ticked, and nothing is run."""
    project = pages.project_of(project_id)
    try:
        commit, found = pages.proposed(lab(), project)
    except SeamError as error:
        context = {"project": project, "error": NOT_READ.format(error=error)}
        return answers.fresh(render(request, "specs/propose.html", context))
    there = {one.name: one.command() for one in project.check_commands.all()}
    others = {one.command.name for one in found.commands if one.command not in there.values()}
    names = {"there": set(there) - others, "replaced": set(there) & others}
    context = {"project": project, "commit": commit, "found": found, **names}
    if request.method == "GET":
        return answers.fresh(render(request, "specs/propose.html", context))
    wanted = set(request.POST.getlist("take"))
    commands = [one.command for one in found.commands if one.command.name in wanted]
    missing = wanted - {one.name for one in commands}
    if not commands or missing or request.POST.get("commit") != commit:
        context["wrong"] = _why_not_taken(bool(wanted), request.POST.get("commit") == commit)
        return answers.fresh(render(request, "specs/propose.html", context, status=422))
    try:
        counts = acts.take(lab(), project, commands, {}, by=username(request))
    except SpecRefused as refused:
        context["wrong"] = refused.text
        return answers.fresh(render(request, "specs/propose.html", context, status=409))
    return _taken(request, project, counts)


@require_GET
@look
def export(request: HttpRequest, project_id: int) -> HttpResponse:
    """The project's checks as a file that the import takes."""
    from runs.specs import spec_file  # loads the HTTP API, whose shapes it has

    project = pages.project_of(project_id)
    text = spec_file.written(spec_file.of_project(project))
    answer = answers.fresh(HttpResponse(text, content_type="application/json"))
    answer["Content-Disposition"] = f'attachment; filename="checks-{project.slug}.json"'
    return answer


@require_http_methods(["GET", "POST"])
@act
def import_file(request: HttpRequest, project_id: int) -> HttpResponse:
    """An export or a mala.yaml: first what it would change is shown, then it is taken."""
    project = pages.project_of(project_id)
    if request.method == "GET":
        form = ImportForm(initial={"text": pages.mala_file(lab(), project)})
        return _form(request, project, form, "specs/import.html")
    form, by = ImportForm(request.POST), username(request)
    found = _read(form, project)
    if found is None or not request.POST.get("sure"):
        status = 422 if found is None else 200
        lines = pages.term_lines(found.values) if found is not None else []
        more = {"found": found, "term_lines": lines}
        return _form(request, project, form, "specs/import.html", status=status, **more)
    try:
        if isinstance(found, Taken):
            counts = acts.take(lab(), project, found.commands, found.values, by=by)
        else:
            from runs.specs import spec_file

            changed = spec_file.take(lab(), project, found.file, by=by).is_change
            return _done(request, project, changed)
    except SpecRefused as refused:
        form.add_error(None, refused.text)
        return _form(request, project, form, "specs/import.html")
    return _taken(request, project, counts)


def _why_not_taken(is_any: bool, is_same: bool) -> str:
    if not is_same:
        return (
            "The repository has moved on since this was proposed. Nothing was stored; look at the new "
            "proposals."
        )
    return (
        "Tick a command that is proposed here. Nothing was stored."
        if not is_any
        else ("One of them is not proposed any more. Nothing was stored.")
    )


def _read(form: ImportForm, project: Project) -> Taken | spec_file.Taken | None:
    """What the file would change; None with the reasons at the field."""
    if not form.is_valid():
        return None
    from runs.specs import spec_file

    text = form.cleaned_data["text"]
    try:
        if not spec_file.is_one(text):
            return mala_file.read(text)
        return spec_file.preview(lab(), project, spec_file.read(text))
    except UnfitFile as error:
        form.add_error("text", str(error))
    except SpecRefused as refused:
        said = [f"{name}: {why}" for name, why in refused.fields.items()] or [refused.text]
        for line in said[:MOST_SAID]:
            form.add_error("text", line)
        form.add_error("text", UNTOUCHED)
    return None


@dataclass(frozen=True, slots=True)
class Stored:
    """A row that a form is on, what the timeline calls it, and the form as it is stored now."""

    row: CheckCommand | Reviewer
    what: str
    now: Callable[[], EditForm]


def _edited(
    request: HttpRequest,
    project: Project,
    template: str,
    form: EditForm,
    store: Callable[[], bool],
    on: Stored | None = None,
) -> HttpResponse:
    """The form of a new or a stored row: shown, stored, or shown again with what is wrong."""
    row = on.row if on else None
    if request.method == "GET":
        return _form(request, project, form, template, row=row)
    changed = stored(
        form, store, on.now if on else None, told_as(on.what if on else "", project=project)
    )
    if changed is not None:
        return _done(request, project, changed)
    return _form(request, project, form, template, row=row)


def _page(
    request: HttpRequest,
    project: Project,
    *,
    policy: PolicyForm | None = None,
    terms: TermsForm | None = None,
) -> HttpResponse:
    def facts() -> dict[str, Any]:
        found = pages.facts(lab(), project)
        return {
            **found,
            "policy_form": policy or PolicyForm.stored(project),
            "terms_form": terms or TermsForm.stored(found["terms"]),
        }

    shown = live_parts.of_project(project, pages.PARTS, facts)
    is_met = any(form and form.conflict for form in (policy, terms))
    at = "runs:spec-live"
    status = 409 if is_met else None
    return live_parts.page(request, "specs/page.html", shown, at, project.pk, status=status)


def _parts(project: Project) -> live_parts.Live:
    return live_parts.of_project(project, pages.PARTS, lambda: pages.facts(lab(), project))


def _form(
    request: HttpRequest,
    project: Project,
    form: EditForm | ImportForm,
    template: str,
    *,
    status: int | None = None,
    **more: Any,
) -> HttpResponse:
    """A form on a page of its own, with what is wrong at its fields."""
    context = {"project": project, "form": form, **more}
    if isinstance(form, EditForm):
        status = status or edit_forms.status(form)
    status = status or (422 if form.errors else 200)
    return answers.fresh(render(request, template, context, status=status))


def _done(request: HttpRequest, project: Project, changed: bool) -> HttpResponse:
    back = reverse("runs:spec", args=[project.pk])
    level: answers.Level = "success" if changed else "info"
    return answers.done(request, {}, back, SAVED if changed else SAME, level)


def _taken(request: HttpRequest, project: Project, counts: tuple[int, int]) -> HttpResponse:
    text = TAKEN.format(added=counts[0], changed=counts[1])
    return answers.done(request, {}, reverse("runs:spec", args=[project.pk]), text)


def _pressed(
    request: HttpRequest, project_id: int, change: Callable[[], bool], text: str
) -> HttpResponse:
    """A button in a row: the parts of the page as they are now."""
    back = reverse("runs:spec", args=[project_id])
    try:
        changed = change()
    except SpecRefused as refused:
        return answers.failed(request, refused.text, 409, back)
    project = pages.project_of(project_id)
    said = text if changed else SAME
    return live_parts.changed(request, _parts(project), back, said)


def _command(project_id: int, command_id: int) -> CheckCommand:
    rows = CheckCommand.objects.select_related("project")
    return get_object_or_404(rows, pk=command_id, project_id=project_id)


def _reviewer(project_id: int, reviewer_id: int) -> Reviewer:
    rows = Reviewer.objects.select_related("project")
    return get_object_or_404(rows, pk=reviewer_id, project_id=project_id)
