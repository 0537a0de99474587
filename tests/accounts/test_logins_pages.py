"""The banner that says an agent is logged out, and the page that logs it in."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import expect

from runs.accounts import logins
from runs.models import AgentProfile, LoginAttempt, Project, Settings
from tests import make
from tests.fakes import World
from tests.web.browsing import OpenPage
from tests.web.looking import look
from tests.web.people import text_of

pytestmark = pytest.mark.django_db

OUT = "is logged out."


@pytest.fixture
def profile(world: World) -> AgentProfile:
    made = make.an_agent(login_command=["check"], login_argv=["log-in"])
    Settings.current()
    Settings.objects.update(agent=made)
    return made


@pytest.fixture
def program(world: World) -> World:
    """A log-in program that shows its link at once."""

    def start(order: Any) -> None:
        world.sessions.appear(order.session, order.marker)
        world.sessions.text[order.session] = "Open https://login.example/x\nCode:"

    world.sessions.start = start  # type: ignore[method-assign]
    return world


@pytest.mark.row("LAB-68", level="contract")
def test_a_logged_out_agent_shows_its_banner_on_every_page(
    anna: Client, vera: Client, world: World, profile: AgentProfile
) -> None:
    other = make.an_agent("Other", login_command=["check"])
    project = make.a_project(agent=other)
    assert OUT not in text_of(anna.get("/"))
    world.login.answer = False
    logins.ask(world.lab, profile)
    for page in ("/", f"/projects/{project.pk}/", "/settings/"):
        assert f"Test agent {OUT}" in text_of(anna.get(page))
    assert "/login/begin" not in text_of(vera.get("/"))
    assert f"Other {OUT}" not in text_of(anna.get("/"))
    logins.ask(world.lab, other)
    assert f"Other {OUT}" in text_of(anna.get("/"))
    world.login.answer = True
    for one in AgentProfile.objects.all():
        logins.ask(world.lab, one)
    assert OUT not in text_of(anna.get("/"))


@pytest.mark.row("LAB-133", level="contract")
def test_the_whole_way_from_the_banner_to_the_login(
    anna: Client, program: World, profile: AgentProfile, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    page = f"/settings/agents/{profile.pk}/login"
    program.login.answer = False
    assert "Begin" in text_of(anna.get(page))
    assert anna.post(f"{page}/begin").status_code == 303
    assert "https://login.example/x" in text_of(anna.get(page))
    for wrong in ("", "a\x07b"):
        assert anna.post(f"{page}/code", {"code": wrong}).status_code == 303
        assert program.sessions.typed == []
    program.login.answer = True
    done = anna.post(f"{page}/code", {"code": "secret77"}, follow=True)
    assert "is logged in. New sessions start again." in text_of(done)
    assert "secret77" not in text_of(done) + caplog.text
    assert program.sessions.all == {}


@pytest.mark.row("LAB-133", level="contract")
def test_a_log_in_can_be_ended_and_none_is_open_then(
    anna: Client, program: World, profile: AgentProfile
) -> None:
    page = f"/settings/agents/{profile.pk}/login"
    anna.post(f"{page}/begin")
    anna.post(f"{page}/end")
    assert program.sessions.all == {}
    for act in ("code", "end"):
        answer = anna.post(f"{page}/{act}", {"code": "x"}, headers={"HX-Request": "true"})
        assert answer.status_code == 409


def test_an_agent_without_a_program_offers_none(anna: Client, world: World) -> None:
    plain = make.an_agent("plain")
    page = f"/settings/agents/{plain.pk}/login"
    assert "/begin" not in text_of(anna.get(page))
    answer = anna.post(f"{page}/begin", headers={"HX-Request": "true"})
    assert answer.status_code == 409
    assert not LoginAttempt.objects.exists()


def test_only_those_who_may_act_see_the_link(
    vera: Client, world: World, profile: AgentProfile
) -> None:
    page = f"/settings/agents/{profile.pk}/login"
    assert vera.get(page).status_code == 403
    assert vera.post(f"{page}/begin").status_code == 403


@pytest.mark.row("LAB-133", level="browser")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 390)])
def test_in_a_browser_an_agent_is_logged_in(
    open_page: OpenPage,
    operator: User,
    program: World,
    profile: AgentProfile,
    scheme: str,
    width: int,
) -> None:
    program.login.answer = False
    logins.ask(program.lab, profile)
    page = open_page("/", operator, width=width, color_scheme=scheme)
    wrong = look(page, "banner", scheme, width)
    page.locator("#logged-out").get_by_role("link", name="Log in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Log in Test agent")
    wrong += look(page, "begin", scheme, width)
    page.get_by_role("button", name="Begin").click()
    expect(page.locator("#login-link")).to_have_attribute("href", "https://login.example/x")
    wrong += look(page, "link", scheme, width)
    program.login.answer = True
    page.get_by_role("textbox", name="Code").fill("abc")
    page.get_by_role("button", name="Give the code").click()
    expect(page.get_by_text("is logged in. New sessions start again.")).to_be_visible()
    expect(page.locator("#logged-out")).not_to_contain_text("logged out")
    assert Project.objects.count() == 0
    assert wrong == []
