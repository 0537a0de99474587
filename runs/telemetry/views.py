"""`/metrics`: figures for Prometheus, for a token or for programs of this machine alone."""

from __future__ import annotations

import logging

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from runs import wiring
from runs.telemetry import exposition, reading, rules
from runs.telemetry.rules import Asker
from runs.web import answers

FORWARDED = ("X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP")
OF_PROXIES = (*FORWARDED, "Forwarded", "Via")

logger = logging.getLogger(__name__)


@login_not_required
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """All figures; 404 for whoever may not read them, 503 when they cannot be read."""
    if not rules.may_read(_asker(request), settings.METRICS_TOKEN, _has_proxy()):
        return _plain("Not found\n", 404)
    try:
        found = reading.families(wiring.lab(), settings.METRICS_PROJECTS, settings.HUEY)
    except Exception:
        logger.exception("metrics were not read")
        return _plain("Not available\n", 503)
    return answers.fresh(HttpResponse(exposition.text(found), content_type=exposition.CONTENT_TYPE))


def _has_proxy() -> bool:
    """Whether the settings tell of one, though it may hand on neither headers nor the name."""
    return settings.BEHIND_PROXY or settings.HTTPS or bool(settings.CSRF_TRUSTED_ORIGINS)


def _asker(request: HttpRequest) -> Asker:
    scheme, _, shown = request.headers.get("Authorization", "").partition(" ")
    name = request.get_host()
    bare = name if name.endswith("]") else name.rpartition(":")[0] or name
    return Asker(
        peer=request.META.get("REMOTE_ADDR") or "",
        name=bare,
        is_forwarded=any(header in request.headers for header in OF_PROXIES),
        shown=shown.strip() if scheme.lower() == "bearer" else scheme,
    )


def _plain(words: str, status: int) -> HttpResponse:
    return answers.fresh(HttpResponse(words, status=status, content_type="text/plain"))
