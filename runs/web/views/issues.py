"""Pages of issues in the built-in tracker. Plain forms: they work with and without scripts."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs.models import Project
from runs.web import issue_live, issue_pages
from runs.web.access import act, look, username
from runs.wiring import lab
from runs.work import issues as verbs
from runs.work.issues import IssueRefused
from trackers.base import NotFound, TrackerError


@require_GET
@look
def issue_list(request: HttpRequest, project_id: int) -> HttpResponse:
    """The issues of a project, narrowed by state, label and text."""
    project = issue_pages.project_of(project_id)
    facts = issue_pages.facts(issue_pages.issue_list, project, issue_pages.read_filter(request.GET))
    return issue_live.page(request, project, "issues/list.html", facts, "issues-live")


@require_GET
@look
def issue_list_live(request: HttpRequest, project_id: int) -> HttpResponse:
    """The live parts of the list, narrowed alike."""
    project = issue_pages.project_of(project_id)
    facts = issue_pages.facts(issue_pages.issue_list, project, issue_pages.read_filter(request.GET))
    return issue_live.refresh(request, project, issue_live.ISSUE_LIST, facts)


@require_GET
@look
def issue(request: HttpRequest, project_id: int, number: int) -> HttpResponse:
    """One issue: text, labels, comments, runs."""
    return _detail(request, issue_pages.project_of(project_id), number)


@require_GET
@look
def issue_refresh(request: HttpRequest, project_id: int, number: int) -> HttpResponse:
    """The live parts of one issue; what is being typed beside them is left alone."""
    project = issue_pages.project_of(project_id)
    facts = issue_pages.facts(issue_pages.issue_detail, project, number)
    return issue_live.refresh(request, project, issue_live.ISSUE, facts)


@require_http_methods(["GET", "POST"])
@act
def issue_new(request: HttpRequest, project_id: int) -> HttpResponseBase:
    """Write a new issue."""
    project = issue_pages.project_of(project_id)
    typed = _typed(request, title="", body="", chosen_labels=request.GET.getlist("label"))
    if request.method == "POST":
        try:
            number = verbs.create(
                lab(),
                project,
                title=typed["title"],
                body=typed["body"],
                labels=typed["chosen_labels"],
                by=username(request),
            )
            return redirect("runs:issue", project.pk, number)
        except IssueRefused as error:
            typed["errors"] = {error.field: error.text}
    return _form(request, project, typed)


@require_http_methods(["GET", "POST"])
@act
def issue_edit(request: HttpRequest, project_id: int, number: int) -> HttpResponseBase:
    """Change title and text of an issue."""
    project = issue_pages.project_of(project_id)
    stored = issue_pages.facts(issue_pages.stored, project, number)()
    typed = _typed(request, title=stored.title, body=stored.body)
    if request.method == "POST":
        title, body = typed["title"], typed["body"]
        try:
            verbs.edit(lab(), project, number, title=title, body=body, by=username(request))
            return redirect("runs:issue", project.pk, number)
        except IssueRefused as error:
            typed["errors"] = {error.field: error.text}
    return _form(request, project, {**typed, "issue": stored})


@require_POST
@act
def issue_comment(request: HttpRequest, project_id: int, number: int) -> HttpResponseBase:
    """Comment; a comment that cannot be kept comes back in its field."""
    project = issue_pages.project_of(project_id)
    body = request.POST.get("comment", "")
    try:
        verbs.comment(lab(), project, str(number), body=body, by=username(request))
    except IssueRefused as error:
        errors = {error.field: error.text}
        return _detail(request, project, number, comment=body, errors=errors)
    except NotFound as error:
        raise Http404(str(error)) from error
    answer = redirect("runs:issue", project.pk, number)
    answer["Location"] += "#comments-end"
    return answer


@require_POST
@act
def issue_state(request: HttpRequest, project_id: int, number: int) -> HttpResponseBase:
    """Close the issue, or open it again."""
    project = issue_pages.project_of(project_id)
    is_open = request.POST.get("state") == "open"
    try:
        verbs.set_open(lab(), project, number, is_open=is_open, by=username(request))
    except TrackerError as error:
        raise Http404(str(error)) from error
    return redirect("runs:issue", project.pk, number)


@require_POST
@act
def issue_labels(request: HttpRequest, project_id: int, number: int) -> HttpResponseBase:
    """Make the ticked labels the labels of the issue."""
    project = issue_pages.project_of(project_id)
    labels = request.POST.getlist("labels")
    try:
        verbs.set_labels(lab(), project, number, labels=labels, by=username(request))
    except IssueRefused as error:
        messages.error(request, f"{error} The labels were not changed.")
    except NotFound as error:
        raise Http404(str(error)) from error
    return redirect("runs:issue", project.pk, number)


def _detail(request: HttpRequest, project: Project, number: int, **typed: Any) -> HttpResponse:
    facts = issue_pages.facts(issue_pages.issue_detail, project, number)
    return issue_live.page(
        request, project, "issues/detail.html", lambda: {**facts(), **typed}, "issue-live", number
    )


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


def _form(request: HttpRequest, project: Project, typed: dict[str, Any]) -> HttpResponse:
    labels = issue_pages.facts(issue_pages.form_labels, project)()
    context = {**typed, "project": project, "labels": labels}
    return render(request, "issues/form.html", context, status=422 if typed["errors"] else 200)
