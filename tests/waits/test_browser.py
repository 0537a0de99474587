"""A run that waits for a person, in a real browser: looked at, and answered from a phone."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from runs.models import Run
from tests.fakes import World
from tests.waits.test_answering import idle, waiting
from tests.waits.test_stepper import project, run
from tests.web import board_rows as rows
from tests.web.browsing import OpenPage
from tests.web.looking import looks

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["idle", "project", "run", "waiting"]
PHONE = 390


def test_a_wait_is_accessible_and_fits(
    open_page: OpenPage, operator: User, world: World, waiting: Run
) -> None:
    rows.a_tick(world)
    wrong = looks(open_page("/", operator), "waits overview")
    wrong += looks(open_page(f"/runs/{waiting.pk}/", operator), "waits choices")
    assert wrong == []


def test_a_wait_for_a_word_is_accessible_and_fits(
    open_page: OpenPage, operator: User, world: World, idle: Run
) -> None:
    assert looks(open_page(f"/runs/{idle.pk}/", operator), "waits text") == []


@pytest.mark.quick("an answer given on a phone")
def test_a_permission_is_given_from_a_phone(
    open_page: OpenPage, operator: User, world: World, waiting: Run
) -> None:
    page = open_page(f"/runs/{waiting.pk}/", operator, width=PHONE, clock=True)
    page.get_by_role("button", name="1. Yes").click()
    expect(page.locator("#banner")).to_contain_text("Sent.")
    expect(page.locator("#run-wait")).to_contain_text("anna sent")
    assert world.sessions.typed == [(waiting.session, "key 1")]


def test_what_is_typed_stays_while_the_page_refreshes(
    open_page: OpenPage, operator: User, world: World, idle: Run
) -> None:
    page = open_page(f"/runs/{idle.pk}/terminal/", operator, width=PHONE, clock=True)
    page.get_by_label("Tell the agent").fill("Use the other client.")
    world.sessions.text[idle.session] = "news on its screen"
    page.clock.run_for(10_000)
    expect(page.locator("#screen")).to_contain_text("news on its screen")
    expect(page.get_by_label("Tell the agent")).to_have_value("Use the other client.")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator("#banner")).to_contain_text("Sent.")
    assert world.sessions.typed == [(idle.session, "Use the other client.")]
