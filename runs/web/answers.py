"""How an action answers: partials for htmx, a redirect with a message for a plain form."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Literal

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.core.handlers.asgi import ASGIRequest
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseRedirect,
    StreamingHttpResponse,
)
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.template.loader import render_to_string
from django.utils.http import url_has_allowed_host_and_scheme

from runs.web import addresses

AT_ONCE, PIECES = 200_000, 100  # characters of a download, and pieces of it

Level = Literal["error", "warning", "info", "success"]

_LEVELS: Mapping[Level, int] = {
    "error": messages.ERROR,
    "warning": messages.WARNING,
    "info": messages.INFO,
    "success": messages.SUCCESS,
}


def is_htmx(request: HttpRequest) -> bool:
    return "HX-Request" in request.headers


def banner(text: str, level: Level = "error") -> str:
    """The banner with one note in it; with empty text the empty banner."""
    notes = [{"text": text, "level": level}] if text else []
    return render_to_string("web/_banner.html", {"notes": notes})


def partials(regions: Mapping[str, str]) -> str:
    """Each region wrapped so that htmx morphs it into its place.

    Without the white space around it, of which every morph would leave a piece in the page.
    """
    return "".join(
        f'<hx-partial hx-target="#{name}" hx-swap="outerMorph">{html.strip()}</hx-partial>'
        for name, html in regions.items()
    )


def done(
    request: HttpRequest,
    regions: Mapping[str, str],
    back: str,
    text: str = "",
    level: Level = "success",
) -> HttpResponse:
    """An action that worked: what it changed, or 303 to the page it came from."""
    if is_htmx(request):
        return fresh(HttpResponse(partials({"banner": banner(text, level), **regions})))
    return _redirect(request, back, text, level)


def failed(
    request: HttpRequest, text: str, status: int, back: str, level: Level = "error"
) -> HttpResponse:
    """An action that did not work: the status and the banner, or 303 with the message."""
    if is_htmx(request):
        return fresh(HttpResponse(partials({"banner": banner(text, level)}), status=status))
    return _redirect(request, back, text, level)


def elsewhere(request: HttpRequest, address: str) -> HttpResponse:
    """An action whose result is another page of ours."""
    if is_htmx(request):
        return fresh(HttpResponse(headers={"HX-Redirect": address}))
    return HttpResponseRedirect(address, status=303)


def download(request: HttpRequest, pieces: Iterator[str], kind: str, name: str) -> HttpResponseBase:
    """A file that is made while it is sent."""
    made: Any = _in_turn(pieces) if isinstance(request, ASGIRequest) else pieces
    answer = StreamingHttpResponse(made, content_type=f"{kind}; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    answer["Cache-Control"] = "no-store"
    return answer


async def _in_turn(pieces: Iterator[str]) -> AsyncIterator[str]:
    """The pieces, some at a time, each made in a thread: a loop would wait for files and database."""

    def some() -> str:
        made, size = [], 0
        for piece in pieces:
            made.append(piece)
            size += len(piece)
            if size >= AT_ONCE or len(made) >= PIECES:
                break
        return "".join(made)

    while text := await sync_to_async(some)():
        yield text


def fresh(response: HttpResponse) -> HttpResponse:
    """Never kept by a cache: it was true only when it was made."""
    response["Cache-Control"] = "no-store"
    return response


def _redirect(request: HttpRequest, back: str, text: str, level: Level) -> HttpResponse:
    if text:
        messages.add_message(request, _LEVELS[level], text)
    return HttpResponseRedirect(_page_before(request, back), status=303)


def _page_before(request: HttpRequest, back: str) -> str:
    """The page that the form was on when it is ours, else `back`.

    A form that came back with an error is on the address that it posts to, which shows nothing.
    """
    before = request.headers.get("Referer", "")
    if addresses.path_in(before) != request.path and url_has_allowed_host_and_scheme(
        before, {request.get_host()}, require_https=request.is_secure()
    ):
        return before
    return back


class Compressed(GZipMiddleware):
    """Django's compression for what our own pages ask for.

    The size of a compressed answer tells about secrets in it to who can have it sent again and again
    with guesses (BREACH). A header of htmx and `Sec-Fetch-Site` cannot be set by another site.
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """The answer, smaller where the browser takes that and asked from a page of ours."""
        is_ours = "HX-Request" in request.headers or (
            request.headers.get("Sec-Fetch-Site") == "same-origin"
        )
        if not is_ours or not isinstance(response, HttpResponse):
            return response
        found: HttpResponseBase = super().process_response(request, response)
        return found
