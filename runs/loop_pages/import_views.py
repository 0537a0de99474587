"""The page that imports the files of a Ralph project: shows what each becomes, then takes it."""

from __future__ import annotations

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from runs.models import Project
from runs.ralph import acts
from runs.ralph.acts import ImportRefused, Preview
from runs.ralph.ralph_file import Files
from runs.web import answers
from runs.web.access import act, username
from runs.wiring import lab

TAKEN = "Imported: {roles}, {memories}{issue}. Loops that begin from now on work by this."


def _text(label: str, help_text: str, *, required: bool = False) -> forms.CharField:
    return forms.CharField(
        label=label,
        help_text=help_text,
        required=required,
        strip=False,
        max_length=acts.MOST_TEXT,
        widget=forms.Textarea(attrs={"rows": 10 if required else 4, "spellcheck": "false"}),
        error_messages={"required": "Paste the file."},
    )


class ImportForm(forms.Form):
    """The texts of the files; those of the repository are filled in."""

    settings = _text("ralph.yml", "Settings and hats.", required=True)
    prompt = _text("PROMPT.md", "Becomes an issue. Optional.")
    memories = _text(".ralph/agent/memories.md", "Optional.")
    tasks = _text(".ralph/agent/tasks.jsonl", "Open tasks stand in the issue. Optional.")

    def texts(self) -> Files:
        given = self.cleaned_data
        return Files(*(given[name] for name in ("settings", "prompt", "memories", "tasks")))


@require_http_methods(["GET", "POST"])
@act
def import_ralph(request: HttpRequest, project_id: int) -> HttpResponse:
    """First what the files would become is shown, then it is taken."""
    rows = Project.objects.select_related("agent").defer("token", "hook_secret")
    project = get_object_or_404(rows, pk=project_id)
    if request.method == "GET":
        files = acts.of_repository(lab(), project)
        names = ("settings", "prompt", "memories", "tasks")
        initial = {name: getattr(files, name) for name in names}
        return _page(request, project, ImportForm(initial=initial))
    form = ImportForm(request.POST)
    if not form.is_valid():
        return _page(request, project, form)
    try:
        found = acts.preview(lab(), project, form.texts())
        if not request.POST.get("sure"):
            return _page(request, project, form, found)
        done = acts.take(lab(), project, found, by=username(request))
    except ImportRefused as refused:
        form.add_error("settings", refused.text)
        return _page(request, project, form)
    issue = f", issue {done.issue} from the prompt" if done.issue else ""
    roles = _count(len(found.roles or ()), "role", "roles")
    memories = _count(done.memories, "new memory", "new memories")
    text = TAKEN.format(roles=roles, memories=memories, issue=issue)
    return answers.done(request, {}, reverse("runs:loop-settings", args=[project.pk]), text)


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"


def _page(
    request: HttpRequest, project: Project, form: ImportForm, found: Preview | None = None
) -> HttpResponse:
    context = {"project": project, "form": form, "found": found}
    status = 422 if form.errors else 200
    return answers.fresh(render(request, "loops/import.html", context, status=status))
