"""The pages on people and accounts, light and dark, desk and phone: axe finds nothing, nothing is cut."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from playwright.sync_api import Page, expect

from runs.models import ApiToken, Passkey
from runs.people import acts as people
from runs.people import api_tokens, invites, setup, stepup
from runs.people.roles import Role
from tests import make
from tests.fakes import START, World
from tests.web.browsing import OpenPage
from tests.web.looking import look, looks

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def addresses(world: World, operator: User) -> dict[str, str]:
    """Some people, and where the pages on them are."""
    vera = make.a_user("vera", operator=False)
    out = make.a_user("a-name-that-is-rather-long-and-has-no-place-to-break-it" * 2, operator=False)
    people.deactivate(world.lab, out.pk, by="anna")
    ines = people.add(world.lab, "ines", Role.OPERATOR, by="anna")
    for user in (operator, vera):
        for name, scope in (
            ("nightly", ApiToken.Scope.ACT),
            ("a long name " * 8, ApiToken.Scope.LOOK),
        ):
            until = START + timedelta(days=30) if scope == ApiToken.Scope.ACT else None
            api_tokens.make(world.lab, user, name.strip(), scope, until)
    api_tokens.make(world.lab, operator, "old", ApiToken.Scope.LOOK, START)
    passkey = {"handle": "h", "public_key": b"", "created_at": START, "user": operator}
    Passkey.objects.create(name="laptop", site="lab.example", credential_id="1", **passkey)
    Passkey.objects.create(
        name="the phone with the cracked screen " * 2, site="localhost", credential_id="2",
        used_at=START, **passkey,
    )  # fmt: skip
    token = invites.link_token(world.lab, ines)
    return {
        "people": "/people/", "person": f"/people/{vera.pk}/",
        "somebody out": f"/people/{out.pk}/", "account": "/account/",
        "invite": f"/invite/{ines.pk}/{token}/", "dead invite": "/invite/1/x/",
    }  # fmt: skip


def be_asked(page: Page, at: str) -> None:
    cookie = next(
        c["value"]
        for c in page.context.cookies()
        if c["name"] == django_settings.SESSION_COOKIE_NAME
    )
    session = SessionStore(cookie)
    session[stepup.CONFIRMED] = at
    session.save()


def test_every_page_on_people_is_accessible_and_fits(
    open_page: OpenPage,
    operator: User,
    world: World,
    addresses: dict[str, str],
) -> None:
    page = open_page("/account/", operator)
    be_asked(page, START.isoformat())
    wrong = []
    for name, address in addresses.items():
        page.goto(address)
        wrong += looks(page, name)
    page.goto("/account/tokens/new")
    page.get_by_label("Name").fill("nightly")
    page.get_by_role("button", name="Make token").click()
    expect(page.locator("#id_name_error")).to_be_visible()
    wrong += looks(page, "a wrong form")
    page.get_by_label("Name").fill("new")
    page.get_by_role("button", name="Make token").click()
    expect(page.locator("#token")).to_be_visible()
    wrong += looks(page, "token made")
    page.goto("/people/new")
    page.get_by_label("Name").fill("eve")
    page.get_by_role("button", name="Add and make a link").click()
    expect(page.locator("#link")).to_be_visible()
    wrong += looks(page, "link")
    be_asked(page, "2020-01-01T00:00:00+00:00")
    page.goto("/account/tokens/new")
    wrong += looks(page, "asked for a passkey")
    Passkey.objects.all().delete()
    page.goto("/account/tokens/new")
    wrong += looks(page, "asked for the password")
    page.get_by_role("button", name="Go on").click()
    expect(page.locator("#id_password_error")).to_be_visible()
    wrong += looks(page, "wrong password")
    assert wrong == []


@pytest.mark.parametrize("width", [1440, 390])
def test_the_pages_before_somebody_is_logged_in_are_accessible_and_fit(
    open_page: OpenPage, operator: User, addresses: dict[str, str], world: World, width: int
) -> None:
    page = open_page("/", operator, width=width)
    page.context.clear_cookies()
    page.goto("/login/")
    expect(page.get_by_role("button", name="Use a passkey")).to_be_visible()
    assert look(page, "login", "light", width) == []
    User.objects.all().delete()
    world.lab.paths.state.mkdir(parents=True, exist_ok=True)
    page.goto(setup.link_path(setup.link_token(world.lab.paths) or ""))
    expect(page.get_by_label("Name")).to_be_visible()
    assert look(page, "setup", "light", width) + look(page, "setup", "dark", width) == []


def test_on_a_phone_account_people_and_the_way_out_are_reached(
    open_page: OpenPage, operator: User, addresses: dict[str, str]
) -> None:
    page = open_page("/", operator, width=390)
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Account").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("anna")
    page.get_by_role("main").get_by_role("link", name="People").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("People")
    page.go_back()
    page.get_by_role("main").get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
