"""The parked strip in a real browser: asked for when opened, left alone by pushes, armed for 5 s."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from runs.kept import counts
from runs.models import Project, Rescue
from tests.chromium import press_twice
from tests.fakes import FakeTree, World
from tests.web import board_rows as rows
from tests.web.browsing import OpenPage
from tests.web.people import confirm_everybody

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project(world: World) -> Project:
    """Issue 7 is parked, dirty, in a worktree."""
    rows.a_tick(world)
    made = rows.a_tracked_project()
    tree = world.lab.paths.worktrees / "demo-7"
    world.repos.heads[made.repo(world.lab.paths)] = {"afk/7": "a" * 40}
    world.repos.trees[tree] = FakeTree("afk/7", "a" * 40, is_dirty=True)
    tree.mkdir(parents=True)
    counts.take(world.lab, made)
    return made


def _asked(page: Page) -> list[str]:
    """The addresses of details that the page asks for from now on."""
    seen: list[str] = []
    page.on("request", lambda one: seen.append(one.url) if "/parked/list" in one.url else None)
    return seen


@pytest.mark.row("LAB-117", "LAB-131", level="browser")
def test_details_are_asked_for_at_each_opening_and_no_refresh_closes_them(
    open_page: OpenPage, operator: User, world: World, project: Project
) -> None:
    page = open_page(f"/projects/{project.pk}/", operator)
    seen = _asked(page)
    strip = page.locator("#parked details")
    expect(page.locator("#parked-count")).to_have_text("1")
    with page.expect_response("**/live"):
        page.evaluate("htmx.trigger('#live', 'lab:refresh')")
    assert seen == []
    page.locator("#parked summary").click()
    expect(page.locator("#parked-list")).to_contain_text("dirty")
    assert len(seen) == 1
    Project.objects.update(warning="The tracker could not be read.")
    with page.expect_response("**/live"):
        page.evaluate("htmx.trigger('#live', 'lab:refresh')")
    expect(page.locator("#project-held-up")).to_contain_text("could not be read")
    expect(strip).to_have_attribute("open", "")
    expect(page.locator("#parked-list")).to_contain_text("dirty")
    page.locator("#parked summary").click()
    expect(strip).not_to_have_attribute("open", "")
    assert len(seen) == 1
    next(iter(world.repos.trees.values())).is_dirty = False
    page.locator("#parked summary").click()
    expect(page.locator("#parked-list")).to_contain_text("clean")
    assert len(seen) == 2


@pytest.mark.row("LAB-117", level="browser")
def test_the_strip_is_not_shown_while_nothing_is_parked_and_comes_by_a_refresh(
    open_page: OpenPage, operator: User, world: World, project: Project
) -> None:
    Project.objects.update(parked=0)
    page = open_page(f"/projects/{project.pk}/", operator)
    expect(page.locator("#parked")).to_be_hidden()
    Project.objects.update(parked=3)
    page.evaluate("htmx.trigger('#live', 'lab:refresh')")
    expect(page.locator("#parked")).to_be_visible()
    expect(page.locator("#parked-count")).to_have_text("3")


@pytest.mark.row("LAB-123", level="browser")
def test_the_first_press_arms_for_five_seconds_and_the_second_discards(
    open_page: OpenPage, operator: User, world: World, project: Project
) -> None:
    page = open_page(f"/projects/{project.pk}/parked/", operator, clock=True)
    confirm_everybody()
    posts: list[str] = []
    page.on(
        "request", lambda one: posts.append(str(one.post_data)) if one.method == "POST" else None
    )
    button = page.locator("#parked-afk7 button.danger")
    button.click()
    expect(button).to_contain_text("Press again")
    page.clock.run_for(6000)
    expect(button).to_contain_text("Discard")
    button.click()
    expect(button).to_contain_text("Press again")
    assert posts == []
    page.clock.run_for(1000)
    button.click()
    expect(page.locator("#parked-list")).to_contain_text("Nothing is parked")
    expect(page.locator("#rescues")).to_contain_text("afk/7")
    assert len(posts) == 1
    assert not (world.lab.paths.worktrees / "demo-7").exists()


@pytest.mark.parametrize("with_script", [True, False], ids=["htmx", "no JavaScript"])
def test_a_discard_and_a_restore_in_both_styles(
    open_page: OpenPage, operator: User, world: World, project: Project, with_script: bool
) -> None:
    page = open_page(
        f"/projects/{project.pk}/parked/", operator, width=390, java_script_enabled=with_script
    )
    confirm_everybody()
    discard = page.get_by_role("button", name="Discard afk/7")
    if with_script:
        press_twice(discard)
    else:
        discard.click()
        page.get_by_role("button", name="Discard it").click()
    expect(page.locator("#banner")).to_contain_text("afk/7 was discarded")
    expect(page.locator("#parked-list")).to_contain_text("Nothing is parked")
    page.locator("#rescues").get_by_role("link", name="afk/7").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Rescue of afk/7")
    page.go_back()
    page.get_by_role("button", name="Restore afk/7").click()
    expect(page.locator("#rescues")).to_contain_text("restored as afk/7")
    expect(page.locator("#parked-list")).to_contain_text("dirty")
    assert Rescue.objects.get().restored_as == "afk/7"


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pages_fit_and_have_no_faults(
    open_page: OpenPage, operator: User, world: World, project: Project, width: int, scheme: Any
) -> None:
    page = open_page(f"/projects/{project.pk}/parked/", operator, width=width, color_scheme=scheme)
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) <= 0
    expect(page.get_by_role("heading", level=1)).to_have_text("Parked work")
