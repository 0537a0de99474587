"""What Settings, Add project, Start and the API say of agents before anybody starts one."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from runs.agents import checks
from runs.core.ports import Said
from runs.models import AgentProfile, AgentTrial, Settings
from tests import make
from tests.api.program import Program
from tests.fakes import START, World
from tests.web.people import confirmed, text_of
from tests.web.test_admin import PROFILE

pytestmark = pytest.mark.django_db

MISSING = "Test agent is not installed on this machine"


@pytest.fixture
def profile(world: World) -> AgentProfile:
    """The agent for new sessions."""
    made = make.an_agent(login_command=["check"], login_argv=["log-in"])
    Settings.current()
    Settings.objects.update(agent=made)
    return made


def test_settings_tell_where_the_program_is_its_version_and_its_login(
    anna: Client, world: World, profile: AgentProfile
) -> None:
    assert "not checked yet" in text_of(anna.get("/settings/"))
    assert profile.pk in world.queue.checks
    assert world.programs.asked == []
    world.programs.answers["agent --version"] = Said(0, "agent 1.2.3\n")
    checks.carry_out(world.lab, profile.pk)
    shown = text_of(anna.get("/settings/live", headers={"HX-Request": "true"}))
    for text in ("/usr/bin/agent", "agent 1.2.3", "logged in"):
        assert text in shown


def test_a_version_that_was_never_tried_says_so_until_a_trial_ran_it(
    anna: Client, vera: Client, world: World, profile: AgentProfile
) -> None:
    AgentProfile.objects.filter(pk=profile.pk).update(version="agent 1.2.3")
    said = "This version was never tried."
    beside = (
        rf'never tried</span> {re.escape(said)}\s*<a class="link" href="/settings/agents/\d+/try"'
    )
    assert re.search(beside, text_of(anna.get("/settings/")))
    shown = text_of(vera.get("/settings/"))
    assert said in shown
    assert "Try this agent" not in shown
    told = {"by": "anna", "mark": "m", "asked_at": START, "deadline": START, "ended_at": START}
    steps = [{"step": "version", "state": "passed", "note": "agent 1.2.3"}]
    started = [*steps, {"step": "started", "state": "passed", "note": ""}]
    AgentTrial.objects.create(profile=profile, state="stopped", steps=started, **told)
    assert said in text_of(anna.get("/settings/"))
    AgentTrial.objects.create(profile=profile, state="failed", steps=steps, **told)
    assert said in text_of(anna.get("/settings/"))  # it did not come so far as to start it
    AgentTrial.objects.create(profile=profile, state="failed", steps=started, **told)
    assert said not in text_of(anna.get("/settings/"))
    AgentTrial.objects.create(profile=profile, state="failed", steps=steps, **told)
    assert said not in text_of(anna.get("/settings/"))  # an earlier trial did
    AgentProfile.objects.filter(pk=profile.pk).update(version="agent 2.0.0")
    assert said in text_of(anna.get("/settings/"))


def test_settings_tell_what_keeps_an_agent_from_starting(
    anna: Client, vera: Client, world: World, profile: AgentProfile
) -> None:
    world.programs.gone = {"agent"}
    for page in (anna, vera):
        assert f"{MISSING}: agent was not found." in text_of(page.get("/settings/"))
    assert "/check" not in text_of(vera.get("/settings/"))


def test_check_again_asks_the_worker_and_changes_nothing_by_looking(
    anna: Client, vera: Client, world: World, profile: AgentProfile
) -> None:
    checks.carry_out(world.lab, profile.pk)
    address = f"/settings/agents/{profile.pk}/check"
    assert vera.post(address).status_code == 403
    assert world.queue.checks == []
    assert anna.post(address).status_code == 303
    assert world.queue.checks == [profile.pk]
    assert anna.post("/settings/agents/987654321/check").status_code == 404


def test_a_refresh_of_the_cards_is_304_until_something_was_found_out(
    anna: Client, world: World, profile: AgentProfile
) -> None:
    tag = anna.get("/settings/live", headers={"HX-Request": "true"}).headers["HX-PTag"]
    again = {"HX-Request": "true", "HX-PTag": tag}
    assert anna.get("/settings/live", headers=again).status_code == 304
    checks.carry_out(world.lab, profile.pk)
    assert anna.get("/settings/live", headers=again).status_code == 200


def test_add_project_says_what_is_wrong_with_the_agent_before_anything_is_added(
    anna: Client, world: World, profile: AgentProfile
) -> None:
    assert "works on this project" in text_of(anna.get("/projects/new"))
    assert world.queue.checks == [profile.pk]
    world.programs.gone = {"agent"}
    assert MISSING in text_of(anna.get("/projects/new"))
    world.programs.gone = set()
    AgentProfile.objects.filter(pk=profile.pk).update(is_logged_in=False)
    assert "No session of it is started until" in text_of(anna.get("/projects/new"))
    Settings.objects.update(agent=None)
    assert "No agent is chosen." in text_of(anna.get("/projects/new"))


@pytest.mark.parametrize("has_own", [True, False])
def test_start_is_disabled_with_the_reason_while_the_program_is_missing(
    anna: Client, world: World, profile: AgentProfile, has_own: bool
) -> None:
    project = make.a_project(agent=profile if has_own else None)
    address = f"/projects/{project.pk}/"
    assert MISSING not in text_of(anna.get(address))
    world.programs.gone = {"agent"}
    checks.sweep(world.lab)
    assert f"{MISSING}." in text_of(anna.get(address))
    assert 'disabled aria-describedby="start-why"' in text_of(anna.get(address))
    world.programs.gone = set()
    checks.sweep(world.lab)
    assert f"{MISSING}." not in text_of(anna.get(address))


def test_the_api_lists_agents_with_their_state(
    operator: User, world: World, profile: AgentProfile
) -> None:
    checks.carry_out(world.lab, profile.pk)
    program = Program.of(operator)
    items = program.get("/agents").json()["items"]
    (found,) = [one for one in items if one["id"] == profile.pk]
    assert (found["is_found"], found["version"], found["is_logged_in"]) == (True, "", True)
    assert (bool(found["checked_at"]), found["untried"]) == (True, "")
    AgentProfile.objects.filter(pk=profile.pk).update(version="agent 9.0")
    items = program.get("/agents").json()["items"]
    (found,) = [one for one in items if one["id"] == profile.pk]
    assert found["untried"] == "This version was never tried."


def test_the_banner_of_a_logged_out_agent_goes_when_its_check_is_emptied_in_the_admin(
    anna: Client, world: World, profile: AgentProfile
) -> None:
    world.login.answer = False
    checks.check(world.lab, profile)
    assert "is logged out." in text_of(anna.get("/"))
    address = reverse("admin:runs_agentprofile_change", args=[profile.pk])
    given = PROFILE | {"name": profile.name, "argv": '["agent", "{prompt}"]'}
    assert confirmed(anna).post(address, given).status_code == 302
    assert AgentProfile.objects.get(pk=profile.pk).login_command == []
    assert "is logged out." not in text_of(anna.get("/"))
