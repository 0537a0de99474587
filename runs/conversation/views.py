"""The conversation of a run: its page, what came since, one whole text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html
from django.views.decorators.http import require_GET

from runs import wiring
from runs.conversation import export, items, pages, searching
from runs.conversation.forms import ConversationPlace
from runs.conversation.pages import Asked, Book
from runs.conversation.reading import Record
from runs.core.ports import SeamError
from runs.models import Run
from runs.web import answers, fragments, live, terminal
from runs.web.access import look, may_act
from runs.web.live import Live

NONE = "none"  # the mark of a page without a record


@require_GET
@look
def conversation(request: HttpRequest, run_id: int) -> HttpResponse:
    """One piece of it, the end if no other is asked for."""
    book, asked = _asked(request, run_id)
    frame = live.shown(request, Live(f"talk:{run_id}"), "runs:conversation-live", run_id)
    shown = pages.page(book, asked)
    followed = {} if asked.record else {"newest": 1}
    context = {**frame, **shown, "live_url": book.link("runs:conversation-live", **followed)}
    context["version"] = f"{frame['version']}.{_mark(shown)}"
    if "left" in shown:
        context["left_html"] = terminal.render(str(shown["left"]))
    return answers.fresh(render(request, "conversation/page.html", context))


@require_GET
@look
def conversation_live(request: HttpRequest, run_id: int) -> HttpResponse:
    """The frame where it changed, and of the conversation what has come since; or 304."""
    can_act = may_act(request.user)
    topic = f"talk:{run_id}"
    version = live.version_now(request, topic)
    before, _, mark = request.headers.get("HX-PTag", "").partition(".")
    book, _ = _asked(request, run_id)
    if book.trouble:  # what is shown stays, until its host answers again
        return answers.fresh(HttpResponse(status=304))
    if mark == NONE and book.record is not None:
        return answers.elsewhere(request, book.link())
    try:
        news, mark = _news(book, mark)
    except SeamError:
        return answers.fresh(HttpResponse(status=304))
    if mark and not news and "newest" in request.GET and book.own not in book.mains[-1:]:
        news, mark = _goes_on(book), ""
    if before == version and not news:
        return answers.fresh(HttpResponse(status=304))
    regions = (fragments.regions(topic, can_act, request) or {}) if before != version else {}
    html = answers.partials(regions) + news
    return answers.fresh(HttpResponse(html, headers={"HX-PTag": f"{version}.{mark}"}))


@require_GET
@look
def conversation_text(request: HttpRequest, run_id: int) -> HttpResponse:
    """One text of it, whole and as plain text."""
    book, _ = _asked(request, run_id)
    if book.trouble:
        return _unread(request, book)
    place = ConversationPlace(request.GET)
    place.is_valid()
    wanted = place.cleaned_data
    message = pages.part_of(book, wanted.get("at") or 0, wanted.get("part") or 0)
    text = pages.whole(message, wanted.get("what") or "")
    answer = HttpResponse(text, content_type="text/plain; charset=utf-8")
    answer["X-Content-Type-Options"] = "nosniff"
    return answers.fresh(answer)


@require_GET
@look
def conversation_search(request: HttpRequest, run_id: int) -> HttpResponse:
    """The messages of one record with some words in them, a piece of it at a time."""
    book, asked = _asked(request, run_id)
    if book.trouble:
        return _unread(request, book)
    frame = live.shown(request, Live(f"talk:{run_id}"), "runs:conversation-live", run_id)
    words = ConversationPlace(request.GET)
    words.is_valid()
    found = searching.search(book, words.cleaned_data.get("q") or "", asked.before)
    shown = {"run": book.run, "own": book.own, "found": found, "q": found.words}
    return answers.fresh(render(request, "conversation/search.html", {**frame, **shown}))


@require_GET
@look
def conversation_json(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """All of it as JSON."""
    book, _ = _asked(request, run_id)
    if book.trouble:
        return _unread(request, book)
    return _download(request, book, export.as_json(book), "application/json", "json")


@require_GET
@look
def conversation_markdown(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """All of it as Markdown."""
    book, _ = _asked(request, run_id)
    if book.trouble:
        return _unread(request, book)
    return _download(request, book, export.as_markdown(book), "text/markdown", "md")


def _unread(request: HttpRequest, book: Book) -> HttpResponse:
    """The conversation lies on another machine, which does not answer."""
    text = f"The conversation could not be read: {book.trouble}."
    back = reverse("runs:conversation", args=[book.run.pk])
    return answers.failed(request, text, 502, back)


def _download(
    request: HttpRequest, book: Book, pieces: Iterator[str], kind: str, ending: str
) -> HttpResponseBase:
    """A file that is made while it is sent."""
    return answers.download(request, pieces, kind, f"run-{book.run.pk}.{ending}")


def _asked(request: HttpRequest, run_id: int) -> tuple[Book, Asked]:
    run = get_object_or_404(Run.objects.select_related("project", "profile"), pk=run_id)
    place = ConversationPlace(request.GET)
    place.is_valid()
    wanted = place.cleaned_data
    name = wanted.get("record") or ""
    book = Book(wiring.lab(), run, name)
    return book, Asked(name, wanted.get("before"), wanted.get("start"))


def _mark(shown: Any) -> str:
    """Up to where a page that shows the end has it; empty for one that shows another piece."""
    if "left" in shown:
        return NONE
    return f"{shown['settled']}.{shown['span'].end}" if shown.get("is_end") else ""


def _news(book: Book, mark: str) -> tuple[str, str]:
    """What came after a mark, as parts for the page, and the mark after it.

    A call that had no result yet is told again, everything before it never.
    """
    record, (settled, _, end) = book.record, mark.partition(".")
    is_ours = settled.isdecimal() and end.isdecimal() and max(len(settled), len(end)) <= 16
    if record is None or not is_ours:
        return "", mark
    size = record.size()
    if size is None or size == int(end):
        return "", mark
    return _since(book, record, int(settled), int(end), mark)


def _since(book: Book, record: Record, start: int, end: int, mark: str) -> tuple[str, str]:
    span = record.onwards(start)
    if span is None or (span.end == end and not span.is_moved):
        return "", mark
    if span.is_moved:
        text = "This record was rewritten by the agent. Reload the page to read on."
        return answers.partials({"talk-moved": _moved(text)}), ""
    # Where more lines follow than one answer holds, no call is waited for any longer.
    is_end = not record.goes_on(span.end)
    now = items.settled(span.lines, span.end) if is_end else span.end
    show = pages.Shower(book)
    done = [line for line in span.lines if line.at < now]
    after = () if is_end else pages.late(record, span.lines, span)
    parts = answers.partials({f"talk-{start}": _part(start, show.all(done or span.lines, after))})
    if now > start:
        rest = _part(now, show.all([line for line in span.lines if line.at >= now]))
        parts += f'<hx-partial hx-target="#talk" hx-swap="beforeend">{rest}</hx-partial>'
    if pages.tells_todos(span):
        listed = render_to_string("conversation/_todos.html", {"todos": pages.todos(record)})
        parts += answers.partials({"talk-todos": listed})
    return parts, f"{now}.{span.end}"


def _part(start: int, shown: Any) -> str:
    return render_to_string("conversation/_part.html", {"start": start, "shown": shown}).strip()


def _goes_on(book: Book) -> str:
    """The way from the session that a page shows to the one that the run began since."""
    url = reverse("runs:conversation", args=[book.run.pk])
    text = format_html(
        'The agent goes on in <a class="link" href="{}">session {}</a>.', url, len(book.mains)
    )
    return answers.partials({"talk-moved": _moved(text)})


def _moved(text: str) -> str:
    return f'<p id="talk-moved" class="why" role="status">{text}</p>'
