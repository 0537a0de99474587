"""Try this agent, on its pages: who may, what it costs, the steps as they come, Stop."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connections
from django.test import Client
from playwright.sync_api import expect

from labsite.preflight import write_labctl
from runs.agents import trial
from runs.models import AgentProfile, AgentTrial, Run, Settings
from tests import make
from tests.fakes import World
from tests.patience import PATIENCE
from tests.real import RealWorld
from tests.web.browsing import OpenPage
from tests.web.looking import looks
from tests.web.people import text_of

pytestmark = pytest.mark.django_db

COST = "costs one small request to the model"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def profile(world: World) -> AgentProfile:
    made = make.an_agent()
    Settings.current()
    Settings.objects.update(agent=made)
    return made


@pytest.mark.postgres
def test_the_cost_is_said_before_and_nothing_starts_by_looking(
    anna: Client, world: World, profile: AgentProfile
) -> None:
    address = f"/settings/agents/{profile.pk}/try"
    assert address in text_of(anna.get("/settings/"))
    assert COST in text_of(anna.get(address))
    assert not AgentTrial.objects.exists()
    answer = anna.post(address)
    made = AgentTrial.objects.get()
    assert (answer.status_code, answer["Location"]) == (303, f"/settings/trials/{made.pk}/")
    assert world.queue.trials == [made.pk]
    assert anna.post(address)["Location"] == answer["Location"]
    assert anna.post("/settings/agents/987654321/try").status_code == 404


def test_only_admins_try_agents(anna: Client, vera: Client, profile: AgentProfile) -> None:
    address = f"/settings/agents/{profile.pk}/try"
    bob = make.a_user("bob", operator=False)
    bob.user_permissions.add(Permission.objects.get(codename="act"))
    for user in (None, bob):
        client = vera
        if user is not None:
            client = Client()
            client.force_login(user)
        shown = client.get(address)
        assert shown.status_code == (403 if user is None else 200)
        assert user is None or "Only an admin may start it" in text_of(shown)
        assert client.post(address).status_code == 403
    assert not AgentTrial.objects.exists()


def test_a_trial_is_shown_step_by_step_and_counts_as_no_run(
    anna: Client, vera: Client, world: World, profile: AgentProfile
) -> None:
    world.programs.gone = {"agent"}
    made = trial.ask(world.lab, profile, "anna")
    page = f"/settings/trials/{made.pk}/"
    before = text_of(anna.get(page))
    assert "waiting" in before and "/stop" in before
    trial.carry_out(world.lab, made.pk)
    after = text_of(vera.get(page))
    for text in ("Program found", "not installed on this machine", "not tried", "failed"):
        assert text in after
    assert "/stop" not in after
    live = anna.get(f"{page}live", headers={"HX-Request": "true"})
    again = {"HX-Request": "true", "HX-PTag": live.headers["HX-PTag"]}
    assert anna.get(f"{page}live", headers=again).status_code == 304
    assert "failed" in text_of(anna.get("/settings/"))
    assert not Run.objects.exists()
    assert anna.get("/settings/trials/987654321/").status_code == 404


def test_stop_is_for_those_who_may_act(
    anna: Client, vera: Client, world: World, profile: AgentProfile
) -> None:
    made = trial.ask(world.lab, profile, "anna")
    address = f"/settings/trials/{made.pk}/stop"
    assert vera.post(address).status_code == 403
    assert anna.post(address).status_code == 303
    made.refresh_from_db()
    assert made.state == "stopped"
    assert anna.post("/settings/trials/987654321/stop").status_code == 404


GOOD = (
    "labctl issue view 1; echo hello > hello.txt; git add hello.txt;"
    " git commit -qm 'feat: add a file'; git push -q origin afk/1;"
    " labctl pr create --title 'feat: add a file' --body 'Closes #1'"
)


@pytest.mark.django_db(transaction=True)
def test_in_a_browser_an_agent_is_tried_and_its_steps_come_by_themselves(
    real: RealWorld, operator: User, open_page: OpenPage
) -> None:
    write_labctl(real.paths, sys.executable, ROOT)
    profile = make.an_agent(argv=["sh", "-c", GOOD, "agent", "{prompt}"], mode="one_shot")
    Settings.current()
    Settings.objects.update(agent=profile, refresh_seconds=1)
    page = open_page("/settings/", operator)
    page.get_by_role("link", name="Try this agent Test agent").click()
    expect(page.get_by_text(COST)).to_be_visible()
    wrong = looks(page, "try an agent")
    page.get_by_role("button", name="Try this agent").click()
    expect(page.get_by_role("heading", name="Trial of Test agent")).to_be_visible()
    wrong += looks(page, "a trial that waits")
    with in_a_worker(lambda: trial.carry_out(real.lab, real.queue.trials[0])):
        expect(page.locator("#trial > header .pill")).to_have_text("passed")
    wrong += looks(page, "a trial that passed")
    page.goto(page.url.partition("/settings")[0] + "/settings/")
    wrong += looks(page, "settings with agents")
    assert wrong == []


class in_a_worker:  # noqa: N801
    """Carries something out beside the browser, as the worker does."""

    def __init__(self, work: Callable[[], None]) -> None:
        def run() -> None:
            try:
                work()
            finally:
                connections.close_all()

        self._thread = threading.Thread(target=run)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._thread.join(PATIENCE)
