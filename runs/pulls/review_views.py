"""Reviewing a pull request: its commits, its files, one file on demand, comments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from runs.core.ports import SeamError
from runs.issues import pages as issue_pages
from runs.models import Project
from runs.pulls import acts, comparing, pages, review_pages
from runs.pulls.acts import PullRefused
from runs.pulls.review_pages import COOKIE, Wish, read_wish
from runs.pulls.rules import is_commit
from runs.web import answers, live
from runs.web.access import act, look, may_act, username
from runs.web.live import Live
from runs.wiring import lab
from trackers.base import TrackerError
from trackers.builtin import queries

YEAR = 365 * 24 * 3600


@require_GET
@look
def pull_commits(request: HttpRequest, project_id: int, number: int) -> HttpResponse:
    """The commits of a pull request."""
    shown, at = _commits(project_id, number, pages.COMMITS), (project_id, number)
    return live.page(request, "pulls/commits.html", shown, "runs:pull-commits-live", *at)


@require_GET
@look
def pull_commits_live(request: HttpRequest, project_id: int, number: int) -> HttpResponse:
    """The live parts of the commits."""
    return live.refresh(request, _commits(project_id, number, pages.COMMITS))


def _commits(project_id: int, number: int, parts: Mapping[str, str]) -> Live:
    project = issue_pages.project_of(project_id)
    return live.of_project(project, parts, issue_pages.facts(pages.commits, project, number))


@require_GET
@look
def pull_commit(request: HttpRequest, project_id: int, number: int, commit: str) -> HttpResponse:
    """One commit of a pull request, with what it changed."""
    project, wish = issue_pages.project_of(project_id), read_wish(request)
    facts = issue_pages.facts(review_pages.commit, project, number, commit, wish)
    shown, at = live.of_project(project, pages.FRAME, facts), (project_id, number)
    page = live.page(request, "pulls/commit.html", shown, "runs:pull-frame-live", *at)
    return _remember(page, wish)


@require_GET
@look
def pull_frame_live(request: HttpRequest, project_id: int, number: int) -> HttpResponse:
    """The live parts of a page that shows one commit: the commit itself never changes."""
    return live.refresh(request, _commits(project_id, number, pages.FRAME))


@require_GET
@look
def pull_files(request: HttpRequest, project_id: int, number: int) -> HttpResponse:
    """The changed files, side by side or in one column; the choice is kept in a cookie."""
    project = issue_pages.project_of(project_id)
    return _files(request, project, number, {})


@require_GET
@look
def pull_files_live(request: HttpRequest, project_id: int, number: int) -> HttpResponse:
    """The live parts of the files: new comments, and a note when new commits have come."""
    project, wish = issue_pages.project_of(project_id), read_wish(request)
    facts = issue_pages.facts(review_pages.news, project, number, wish, request.GET)
    return live.refresh(request, live.of_project(project, pages.FILES, facts))


@require_GET
@look
def pull_file(request: HttpRequest, project_id: int, number: int, file_number: int) -> HttpResponse:
    """One file in full, as a part for htmx; without it the Files page with only that file."""
    project, wish = issue_pages.project_of(project_id), read_wish(request)
    if not answers.is_htmx(request):
        at = reverse("runs:pull-files", args=[project.pk, number])
        commit = request.GET.get("commit", "")
        if is_commit(commit):
            at = reverse("runs:pull-commit", args=[project.pk, number, commit])
        return HttpResponseRedirect(f"{at}?file={file_number}&view={wish.view}#file-{file_number}")
    ask = issue_pages.facts(review_pages.one_file, project, number, file_number, wish, request.GET)
    try:
        context = {"file": ask(), "can_act": may_act(request.user)}
    except LookupError as error:
        return answers.failed(request, str(error), 409, request.path, "warning")
    return answers.fresh(render(request, "web/_file_diff.html", context))


@require_POST
@act
def pull_comment(request: HttpRequest, project_id: int, number: int) -> HttpResponse:
    """Comment on the pull request or on a line; what cannot be kept comes back in its field."""
    project = issue_pages.project_of(project_id)
    is_line = "line" in request.POST
    try:
        where = _where(project, number, request) if is_line else {}
        key = acts.comment(
            lab(),
            project,
            number,
            body=request.POST.get("comment", ""),
            by=username(request),
            **where,
        )
    except PullRefused as error:
        return _wrong(request, project, number, error.field, error.text)
    except SeamError as error:
        text = f"git could not say which line that is, so nothing was stored: {error}"
        return _wrong(request, project, number, "line", text)
    except TrackerError as error:
        raise Http404(str(error)) from error
    return _commented(request, project, number, key, is_line=is_line)


def _commented(
    request: HttpRequest, project: Project, number: int, key: int, *, is_line: bool
) -> HttpResponse:
    """The thread, or the file with its new comment; and the form, empty again."""
    if not is_line:
        facts = issue_pages.facts(pages.conversation, project, number)
        back = reverse("runs:pull", args=[project.pk, number])
        parts = {**pages.PULL, **pages.COMMENT}
        return live.changed(request, live.of_project(project, parts, facts), back)
    sent = request.GET.copy()
    sent["head"], sent["after"] = request.POST.get("commit", ""), str(key - 1)
    facts = issue_pages.facts(review_pages.news, project, number, read_wish(request), sent)
    back = reverse("runs:pull-files", args=[project.pk, number])
    parts = {**pages.FILES, **pages.LINE_COMMENT}
    return live.changed(request, live.of_project(project, parts, facts), back)


def _where(project: Project, number: int, request: HttpRequest) -> dict[str, Any]:
    """The line that a form names. The form knows a file by its number at one commit."""
    sent = request.POST
    pull = queries.pull(project.tracker_root, number)
    found = comparing.of_pull(lab(), project, pull)
    if found.error:
        raise PullRefused(f"{found.error} Nothing was stored.", field="line")
    if sent.get("commit") != found.ends.head:
        raise PullRefused(f"{review_pages.MOVED} Nothing was stored.", field="line")
    file, line = _number(sent.get("file", "")), _number(sent.get("line", ""))
    if not 1 <= file <= len(found.files):
        raise PullRefused("Choose a file.", field="file")
    if not line:
        raise PullRefused("Write the number of a line that the diff shows.", field="line")
    path = found.files[file - 1].path
    return {"path": path, "line": line, "side": sent.get("side", ""), "commit": found.ends.head}


def _wrong(
    request: HttpRequest, project: Project, number: int, field: str, text: str
) -> HttpResponse:
    """The form again with what was typed and the error at its field; 422."""
    names = ("comment", "file", "side", "line", "commit")
    typed: dict[str, Any] = {name: request.POST.get(name, "") for name in names}
    is_line = "line" in request.POST
    context: dict[str, Any] = {"typed": typed, "errors": {field: text}}
    if answers.is_htmx(request):
        part = pages.LINE_COMMENT if is_line else pages.COMMENT
        facts = issue_pages.facts(review_pages.form, project, number, read_wish(request))()
        return live.refused(request, part, {**facts, **context}, text)
    if is_line:
        typed.pop("commit")  # the page that comes back shows the branch as it is now
        return _files(request, project, number, context)
    facts_of = issue_pages.facts(pages.reviewed, project, number)
    shown, at = live.of_project(project, pages.PULL, facts_of), (project.pk, number)
    return live.page(request, "pulls/detail.html", shown, "runs:pull-live", *at, **context)


def _files(
    request: HttpRequest, project: Project, number: int, more: dict[str, Any]
) -> HttpResponse:
    wish = read_wish(request)
    facts = issue_pages.facts(review_pages.files, project, number, wish)
    shown, at = live.of_project(project, pages.FILES, facts), (project.pk, number)
    page = live.page(request, "pulls/files.html", shown, "runs:pull-files-live", *at, **more)
    return _remember(page, wish)


def _remember(page: HttpResponse, wish: Wish) -> HttpResponse:
    if wish.is_view_asked:
        page.set_cookie(COOKIE, wish.view, max_age=YEAR, httponly=True, samesite="Lax")
    return page


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0
