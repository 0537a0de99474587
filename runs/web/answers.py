"""How an action answers: partials for htmx, a redirect with a message for a plain form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.utils.http import url_has_allowed_host_and_scheme

from runs.web import addresses

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
