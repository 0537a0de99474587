"""The palette and the keys as somebody with a keyboard alone uses them, and how they look."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, TimeoutError, expect

from runs.models import Run
from tests import make
from tests.fakes import World
from tests.patience import BROWSER_PATIENCE
from tests.web import board_rows as rows
from tests.web.browsing import OpenPage
from tests.web.looking import looks

pytestmark = pytest.mark.django_db(transaction=True)
SOON = 20_000  # milliseconds in which a page is there, as a rule


def test_everything_is_reached_by_keys_alone(
    open_page: OpenPage, operator: User, world: World
) -> None:
    project = rows.full_board(world, 2)
    run = make.a_run(project, "70", slot=9, issue_title="Zebra crossing", outcome="died")
    page = open_page("/history/", operator)
    wrong: list[object] = []

    # `/` and Ctrl-K open it; the first option is chosen, arrows move, Enter goes there.
    page.locator("#main").focus()
    page.keyboard.press("/")
    field, options = (
        page.get_by_role("combobox", name="Search, go and act"),
        page.locator("#palette-list > [role=option]"),
    )
    expect(field).to_be_focused()
    expect(options.first).to_have_attribute("aria-selected", "true")
    page.keyboard.type("zebra")
    expect(options).to_have_count(1)
    expect(page.locator("#palette-said")).to_have_text("1 result")
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(
        "demo"
    )  # at once: half a word has results of its own, which come first
    expect(page.locator("#palette-said")).not_to_have_text("1 result")
    page.keyboard.press("ArrowDown")
    second = options.nth(1)
    expect(second).to_have_attribute("aria-selected", "true")
    expect(field).to_have_attribute("aria-activedescendant", str(second.get_attribute("id")))
    wrong += looks(page, "palette")
    page.keyboard.press("Escape")
    expect(page.locator("#palette")).not_to_be_visible()
    page.get_by_role("searchbox").first.focus()
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox").first).to_have_value("/")
    page.keyboard.press("Control+k")
    page.keyboard.type("zebra")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/runs/{run.pk}/")

    # An act goes through its own door.
    page.keyboard.press("Control+k")
    page.keyboard.type("turn on automatic demo")
    expect(options).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.locator("#banner")).to_contain_text("Automatic work is on")

    # Keys of their own: go, rows, the sheet; and off where somebody turns them off.
    _goes(page, "h", "**/history/")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    focused = page.locator("#history-rows tbody tr a:focus")
    expect(focused).to_have_count(1)
    assert focused.evaluate("a => a.closest('tr') === a.closest('tbody').rows[0]")

    # A row that was chosen by its key stays chosen when the list changes; one page asks, one tells.
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("x")
    chosen = page.locator("input[data-pick]:checked")
    expect(chosen).to_have_value(str(run.pk))
    Run.objects.filter(pk=run.pk).update(issue_title="Zebra seen")
    page.evaluate("htmx.trigger(document.getElementById('live'), 'lab:refresh')")
    expect(page.locator(f"#row-{run.pk}")).to_contain_text("Zebra seen")
    expect(chosen).to_have_value(str(run.pk))
    wrong += looks(page, "chosen")
    page.get_by_role("button", name="Dismiss…").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Dismiss 1 run?")
    wrong += looks(page, "asked")
    page.get_by_role("button", name="Dismiss 1 run").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Dismiss: 1 done")
    wrong += looks(page, "told")

    page.keyboard.press("?")
    sheet = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(sheet).to_contain_text("Its parked work")
    wrong += looks(page, "sheet")
    sheet.get_by_role("checkbox").uncheck()
    sheet.get_by_role("button", name="Close").click()
    page.keyboard.press("/")
    expect(page.locator("#palette")).not_to_be_visible()
    page.goto("/shortcuts/")
    expect(page.get_by_role("checkbox")).not_to_be_checked()
    page.keyboard.press("?")
    expect(sheet).not_to_be_visible()
    page.keyboard.press("Control+k")
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    page.get_by_role("checkbox").check()
    page.locator("h1").click()
    page.keyboard.press("?")
    expect(sheet).to_be_visible()
    assert wrong == []


def _goes(page: Page, key: str, to: str) -> None:
    """`g` and another key, which has to follow soon: a busy machine may need a second try."""
    for patience in (*[SOON] * 9, BROWSER_PATIENCE):
        page.keyboard.press("g")
        page.keyboard.press(key)
        try:
            return page.wait_for_url(to, timeout=patience)
        except TimeoutError:
            continue
    pytest.fail(f"the keys lead nowhere: {page.url}")


def test_search_works_without_javascript(open_page: OpenPage, operator: User, world: World) -> None:
    project = rows.full_board(world, 1)
    page = open_page("/", operator, java_script_enabled=False)
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Search").click()
    page.get_by_role("searchbox").fill("turn on demo")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("button", name=re.compile("Turn on automatic work in demo")).click()
    expect(page.locator("#banner")).to_contain_text("Automatic work is on")
    project.refresh_from_db()
    assert project.is_auto
