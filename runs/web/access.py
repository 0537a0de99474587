"""Who may look and who may act. Views and sockets ask here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.models import AnonymousUser, User
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render, resolve_url

from runs.web import answers

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]

MAY_ACT = "runs.act"
ONLY_LOOKING = (
    "You may look at everything here, but not change anything. Nothing was changed. "
    "Ask an admin for the permission to start and stop runs."
)


def may_look(user: User | AnonymousUser) -> bool:
    """Whether a user may read the pages and their pushes: anyone who is logged in."""
    return user.is_authenticated and user.is_active


def may_act(user: User | AnonymousUser) -> bool:
    """Whether a user may change anything: superusers, and whoever holds `runs.act`."""
    return may_look(user) and user.has_perm(MAY_ACT)


def username(request: HttpRequest) -> str:
    """The name that is written beside what this request does."""
    return request.user.get_username()


def look(view: View[P]) -> View[P]:
    """The view answers everyone who may look; others are sent to the login page."""

    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if not may_look(request.user):
            return to_login(request)
        return view(request, *args, **kwargs)

    return guarded


def act(view: View[P]) -> View[P]:
    """The view answers whoever may act; those who may only look get 403 and a reason (X-10)."""

    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if not may_look(request.user):
            return to_login(request)
        if not may_act(request.user):
            return refused(request)
        return view(request, *args, **kwargs)

    return guarded


def to_login(request: HttpRequest) -> HttpResponseBase:
    """The way to the login page and back, also for a part of a page.

    A redirect of a part would put the login form into the middle of the page, so htmx is told
    to leave the page instead.
    """
    answer = redirect_to_login(_page_of(request), resolve_url("runs:login"))
    if "HX-Request" not in request.headers:
        return answer
    return HttpResponse(
        status=403, headers={"HX-Redirect": answer.url, "Cache-Control": "no-store"}
    )


def refused(request: HttpRequest, text: str = ONLY_LOOKING) -> HttpResponse:
    """403 with the reason: in the banner for htmx, else as a page."""
    if answers.is_htmx(request):
        return answers.failed(request, text, 403, back="/")
    return render(request, "auth/refused.html", {"text": text}, status=403)


def _page_of(request: HttpRequest) -> str:
    """The path of the page that this request came from; it is where a login should lead back."""
    if answers.is_htmx(request):
        address = request.headers.get("HX-Current-URL", "")
    elif request.method in ("GET", "HEAD"):
        return request.get_full_path()
    else:
        address = request.headers.get("Referer", "")
    site = f"{request.scheme}://{request.get_host()}"
    return address.removeprefix(site) if address.startswith(f"{site}/") else "/"


class LoginRequired(LoginRequiredMiddleware):
    """Django's rule that every page needs a login, with an answer that htmx understands too."""

    def process_view(
        self, request: HttpRequest, view_func: Any, view_args: Any, view_kwargs: Any
    ) -> HttpResponseBase | None:
        """Views that need no login are answered before the session is read from the database."""
        if not getattr(view_func, "login_required", True):
            return None
        return super().process_view(request, view_func, view_args, view_kwargs)

    # The stubs promise a redirect only; Django itself passes on any response.
    def handle_no_permission(  # type: ignore[override]
        self, request: HttpRequest, view_func: Any
    ) -> HttpResponseBase:
        return to_login(request)
