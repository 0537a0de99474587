"""Who may look and who may act. Views and sockets ask here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.models import AnonymousUser, User
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render, resolve_url

from runs.people.roles import MAY_ACT
from runs.web import answers

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]

ONLY_LOOKING = (
    "You may look at everything here, but not change anything. Nothing was changed. "
    "Ask an admin for the permission to start and stop runs."
)
ONLY_ACTORS = (
    "The audit log is shown to those who may act. Nothing was changed. Ask an admin for that."
)
ONLY_ADMINS = "Only admins may do this. Nothing was changed. Ask one of them."


def may_look(user: User | AnonymousUser) -> bool:
    """Whether a user may read the pages and their pushes: anyone who is logged in."""
    return user.is_authenticated and user.is_active


def may_act(user: User | AnonymousUser) -> bool:
    """Whether a user may change anything: superusers, and whoever holds `runs.act`."""
    return may_look(user) and user.has_perm(MAY_ACT)


def may_administer(user: User | AnonymousUser) -> bool:
    """Whether a user may change people, budgets and profiles: superusers."""
    return may_look(user) and user.is_superuser


def who_may(people: Collection[int]) -> tuple[frozenset[int], frozenset[int]]:
    """Those of the people who may look, and those who may act, by `may_look` and `may_act`."""
    looking = User.objects.filter(pk__in=people, is_active=True)
    acting = User.objects.with_perm(MAY_ACT).filter(pk__in=people)
    return frozenset(looking.values_list("pk", flat=True)), frozenset(
        acting.values_list("pk", flat=True)
    )


def me(request: HttpRequest) -> User:
    """Whoever is logged in. Only behind `look`."""
    user = request.user
    assert isinstance(user, User)  # noqa: S101  (tells mypy)
    return user


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
    """The view answers whoever may act; those who may only look get 403 and a reason."""

    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if not may_look(request.user):
            return to_login(request)
        if not may_act(request.user):
            return refused(request)
        return view(request, *args, **kwargs)

    return guarded


def oversee(view: View[P]) -> View[P]:
    """The view answers whoever may act: what everybody did is no page for mere viewers."""

    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if not may_look(request.user):
            return to_login(request)
        if not may_act(request.user):
            return refused(request, ONLY_ACTORS)
        return view(request, *args, **kwargs)

    return guarded


def administer(view: View[P]) -> View[P]:
    """The view answers admins; everybody else gets 403 and a reason."""

    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if not may_look(request.user):
            return to_login(request)
        if not may_administer(request.user):
            return refused(request, ONLY_ADMINS)
        return view(request, *args, **kwargs)

    return guarded


def to_login(request: HttpRequest) -> HttpResponseBase:
    """The way to the login page and back.

    A part of a page gets 401 and nothing else: the page stays, with what was typed on it, and asks
    for the log-in itself.
    """
    if answers.is_htmx(request):
        return answers.fresh(HttpResponse(status=401))
    return by_way_of(request, resolve_url("runs:login"))


def by_way_of(request: HttpRequest, address: str) -> HttpResponseBase:
    """The way to another page and back, also for a part of a page.

    A redirect of a part would put the other page into the middle of this one, so htmx is told
    to leave the page instead.
    """
    answer = redirect_to_login(_page_of(request), address)
    if "HX-Request" not in request.headers:
        return answer
    return HttpResponse(
        status=403, headers={"HX-Redirect": answer.url, "Cache-Control": "no-store"}
    )


def refused(request: HttpRequest, text: str = ONLY_LOOKING) -> HttpResponse:
    """403 with the reason: in the banner for htmx, else as a page."""
    if answers.is_htmx(request):
        return answers.failed(request, text, 403, back="/")
    return render(request, "people/refused.html", {"text": text}, status=403)


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
        match = request.resolver_match
        if match and "admin" in match.app_names and may_look(request.user):
            # Admin itself would send them to a login page, which sends them back.
            return None if request.user.is_staff else refused(request, ONLY_ADMINS)
        return super().process_view(request, view_func, view_args, view_kwargs)

    # The stubs promise a redirect only; Django itself passes on any response.
    def handle_no_permission(  # type: ignore[override]
        self, request: HttpRequest, view_func: Any
    ) -> HttpResponseBase:
        return to_login(request)
