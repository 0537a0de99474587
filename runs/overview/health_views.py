"""Health for machines: no login, no names, no secrets."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from runs import wiring
from runs.overview import worker_health
from runs.web import answers

T = TypeVar("T")

logger = logging.getLogger(__name__)


@login_not_required
@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers; nothing else is asked."""
    return answers.fresh(HttpResponse("ok\n", content_type="text/plain"))


@login_not_required
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """Whether database and queue answer; 503 when not. A late tick is told, and is no 503."""
    ticks = _asked(_last_tick)
    waiting = _asked(settings.HUEY.pending_count)
    is_ready = ticks is not None and waiting is not None
    body: dict[str, object] = {
        "ready": is_ready,
        "database": _word(ticks is not None),
        "queue": _word(waiting is not None),
    }
    if ticks is not None:
        body["last_tick"] = {
            "at": ticks.at.isoformat() if ticks.at else None,
            "age_seconds": int(ticks.age.total_seconds()) if ticks.age is not None else None,
            "is_late": ticks.is_late,
        }
        if ticks.is_late:
            body["warning"] = "The last tick is older than two intervals. Is the worker running?"
    return answers.fresh(JsonResponse(body, status=200 if is_ready else 503))


def _asked(question: Callable[[], T]) -> T | None:
    """The answer, or None with the reason in the log and not on the page."""
    try:
        return question()
    except Exception:
        logger.exception("a part of the product did not answer")
        return None


def _word(does_answer: bool) -> str:
    return "answers" if does_answer else "does not answer"


def _last_tick() -> worker_health.TickAge:
    lab = wiring.lab()
    return worker_health.last_tick(lab.now(), lab.host)
