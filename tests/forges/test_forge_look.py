"""The pages on forges and trackers, light and dark, desk and phone; setting up in a real browser."""

from __future__ import annotations

import dataclasses
import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import expect

from runs.core.states import ForgeKind
from runs.forges import hooks
from runs.models import Forge, Project, Quota, Run
from tests import make
from tests.fakes import START, World
from tests.forges.test_forge_pages import a_ledger
from tests.forges.test_hooks import send
from tests.people.test_people_look import be_asked
from tests.web.browsing import OpenPage
from tests.web.looking import looks
from trackers.base import Check, CheckState, Finding

pytestmark = pytest.mark.django_db(transaction=True)

WEB = "https://git.example"
SOURCE = f"{WEB}/lab/shop.git"


@pytest.fixture
def project(world: World) -> Project:
    """A project on a forge whose name is long, with deliveries, a ledger and some trouble."""
    forge = a_ledger(world)
    Quota.objects.update(blocked_until=START + timedelta(minutes=5))
    Forge.objects.update(trouble="The token may not write issues. Give it write:issue. " * 3)
    some = {"memory": world.tracker, "gitea": world.tracker}
    world.lab = dataclasses.replace(world.lab, tracker_for=some.get)
    world.forges.kinds[WEB] = ForgeKind.GITEA
    world.repos.urls[SOURCE] = "main"
    world.forges.findings = [
        Finding("issues", True, "Issues can be read."),
        Finding("writing", False, "The token may not write issues: give it write:issue. " * 3),
        Finding("checks", None, "The server did not answer."),
    ]
    root = world.tracker.add_root(f"{forge.pk}/{'a' * 40}/{'b' * 60}")
    made = make.a_project(
        tracker="gitea", tracker_root=root, forge=forge, asked_every=90, asked_why="the quota is low",
        mirror="status", working_label="in-progress", queue_seen_at=START,
    )  # fmt: skip
    Project.objects.filter(pk=made.pk).update(url=SOURCE)
    closed = [12, "afk/7", "Add retries to the upload of " + "x" * 80, f"{WEB}/lab/shop/pulls/12"]
    Project.objects.filter(pk=made.pk).update(pulls_closed=[closed])
    a_pull_request(world, made)
    secret = hooks.make_secret(world.lab, made, by="anna")
    for number, event in enumerate(["ping", "issues", "pull_request_review_comment", "star"]):
        send(Client(), secret, b"%d" % number, event=event, delivery=f"d{number}")
    send(Client(), secret, b"1", event="issues", delivery="d1")
    return made


def a_pull_request(world: World, project: Project) -> None:
    """A run that ended with one, on whose head checks of every kind were made."""
    root = project.tracker_root
    title = "Add retries to the upload of " + "x" * 80
    number = world.tracker.add_pull(
        root, "afk/7", number=12, title=title, base="main", head_commit="a" * 40
    )
    log = f"{WEB}/actions/1"
    states = (CheckState.PASSED, CheckState.FAILED, CheckState.RUNNING)
    checks = [Check(f"{state} {'unit-tests-' * 12}", state, log) for state in states]
    world.tracker.shelves[root].checks["a" * 40] = (*checks, Check("build", CheckState.PASSED))
    make.a_run(
        project, outcome="succeeded", pull_number=number, pull_url=f"{WEB}/lab/shop/pulls/12"
    )


def test_every_page_on_trackers_is_accessible_and_fits(
    open_page: OpenPage, operator: User, world: World, project: Project
) -> None:
    page = open_page("/forges/", operator)
    be_asked(page, START.isoformat())
    wrong = looks(page, "forges")
    tracker, run = f"/projects/{project.pk}/tracker/", Run.objects.get().pk
    for name, address in {
        "forge new": "/forges/new",
        "forge": f"/forges/{project.forge_id}/",
        "tracker": tracker,
        "run with a pull request": f"/runs/{run}/",
        "pull request of a run": f"/runs/{run}/pull",
        "closed pull request": f"/projects/{project.pk}/closed/12/",
        "removal": f"/projects/{project.pk}/remove",
        "hook secret": f"{tracker}secret",
    }.items():
        page.goto(address)
        if page.locator("details.reveal").count():
            page.locator("details.reveal > summary").first.click()
        wrong += looks(page, name)
    page.get_by_role("button", name="Make a secret").click()
    expect(page.locator("#hook-secret")).to_be_visible()
    wrong += looks(page, "hook secret made")
    page.goto(f"/projects/{project.pk}/")
    page.locator("#hook-deliveries summary").click()
    page.locator("#project-tracker summary").click()
    expect(page.locator("#hook-deliveries li").first).to_be_visible()
    expect(page.locator("#project-tracker details")).to_have_attribute("open", "")
    wrong += looks(page, "project on a forge")
    page.goto("/projects/new")
    page.get_by_label("Repository").fill(SOURCE)
    page.get_by_label("Repository").blur()
    expect(page.locator("#project-trackers fieldset")).to_be_visible()
    page.get_by_role("button", name="Test the connection").click()
    expect(page.locator("#findings")).to_contain_text("write:issue")
    wrong += looks(page, "project new")
    assert wrong == []


def test_a_project_on_a_forge_is_set_up_without_leaving_the_keyboard_or_reloading(
    open_page: OpenPage, operator: User, world: World, project: Project
) -> None:
    world.tracker.add_root(f"{project.forge_id}/lab/shop")
    page = open_page("/projects/new", operator)
    page.get_by_label("Repository").fill(SOURCE)
    page.keyboard.press("Tab")
    expect(page.locator("#project-trackers")).to_contain_text("asked as Ours")
    page.get_by_label("Name").fill("second")
    page.get_by_role("button", name="Add project").click()
    page.wait_for_url(re.compile(r"/projects/\d+/$"))
    expect(page.locator("#project-tracker")).to_contain_text("lab/shop")
    page.get_by_role("link", name="Change the tracker").click()
    page.wait_for_url("**/tracker/")
    page.evaluate("window.stayed = true")
    page.get_by_role("button", name="Test the connection").click()
    expect(page.locator("#findings li").first).to_be_visible()
    page.get_by_role("button", name=re.compile("Make the label")).click()
    expect(page.locator("#banner")).to_contain_text("is there")
    assert page.evaluate("window.stayed")


def test_a_delivery_shows_on_the_open_page(
    open_page: OpenPage, operator: User, world: World, project: Project
) -> None:
    secret = hooks.make_secret(world.lab, project, by="anna")
    page = open_page(f"/projects/{project.pk}/", operator)
    page.locator("#hook-deliveries summary").click()
    expect(page.locator("#hook-deliveries li")).to_have_count(4)
    world.clock.forward(seconds=5)
    send(Client(), secret, b"new", event="push", delivery="new")
    expect(page.locator("#hook-deliveries li")).to_have_count(5)
    expect(page.locator("#hook-deliveries li").first).to_contain_text("push")


def test_setting_up_works_without_scripts(
    open_page: OpenPage, operator: User, world: World, project: Project
) -> None:
    page = open_page("/projects/new", operator, java_script_enabled=False)
    page.get_by_label("Repository").fill(SOURCE)
    page.get_by_label("Name").fill("second")
    page.get_by_role("button", name="Add project").click()
    expect(page.locator("#project-form")).to_contain_text("Say where the issues")
    page.get_by_role("button", name="Test the connection").click()
    expect(page.locator("#findings")).to_contain_text("write:issue")
    page.get_by_role("button", name="Add project").click()
    page.wait_for_url(re.compile(r"/projects/\d+/$"))
    expect(page.locator("#project-tracker")).to_contain_text("lab/shop")
    page.get_by_role("link", name="Change the tracker").click()
    page.wait_for_url("**/tracker/")
    page.get_by_role("button", name="Test the connection").click()
    expect(page.locator("#findings li").first).to_be_visible()
