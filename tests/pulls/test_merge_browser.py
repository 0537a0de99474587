"""From review to merge with one hand, with and without scripts; and the new pages' looks."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import expect

from runs.core.states import NoticeKind
from runs.models import Project
from tests import make
from tests.fakes import World
from tests.pulls.review_desk import BEFORE, ORIGIN, Review
from tests.web import board_rows as rows
from tests.web.browsing import OpenPage
from tests.web.looking import looks
from trackers.builtin import store
from trackers.builtin.models import Issue

pytestmark = pytest.mark.django_db(transaction=True)

PHONE = 390


@pytest.fixture
def review(world: World) -> Review:
    made = Review(world)
    rows.a_tick(world)
    return made


@pytest.mark.quick("review and merge on a phone")
@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_from_review_to_merge_on_a_phone(
    open_page: OpenPage, operator: User, review: Review, scripts: bool
) -> None:
    root = review.project.tracker_root
    issue = store.create_issue(
        root, title="x", body="", author="a", labels=(), at=review.world.clock.now
    )
    review.pull.__class__.objects.update(body=f"Closes #{issue}")

    page = open_page("/", operator, width=PHONE, java_script_enabled=scripts, clock=scripts)
    page.locator("#needs-you").get_by_role("link", name="Review").click()
    page.get_by_role("link", name="Files").first.click()
    expect(page.locator("#file-tree")).to_contain_text("app.py")
    page.get_by_role("link", name="Merge…").click()
    merge = page.locator("#pull-merge").get_by_role("button").first
    expect(merge).to_be_in_viewport()
    expect(merge).to_have_text("Merge")
    box = merge.bounding_box()
    assert box is not None
    assert box["width"] > 250  # either thumb reaches it
    assert box["height"] >= 43.5
    merge.click()
    if scripts:
        expect(merge).to_have_text("Press again: merge it")
        assert review.pull.state == "open"
        merge.click()

    expect(page.locator("#pull-state")).to_contain_text("merged by anna")
    expect(page.locator("#pull-merge")).to_contain_text("It was merged into main by anna.")
    expect(page.locator("#banner")).to_contain_text(f"Issue {issue} is closed.")
    expect(page.get_by_role("button", name="Close without merging")).to_have_count(0)
    assert (review.pull.state, review.pull.merge_by) == ("merged", "anna")
    assert not Issue.objects.get(number=issue).is_open
    assert review.git.refs[f"{ORIGIN}main"] == review.head


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_a_conflict_that_came_meanwhile_is_explained(
    open_page: OpenPage, operator: User, review: Review, scripts: bool
) -> None:
    page = open_page(review.at, operator, width=PHONE, java_script_enabled=scripts, clock=scripts)
    other = review.git.commit({**BEFORE, "src/app.py": "other\n"}, review.base, subject="fix: x")
    review.git.refs[f"{ORIGIN}main"] = other
    merge = page.locator("#pull-merge").get_by_role("button").first
    merge.click()
    if scripts:
        merge.click()
    expect(page.locator("#banner")).to_contain_text("src/app.py")
    expect(page.locator("#pull-merge")).to_contain_text("change the same lines")
    expect(page.locator("#pull-merge").get_by_role("button")).to_have_count(1)
    assert review.pull.state == "open"


def test_what_was_missed_is_put_away(open_page: OpenPage, operator: User, world: World) -> None:
    project = rows.a_tracked_project()
    page = open_page("/", operator, width=PHONE)
    # Before the clock moves: the page that is open asks by itself, and may be the first to come back.
    make.a_run(project, "1", outcome="died", ended_at=world.clock.now + timedelta(hours=8))
    world.clock.forward(hours=8)
    page.reload()
    card = page.locator("#away")
    expect(card).to_contain_text("1 died")
    card.get_by_role("button", name="Dismiss").click()
    expect(page.get_by_text("While you were away")).to_have_count(0)
    page.reload()
    expect(page.get_by_text("While you were away")).to_have_count(0)


def missed(world: World, project: Project) -> None:
    for number, outcome in enumerate(("died", "succeeded", "stopped")):
        title = "A title that goes on and on and on, " * 6
        make.a_run(
            project,
            str(300 + number),
            outcome=outcome,
            ended_at=world.clock.now,
            issue_title=title,
            pull_number=4,
            cost_usd="1.5",
            tokens_in=123456,
        )
    text = "paused after 3 failed runs in a row; reset it when you have looked"
    rows.tell(world, text, NoticeKind.AUTO_PAUSED, project=project, by="anna")
    rows.tell(world, "x" * 300, NoticeKind.PULL_MERGED, project=project, by="anna")


def test_the_new_pages_are_accessible_and_fit(
    open_page: OpenPage,
    operator: User,
    world: World,
    review: Review,
    client: Client,
) -> None:
    project = review.project
    client.force_login(operator)
    client.get("/")
    Project.objects.update(is_auto=True, streak=3)
    world.clock.forward(hours=8)
    missed(world, project)
    page = open_page("/", operator)
    expect(page.locator("#away")).to_contain_text("1 died")
    wrong: list[object] = []
    pages = {"merge overview": "/", "audit": "/audit/", "audit none": "/audit/?by=zoe&since=x"}
    for name, address in {**pages, "merge": review.at}.items():
        page.goto(address)
        wrong += looks(page, name)
    long = "src/" + "a_very_long_name_" * 8 + ".py"
    other = review.git.commit({**BEFORE, "src/app.py": "o\n", long: "x"}, review.base)
    review.git.refs[f"{ORIGIN}main"] = other
    page.goto(review.at)
    wrong += looks(page, "conflict")
    assert wrong == []
