"""Asked for again: who wants to do this has shown who they are within the last ten minutes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import resolve_url
from django.utils.http import url_has_allowed_host_and_scheme

from runs import wiring
from runs.people import confirming
from runs.web import access
from runs.web.access import P, View

CONFIRMED = "confirmed_at"
# Pages of admin that take or change secrets; the list of profiles can delete them.
GUARDED = ("admin:runs_agentprofile_", "admin:runs_project_change")
HARMLESS = "changelist"


def confirm(request: HttpRequest) -> None:
    """Note in the session that its owner has just shown who they are. Every login does."""
    request.session[CONFIRMED] = wiring.lab().now().isoformat()


def is_confirmed(request: HttpRequest) -> bool:
    """Whether the owner of the session has shown who they are within the last ten minutes."""
    noted = request.session.get(CONFIRMED)
    at = datetime.fromisoformat(noted) if isinstance(noted, str) else None
    return confirming.is_fresh(wiring.lab().now(), at)


def confirmed(view: View[P]) -> View[P]:
    """The view answers who was asked lately; others are asked first and led back to the page.

    It stands below the decorator that asks for a permission. Put it before the page that shows
    a form as well as before its POST, so that nothing that was typed is lost.
    """

    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        return view(request, *args, **kwargs) if is_confirmed(request) else ask(request)

    return guarded


def ask(request: HttpRequest) -> HttpResponseBase:
    """The way to the question and back."""
    return access.by_way_of(request, resolve_url("runs:confirm"))


def safe_next(request: HttpRequest) -> str:
    """Where the question leads back to: a page of ours, whatever the address says."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    hosts = {request.get_host()}
    is_ours = url_has_allowed_host_and_scheme(wanted, hosts, require_https=request.is_secure())
    return wanted if is_ours else resolve_url("runs:overview")


class ConfirmSecrets:
    """Middleware: admin's pages with secrets are behind the same question."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self._get_response(request)

    def process_view(
        self, request: HttpRequest, view: Any, args: Any, kwargs: Any
    ) -> HttpResponseBase | None:
        match = request.resolver_match
        name = match.view_name if match else ""
        if not name.startswith(GUARDED):
            return None
        if name.endswith(HARMLESS) and request.method in ("GET", "HEAD"):
            return None
        return None if is_confirmed(request) else ask(request)
