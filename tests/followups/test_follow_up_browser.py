"""What goes on after a run, in a real browser: accessible, and fits desk and phone."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from runs.models import AgentProfile, Project, Run
from tests.fakes import World
from tests.followups.conftest import dead
from tests.followups.test_changes import delivered
from tests.web import board_rows as rows
from tests.web.browsing import OpenPage
from tests.web.looking import looks

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["delivered"]


def test_resume_and_retry_are_accessible_and_fit(
    open_page: OpenPage, operator: User, world: World, project: Project
) -> None:
    run = dead(world, project)
    rows.a_tick(world)
    wrong = looks(open_page(f"/runs/{run.pk}/", operator), "follow resume")
    wrong += looks(open_page(f"/runs/{run.pk}/resume", operator), "follow resume alone")
    assert wrong == []


@pytest.mark.parametrize("mode", ["one_shot", "interactive"], ids=["offered", "disabled"])
def test_the_choice_of_a_loop_is_accessible_and_fits(
    open_page: OpenPage, operator: User, world: World, project: Project, mode: str
) -> None:
    run = dead(world, project)
    Run.objects.update(agent_session="")
    AgentProfile.objects.update(mode=mode, output="")
    rows.a_tick(world)
    assert looks(open_page(f"/runs/{run.pk}/", operator), f"follow resume loop {mode}") == []


def test_the_form_for_changes_is_accessible_and_fits(
    open_page: OpenPage, operator: User, world: World, delivered: object
) -> None:
    rows.a_tick(world)
    address = f"/runs/{delivered.pk}/pull"  # type: ignore[attr-defined]
    assert looks(open_page(address, operator), "follow changes") == []
