"""What makes the product installable: manifest, service worker, offline page, icons, the count.

None of these but the count tells anything of runs or projects; they are open, since a browser
fetches them without its log-in.
"""

from __future__ import annotations

import functools
import hashlib
import json
import threading

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.urls import reverse
from django.views.decorators.http import require_GET

from runs import wiring
from runs.core.ports import Lab
from runs.overview import attention, board, queries
from runs.phone import icons
from runs.web import answers
from runs.web.access import look, may_act, may_look

LIGHT, DARK = "#f6f7f9", "#0e1116"
DAY = "public, max-age=86400"
FRESH_SECONDS = 60


class _Count:
    """How many things a person's list of what needs them has.

    Asked anew when something was told (so it is of what they hide) or a minute went by.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lab: Lab | None = None
        self._key: tuple[object, ...] = ()
        self._counts: dict[int, int] = {}

    def __call__(self, person: int) -> int:
        lab = wiring.lab()
        facts = board.load_facts(lab)
        minute = int(facts.now.timestamp()) // FRESH_SECONDS
        key = (facts.last_notice, facts.looked, facts.is_late, minute)
        with self._lock:
            if self._lab is not lab or self._key != key:
                self._lab, self._key, self._counts = lab, key, {}
            counts = self._counts
        if person not in counts:
            hidden = attention.hidden_of(person) if person else ()
            counts[person] = queries.needs(lab, hidden).needs.total
        return counts[person]


count_now = _Count()


def _whose(request: HttpRequest) -> int:
    """Whose list is counted; 0 for the list of all who may only look, who hide nothing."""
    return (request.user.pk or 0) if may_act(request.user) else 0


@require_GET
@look
def needs_count(request: HttpRequest) -> HttpResponse:
    """How many things need somebody, for the title of an open page."""
    return answers.fresh(JsonResponse({"count": count_now(_whose(request))}))


@login_not_required
@require_GET
def favicon(request: HttpRequest) -> HttpResponse:
    """The icon of a tab, with the number that the page names, or that of now for who is logged in."""
    named = request.GET.get("n", "")
    if named.isascii() and named.isdigit():
        return _picture(icons.svg(min(int(named[:4]), icons.MOST + 1)).encode(), "image/svg+xml")
    count = count_now(_whose(request)) if may_look(request.user) else 0
    return answers.fresh(HttpResponse(icons.svg(count), content_type="image/svg+xml"))


@login_not_required
@require_GET
def icon(request: HttpRequest, name: str) -> HttpResponse:
    """An icon for home screens and notifications."""
    if name not in icons.ICONS:
        raise Http404
    return _picture(icons.png(name), "image/png")


def _picture(body: bytes, kind: str) -> HttpResponse:
    return HttpResponse(body, content_type=kind, headers={"Cache-Control": DAY})


@login_not_required
@require_GET
def manifest(request: HttpRequest) -> HttpResponse:
    """What an installed labsite is called and looks like.

    A manifest knows one scheme; the colours of the other one stand in each page's head.
    """
    start = reverse("runs:overview")
    shown = [("192", "192x192", "any"), ("512", "512x512", "any")]
    shown.append(("maskable-512", "512x512", "maskable"))
    pictures = [
        {
            "src": reverse("runs:icon", args=[name]),
            "sizes": size,
            "type": "image/png",
            "purpose": use,
        }
        for name, size, use in shown
    ]
    vector = {"src": static("favicon.svg"), "sizes": "any", "type": "image/svg+xml"}
    told = {
        "id": start,
        "name": "labsite",
        "short_name": "lab",
        "description": "The control room for unattended coding agents.",
        "start_url": start,
        "scope": start,
        "display": "standalone",
        "background_color": DARK,
        "theme_color": DARK,
        "icons": [*pictures, vector],
    }
    kind = "application/manifest+json"
    return HttpResponse(json.dumps(told), content_type=kind, headers={"Cache-Control": "no-cache"})


@login_not_required
@require_GET
def worker(request: HttpRequest) -> HttpResponse:
    """The service worker, at the root so that it may serve every page; its work is a static file."""
    known = {
        "version": _version(),
        "scope": reverse("runs:overview"),
        "offline": reverse("runs:offline"),
        "files": [*_files(), reverse("runs:offline")],
        "receipt": reverse("runs:push-receipt"),
        "renew": reverse("runs:push-renew"),
        "icon": reverse("runs:icon", args=["192"]),
        "badge": reverse("runs:icon", args=["badge-96"]),
    }
    text = f"const LAB = {json.dumps(known)};\nimportScripts({json.dumps(static('worker.js'))});\n"
    headers = {"Cache-Control": "no-cache", "Service-Worker-Allowed": reverse("runs:overview")}
    return HttpResponse(text, content_type="text/javascript", headers=headers)


@login_not_required
@require_GET
def offline(request: HttpRequest) -> HttpResponse:
    """What is shown while labsite cannot be reached. It holds no fact that could be old."""
    return HttpResponse(_offline_page(), headers={"Cache-Control": "no-cache"})


def _files() -> list[str]:
    return [static("lab.css"), static("favicon.svg")]


def _offline_page() -> str:
    return render_to_string("phone/offline.html", {"light": LIGHT, "dark": DARK})


@functools.cache
def _version() -> str:
    """Changes with whatever the worker keeps, so that browsers fetch it anew."""
    told = [*_files(), static("worker.js"), _offline_page()]
    return hashlib.sha256("\0".join(told).encode()).hexdigest()[:16]
