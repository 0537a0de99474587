"""The page *Checks* in a browser: light and dark, desk and phone; from no command to a spec by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from runs.models import CheckCommand, Project
from runs.specs import acts
from runs.specs.proposals import propose
from runs.validation.specs import Command, Kind
from tests import make
from tests.fakes import World
from tests.web.browsing import OpenPage
from tests.web.looking import looks

pytestmark = pytest.mark.django_db(transaction=True)

FILES = {
    "pyproject.toml": "[project]\ndependencies = ['pytest-cov']\n[tool.ruff]\n[tool.mypy]\n[tool.pytest]\n",
    "uv.lock": "",
    "mala.yaml": "preset: python-uv\ncoder: amp\n",
}


def origin(world: World, files: dict[str, str]) -> None:
    commit = world.repos.upstream(Path(), "main")
    world.repos.made[commit] = world.repos.made[world.repos.commit(files)]


@pytest.fixture
def project(world: World) -> Project:
    """A project whose spec holds something of everything."""
    made, lab = make.a_project(policy="gates"), world.lab
    origin(world, FILES)
    for one in propose(FILES).commands:
        acts.add_command(lab, made, one.command, by="anna")
    long = Command("a-name-" * 8, ("./scripts/" + "x" * 200, "--all"), Kind.E2E, allow_fail=True)
    acts.add_command(lab, made, long, by="anna")
    agent = make.an_agent("Reader")
    acts.add_reviewer(lab, made, {"name": "reader", "profile_id": agent.pk}, by="anna")
    values = {
        "name": "script",
        "command": ["review"],
        "is_on": False,
        "instructions": "Look. " * 50,
    }
    acts.add_reviewer(lab, made, values, by="anna")
    needs = {"e2e_command": ["./full"], "e2e_required_env": ["NO_SUCH_KEY"]}
    acts.store_terms(lab, made, needs, by="anna")
    return made


def test_every_page_of_the_checks_is_accessible_and_fits(
    open_page: OpenPage, operator: User, project: Project
) -> None:
    page = open_page(f"/projects/{project.pk}/checks/", operator)
    page.evaluate(
        "document.querySelectorAll('details.reveal').forEach(one => { one.open = true; })"
    )
    wrong = looks(page, "checks")
    row = CheckCommand.objects.get(name="pytest")
    places = {
        "checks propose": "propose",
        "checks command": f"commands/{row.pk}/",
    }
    for name, place in places.items():
        page.goto(f"/projects/{project.pk}/checks/{place}")
        wrong += looks(page, name)
    page.goto(f"/projects/{project.pk}/checks/import")
    page.get_by_role("button", name="Show changes").click()
    expect(page.get_by_role("heading", name="Not imported")).to_be_visible()
    wrong += looks(page, "checks imported")
    assert wrong == []


@pytest.mark.row("MALA-V-01", "MALA-V-59", level="browser")
def test_from_nothing_to_a_spec_by_hand_and_by_keyboard(
    open_page: OpenPage, operator: User, world: World
) -> None:
    project = make.a_project()
    origin(world, FILES)
    page = open_page(f"/projects/{project.pk}/", operator)
    page.get_by_role("link", name="Checks").click()
    assert looks(page, "checks empty") == []
    page.get_by_role("radio", name="Gates").check()
    page.get_by_role("button", name="Save policy").click()
    expect(page.get_by_text("Configuration error.")).to_be_visible()
    page.get_by_role("link", name="Propose commands").first.click()
    page.get_by_role("checkbox", name="mypy").uncheck()
    page.get_by_role("button", name="Accept").focus()
    page.keyboard.press("Enter")
    commands = page.locator("#spec-commands li")
    expect(commands).to_have_count(4)
    expect(page.get_by_text("Configuration error.")).to_have_count(0)
    page.get_by_role("link", name="Add a command").click()
    page.get_by_role("textbox", name="Name").fill("docs")
    page.get_by_role("textbox", name="Command", exact=True).fill("./docs && ./more")
    page.get_by_label("Kind").select_option("lint")
    page.get_by_role("button", name="Add command").click()
    expect(page.get_by_text("No shell reads this")).to_be_visible()
    page.get_by_role("textbox", name="Command", exact=True).fill("./docs")
    page.get_by_role("button", name="Add command").click()
    expect(commands).to_have_count(5)
    page.get_by_role("button", name="Run docs earlier").click()
    expect(commands.nth(1)).to_contain_text("docs")
    page.get_by_role("button", name="Remove docs").click()
    page.get_by_role("button", name="Remove docs").click()
    expect(commands).to_have_count(4)
    page.get_by_role("checkbox", name="Coverage", exact=True).uncheck()
    page.get_by_role("button", name="Save switches and limits").click()
    expect(page.locator("#spec-happens")).to_contain_text("Coverage is not looked at.")


def test_what_somebody_else_changes_is_shown_without_a_reload(
    open_page: OpenPage, operator: User, project: Project, world: World
) -> None:
    page = open_page(f"/projects/{project.pk}/checks/", operator)
    page.get_by_label("Minimum coverage (%)").fill("12")
    acts.add_command(world.lab, project, Command("new one", ("x",), Kind.LINT), by="bert")
    expect(page.locator("#spec-commands")).to_contain_text("new one")
    expect(page.get_by_label("Minimum coverage (%)")).to_have_value("12")
