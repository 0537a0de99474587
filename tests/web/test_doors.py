"""Every address of the product, walked: nothing changes for somebody who has not logged in."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.urls.resolvers import RoutePattern

from runs.models import Project, Run, Settings
from runs.web import access
from tests import make
from tests.fakes import World
from tests.web.people import text_of

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

# Doors that are open to everyone on purpose: they let people in, or tell machines how we are.
OPEN = {"login", "logout", "setup", "invite", "healthz", "readyz"}
# It asks for a token, or that a program of this machine asks: tests/telemetry/.
OPEN |= {"metrics"}
OPEN |= {"login-again", "passkey-login", "passkey-login-question"}
# One asks for a token itself; the other is there for strangers only where somebody made it public.
OPEN |= {"history-feed", "badge-svg"}
# It asks for a join token: tests/hosts/test_joining.py.
OPEN |= {"host-join"}
# A browser fetches them without its log-in; they tell of no run.
OPEN |= {"manifest", "worker", "offline", "favicon", "icon"}
# These ask for a token that only one device could decrypt: tests/phone/test_push_acts.py.
OPEN |= {"push-act", "push-receipt", "push-renew"}
# Everybody minds their own account, whatever their role.
OWN = {"away-dismiss", "confirm", "account", "password", "token-new", "token-revoke"}
OWN |= {"passkey-new", "passkey-add", "passkey-remove"}
OWN |= {"passkey-confirm", "passkey-confirm-question"}
OWN |= {"admin-login", "admin-password", "password_change"}
# These doors ask for a token instead of a login, a run's or a person's, or for a forge's signature;
# they have tests of their own.
OTHER_KEYS = ("/agent/", "/api/v1/", "/hooks/")


def _addresses(patterns: Any, prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    for pattern in patterns:
        route = prefix + (
            str(pattern.pattern) if isinstance(pattern.pattern, RoutePattern) else "<path:rest>"
        )
        if isinstance(pattern, URLResolver):
            yield from _addresses(pattern.url_patterns, route)
        else:
            yield _filled(route), pattern


def _filled(route: str) -> str:
    """The route with something plausible in each place; projects and runs have the id 1."""
    filled = ""
    for part in route.replace(">", "<").split("<"):
        name = part.partition(":")[2]
        filled += ("1" if name.endswith(("id", "number", "pk")) else "x") if name else part
    return f"/{filled}"


WHAT = {"title": "x", "name": "x", "source": "/x"}
ADDRESSES = [
    (address, pattern.name or "")
    for address, pattern in _addresses(get_resolver().url_patterns)
    if pattern.name not in OPEN and not address.startswith(OTHER_KEYS)
]


@pytest.fixture
def things(world: World) -> dict[str, int]:
    """Something of everything that an action could hit; what the tables hold before."""
    project = make.a_project(pk=1)
    make.a_run(project, pk=1)
    Settings.current()
    return _counts()


@functools.cache
def _question() -> str:
    """How many rows each table holds, in one statement: it is asked some fifteen hundred times."""
    names = [model._meta.db_table for model in apps.get_models()]
    counted = [f"(SELECT COUNT(*) FROM {connection.ops.quote_name(name)})" for name in names]  # noqa: S608
    return f"SELECT {', '.join(counted)}"


def _counts() -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute(_question())
        found = cursor.fetchone()
    rows = dict(zip((model._meta.label for model in apps.get_models()), found, strict=True))
    rows.pop("sessions.Session")
    rows.pop("runs.Tries")
    rows["active"] = Run.objects.active().count()
    rows["projects"] = Project.objects.filter(last_opened_at=None).count()
    return rows


def _changed(before: dict[str, int]) -> str:
    now = _counts()
    return (
        "changed " + ", ".join(one for one in now if now[one] != before[one])
        if now != before
        else ""
    )


def test_the_walk_finds_the_doors_that_matter() -> None:
    names = {name for _, name in ADDRESSES}
    assert {
        "overview",
        "start",
        "stop",
        "stop-all",
        "settings",
        "project-new",
        "issue-new",
    } <= names
    assert {"runs_settings_change", "runs_run_changelist"} <= names


def _breaches(ask: Callable[[str, str], str]) -> list[str]:
    """What is wrong at which address. In one test, since walking takes less than starting each."""
    found = ((address, name, ask(address, name)) for address, name in ADDRESSES)
    return [f"{address} ({name}): {wrong}" for address, name, wrong in found if wrong]


@pytest.mark.long
@pytest.mark.row("X-10", level="contract")
def test_a_post_without_login_is_turned_away_and_has_no_effect(
    world: World, things: dict[str, int]
) -> None:
    def ask(address: str, name: str) -> str:
        client = Client()
        answer = client.post(address, WHAT)
        if answer.status_code != 302 or not answer.headers["Location"].startswith("/login/"):
            return f"answered {answer.status_code}"
        part = client.post(address, WHAT, headers={"HX-Request": "true"})
        if part.status_code != 401 and not part.headers["Location"].startswith("/login/"):
            return f"answered a part of a page with {part.status_code}"
        return ("told something" if part.content else "") or _changed(things)

    assert _breaches(ask) == []
    assert world.sessions.calls == 0


@pytest.mark.row("X-10", level="contract")
def test_a_page_is_read_by_people_who_logged_in(client: Client, world: World) -> None:
    def ask(address: str, name: str) -> str:
        answer = client.get(address)
        is_away = answer.status_code == 302 and answer.headers["Location"].startswith("/login/")
        return "" if is_away else f"answered {answer.status_code}"

    assert _breaches(ask) == []


@pytest.mark.long
@pytest.mark.row("X-10", level="contract")
def test_a_post_of_somebody_who_may_only_look_has_no_effect(
    client: Client, world: World, viewer: User, things: dict[str, int]
) -> None:
    client.force_login(viewer)
    before = _counts()

    def ask(address: str, name: str) -> str:
        answer = client.post(address, WHAT)
        if name in OWN:
            if answer.status_code not in (302, 303, 400, 404, 405):
                return f"answered {answer.status_code}"
        elif answer.status_code != 405 and (
            answer.status_code != 403 or "Nothing was changed." not in text_of(answer)
        ):
            return f"answered {answer.status_code} and did not say that nothing was changed"
        return _changed(before)

    assert _breaches(ask) == []
    assert Run.objects.active().exists()


@pytest.mark.long
@pytest.mark.row("X-10", level="contract")
def test_a_post_without_csrf_token_has_no_effect(
    world: World, operator: User, things: dict[str, int]
) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(operator)
    before = _counts()

    def ask(address: str, name: str) -> str:
        answer = strict.post(address, WHAT)
        if answer.status_code != 403 or "Nothing was changed" not in text_of(answer):
            return f"answered {answer.status_code}"
        return _changed(before)

    assert _breaches(ask) == []


@pytest.mark.parametrize(
    ("who", "looks", "acts"),
    [
        pytest.param({"is_superuser": True}, True, True, id="superuser"),
        pytest.param({"may": True}, True, True, id="with the permission"),
        pytest.param({"is_staff": True}, True, False, id="staff without it"),
        pytest.param({}, True, False, id="any user"),
        pytest.param({"is_superuser": True, "is_active": False}, False, False, id="deactivated"),
    ],
)
def test_one_function_says_who_looks_and_who_acts(
    who: dict[str, bool], looks: bool, acts: bool
) -> None:
    from django.contrib.auth.models import Permission

    may = who.pop("may", False) if "may" in who else False
    user = User.objects.create_user("somebody", **who)
    if may:
        user.user_permissions.add(Permission.objects.get(codename="act"))
    user = User.objects.get(pk=user.pk)
    assert (access.may_look(user), access.may_act(user)) == (looks, acts)


def test_nobody_looks_or_acts_without_an_account() -> None:
    from django.contrib.auth.models import AnonymousUser

    assert (access.may_look(AnonymousUser()), access.may_act(AnonymousUser())) == (False, False)
