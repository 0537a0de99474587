"""Composite workflows as a person sees them: easy on the eye at a desk and on a phone, and by keyboard."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from runs.models import Monitor, Project, WorkflowPhase
from runs.workflows import acts as workflows
from runs.workflows.acts import NewPhase
from tests.fakes import World
from tests.web.browsing import OpenPage
from tests.web.looking import looks
from tests.workflows.test_workflow_pages import at, fails, project, tick

__all__ = ["project"]


@pytest.mark.django_db(transaction=True)
def test_every_page_on_workflows_is_accessible_fits_and_acts(
    open_page: OpenPage, operator: User, world: World, project: Project
) -> None:
    wrong = []
    home = at(project, "")
    page = open_page(home, operator)
    wrong += looks(page, "workflow-none")
    page.get_by_label("Name").fill("release")
    page.get_by_label("Phases").fill("work: wave 30 20")
    page.get_by_role("button", name="Start the workflow").click()
    expect(page.locator(".error")).to_contain_text("Phase 1: A safety net is not shorter")
    wrong += looks(page, "workflow-refused")

    phases = [NewPhase("work", "wave"), NewPhase("code review of everything", "findings")]
    row = workflows.start(world.lab, project, "release", phases, by="anna")
    tick(world)
    Monitor.objects.update(milestone=25)
    other = [NewPhase("work", "wave")]
    workflows.start(world.lab, project, "a second one with a much longer name", other, by="anna")
    tick(world)
    page.goto(home)
    wrong += looks(page, "workflow-list")
    page.goto(at(project, row.pk, ""))
    wrong += looks(page, "workflow-running")

    fails(world)
    page.goto(at(project, row.pk, ""))
    wrong += looks(page, "workflow-held")
    page.get_by_role("button", name="Start this phase again").press("Enter")
    expect(page.locator("#banner")).to_contain_text("The phase begins again")
    expect(page.locator("#phase-1 .pill")).to_have_text("waiting")
    assert WorkflowPhase.objects.get(workflow=row, number=1).state == "waiting"
    assert wrong == []
