"""The receipt of a run as a file: HTML that opens offline, and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_GET

from runs import wiring
from runs.models import Run
from runs.web import answers
from runs.web.access import look

if TYPE_CHECKING:
    from runs.run_pages.receipt_shapes import Receipt


@require_GET
@look
def receipt_html(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """The receipt as one file for people."""
    from runs.run_pages import receipt

    return _file(receipt.as_html(_made(run_id)), "text/html", f"run-{run_id}-receipt.html")


@require_GET
@look
def receipt_json(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """The receipt for programs."""
    from runs.run_pages import receipt

    return _file(receipt.as_json(_made(run_id)), "application/json", f"run-{run_id}-receipt.json")


def _made(run_id: int) -> Receipt:
    from runs.run_pages import receipt

    rows = Run.objects.select_related("project", "profile")
    return receipt.of(wiring.lab(), get_object_or_404(rows, pk=run_id))


def _file(content: str, kind: str, name: str) -> HttpResponse:
    answer = HttpResponse(content, content_type=f"{kind}; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    answer["X-Content-Type-Options"] = "nosniff"
    return answers.fresh(answer)
