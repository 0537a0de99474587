"""Pages of issues in the built-in tracker, with and without scripts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs.core.states import NoticeKind
from runs.issues import acts, pages
from runs.issues.acts import IssueRefused
from runs.models import Notice, Project
from runs.settings import edit_forms, edits
from runs.web import answers, live
from runs.web.access import act, look, username
from runs.web.live import Live
from runs.wiring import lab
from trackers.base import NotFound, TrackerError
from trackers.builtin.models import Issue


@require_GET
@look
def issue_list(request: HttpRequest, project_id: int) -> HttpResponse:
    """The issues of a project, narrowed by state, label and text."""
    shown = _list(request, project_id)
    return live.page(request, "issues/list.html", shown, "runs:issues-live", project_id)


@require_GET
@look
def issue_list_live(request: HttpRequest, project_id: int) -> HttpResponse:
    """The live parts of the list, narrowed alike."""
    return live.refresh(request, _list(request, project_id))


def _list(request: HttpRequest, project_id: int) -> Live:
    project = pages.project_of(project_id)
    facts = pages.facts(pages.issue_list, project, pages.read_filter(request.GET))
    return live.of_project(project, pages.ISSUE_LIST, facts)


@require_GET
@look
def issue(request: HttpRequest, project_id: int, number: int) -> HttpResponse:
    """One issue: text, labels, comments, runs."""
    return _detail(request, pages.project_of(project_id), number)


@require_GET
@look
def issue_refresh(request: HttpRequest, project_id: int, number: int) -> HttpResponse:
    """The live parts of one issue; what is being typed beside them is left alone."""
    return live.refresh(request, _issue(pages.project_of(project_id), number))


@require_http_methods(["GET", "POST"])
@act
def issue_new(request: HttpRequest, project_id: int) -> HttpResponse:
    """Write a new issue."""
    project = pages.project_of(project_id)
    typed = _typed(request, title="", body="", chosen_labels=request.GET.getlist("label"))
    if request.method == "POST":
        try:
            number = acts.create(
                lab(),
                project,
                title=typed["title"],
                body=typed["body"],
                labels=typed["chosen_labels"],
                by=username(request),
            )
            return answers.elsewhere(request, reverse("runs:issue", args=[project.pk, number]))
        except IssueRefused as error:
            typed["errors"] = {error.field: error.text}
    return _form(request, project, typed)


@require_http_methods(["GET", "POST"])
@act
def issue_edit(request: HttpRequest, project_id: int, number: int) -> HttpResponse:
    """Change title and text of an issue."""
    project = pages.project_of(project_id)
    stored = pages.facts(pages.stored, project, number)()
    typed = _typed(request, title=stored.title, body=stored.body)
    for name in ("title", "body"):
        if request.POST.get(f"{edit_forms.TAKE}{name}") == edit_forms.THEIRS:
            typed[name] = getattr(stored, name)
    seen = request.POST.get("seen", "")[: edits.MOST]
    if request.method == "POST":
        what = {"title": typed["title"], "body": typed["body"], "seen": seen}
        try:
            acts.edit(lab(), project, number, **what, by=username(request))
            return answers.elsewhere(request, reverse("runs:issue", args=[project.pk, number]))
        except IssueRefused as error:
            typed["errors"] = {error.field: error.text}
        except edits.ChangedMeanwhile as meanwhile:
            stored = pages.facts(pages.stored, project, number)()
            typed["conflict"] = _conflict(project, stored, typed)
            typed["errors"], seen = {"seen": meanwhile.text}, ""
    seen = seen or acts.mark(stored)
    return _form(request, project, {**typed, "issue": stored, "seen": seen})


@require_POST
@act
def issue_comment(request: HttpRequest, project_id: int, number: int) -> HttpResponse:
    """Comment; a comment that cannot be kept comes back in its field."""
    project = pages.project_of(project_id)
    body = request.POST.get("comment", "")
    try:
        acts.comment(lab(), project, str(number), body=body, by=username(request))
    except IssueRefused as error:
        return _wrong_comment(request, project, number, body, error)
    except NotFound as error:
        raise Http404(str(error)) from error
    return _changed(request, project, number, {**pages.ISSUE, **pages.COMMENT})


@require_POST
@act
def issue_state(request: HttpRequest, project_id: int, number: int) -> HttpResponse:
    """Close the issue, or open it again."""
    project = pages.project_of(project_id)
    is_open = request.POST.get("state") == "open"
    try:
        acts.set_open(lab(), project, number, is_open=is_open, by=username(request))
    except TrackerError as error:
        raise Http404(str(error)) from error
    return _changed(request, project, number)


@require_POST
@act
def issue_labels(request: HttpRequest, project_id: int, number: int) -> HttpResponse:
    """Make the ticked labels the labels of the issue."""
    project = pages.project_of(project_id)
    labels = request.POST.getlist("labels")
    was = request.POST.getlist("was") if "shown" in request.POST else None
    try:
        acts.set_labels(lab(), project, number, labels=labels, by=username(request), was=was)
    except IssueRefused as error:
        back = reverse("runs:issue", args=[project.pk, number])
        return answers.failed(request, f"{error} The labels were not changed.", 422, back)
    except NotFound as error:
        raise Http404(str(error)) from error
    return _changed(request, project, number, {**pages.ISSUE, **pages.LABELS})


def _changed(
    request: HttpRequest,
    project: Project,
    number: int,
    parts: Mapping[str, str] = pages.ISSUE,
) -> HttpResponse:
    back = reverse("runs:issue", args=[project.pk, number])
    return live.changed(request, _issue(project, number, parts), back)


def _issue(project: Project, number: int, parts: Mapping[str, str] = pages.ISSUE) -> Live:
    return live.of_project(project, parts, pages.facts(pages.issue_detail, project, number))


def _detail(request: HttpRequest, project: Project, number: int, **typed: Any) -> HttpResponse:
    shown, at = _issue(project, number), (project.pk, number)
    return live.page(request, "issues/detail.html", shown, "runs:issue-live", *at, **typed)


def _wrong_comment(
    request: HttpRequest, project: Project, number: int, body: str, error: IssueRefused
) -> HttpResponse:
    typed: dict[str, Any] = {"comment": body, "errors": {error.field: error.text}}
    if not answers.is_htmx(request):
        return _detail(request, project, number, **typed)
    issue = pages.facts(pages.stored, project, number)()
    context = {**typed, "project": project, "issue": issue}
    return live.refused(request, pages.COMMENT, context, error.text)


def _typed(request: HttpRequest, **first: Any) -> dict[str, Any]:
    """What stands in the form: what was sent, or what it starts with."""
    if request.method != "POST":
        return {**first, "errors": {}}
    return {
        "title": request.POST.get("title", ""),
        "body": request.POST.get("body", ""),
        "chosen_labels": request.POST.getlist("labels"),
        "errors": {},
    }


def _conflict(project: Project, stored: Issue, typed: dict[str, Any]) -> edit_forms.Conflict:
    """Who changed the issue meanwhile, and both texts."""
    labels = (("title", "Title"), ("body", "What should be done"))
    both = [
        edit_forms.Both(name, label, typed[name].replace("\r\n", "\n"), getattr(stored, name))
        for name, label in labels
    ]
    told = Notice.objects.filter(
        project=project, issue_key=str(stored.number), kind=NoticeKind.ISSUE_CHANGED
    )
    return edit_forms.told_of(both, told.filter(text__startswith="issue edited"))


def _form(request: HttpRequest, project: Project, typed: dict[str, Any]) -> HttpResponse:
    labels = pages.facts(pages.form_labels, project)()
    context = {**typed, "project": project, "labels": labels, "address": request.path}
    errors = typed["errors"]
    if errors and answers.is_htmx(request):
        return live.refused(request, pages.FORM, context, " ".join(errors.values()))
    page = render(
        request,
        "issues/form.html",
        context,
        status=409 if "seen" in errors else 422 if errors else 200,
    )
    return answers.fresh(page)
