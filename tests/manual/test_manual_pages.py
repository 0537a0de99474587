"""Sessions that people drive, on the project's page."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import expect

from runs.manual import acts as manual
from runs.models import ManualSession, Project, Settings
from tests import make
from tests.chromium import press_twice
from tests.fakes import World
from tests.web.browsing import OpenPage
from tests.web.looking import look
from tests.web.people import hx, text_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project(world: World) -> Project:
    Settings.current()
    world.queue.open = lambda pk: manual.carry_out(world.lab, pk)  # type: ignore[method-assign]
    return make.a_project(agent=make.an_agent())


def address(project: Project, rest: str = "start") -> str:
    return f"/projects/{project.pk}/sessions/{rest}"


@pytest.mark.row("LAB-126", level="contract")
def test_a_session_is_started_shown_with_its_command_and_stopped(
    anna: Client, world: World, project: Project
) -> None:
    page = f"/projects/{project.pk}/"
    assert "Start your own agent session" in text_of(anna.get(page))
    answer = hx(anna, address(project), {"label": "try it"}, at=page)
    row = ManualSession.objects.get()
    assert answer.status_code == 200
    assert row.label == "try_it-20261121-1200"
    for shown in (text_of(answer), text_of(anna.get(page))):
        assert "lab/try_it-20261121-1200" in shown
        assert f"tmux attach -t &#x27;={row.session}&#x27;" in shown or "tmux attach" in shown
    stopped = hx(anna, address(project, f"{row.pk}/stop"), at=page)
    assert "Its clean worktree was removed." in text_of(stopped)
    assert f"session-{row.pk}" not in text_of(anna.get(page))
    assert "had ended already" in text_of(hx(anna, address(project, f"{row.pk}/stop"), at=page))


def test_what_was_kept_is_said_for_a_day(anna: Client, world: World, project: Project) -> None:
    anna.post(address(project))
    row = ManualSession.objects.get()
    next(iter(world.repos.trees.values())).is_dirty = True
    answer = hx(anna, address(project, f"{row.pk}/stop"))
    assert "not committed" in text_of(answer)
    page = f"/projects/{project.pk}/"
    assert "not committed" in text_of(anna.get(page))
    world.clock.forward(hours=25)
    assert "not committed" not in text_of(anna.get(page))


@pytest.mark.parametrize(
    ("given", "cap", "status", "says"),
    [
        pytest.param("x" * 33, 6, 409, "at most 32", id="a long label"),
        pytest.param("x", 0, 409, "slots are taken", id="no slot is free"),
    ],
)
def test_a_refusal_says_why(
    anna: Client, world: World, project: Project, given: str, cap: int, status: int, says: str
) -> None:
    for slot in range(6 if cap == 0 else 0):
        world.live(make.a_run(project, str(slot + 1), slot=slot + 1))
    answer = hx(anna, address(project), {"label": given})
    assert answer.status_code == status
    assert says in text_of(answer)
    assert not ManualSession.objects.exists()


def test_a_driven_session_takes_a_slot_from_the_start_button(
    anna: Client, world: World, project: Project
) -> None:
    Settings.objects.update(session_cap=1)
    anna.post(address(project))
    assert "All 1 slots are taken" in text_of(anna.get(f"/projects/{project.pk}/"))


def test_whoever_may_only_look_starts_and_stops_nothing(
    vera: Client, anna: Client, world: World, project: Project
) -> None:
    assert vera.post(address(project)).status_code == 403
    anna.post(address(project))
    row = ManualSession.objects.get()
    assert vera.post(address(project, f"{row.pk}/stop")).status_code == 403
    assert "/stop" not in text_of(vera.get(f"/projects/{project.pk}/"))
    assert anna.post(f"/projects/987654321/sessions/{row.pk}/stop").status_code == 404


@pytest.mark.parametrize("many", [1, 11])
def test_the_page_asks_a_fixed_number_of_questions(
    anna: Client, world: World, project: Project, many: int, django_assert_num_queries: Any
) -> None:
    Settings.objects.update(session_cap=50)
    for _ in range(many):
        anna.post(address(project))
    page = f"/projects/{project.pk}/"
    anna.get(page)
    Project.objects.update(queue_asked_at=world.clock.now)  # else its page has it asked again
    with django_assert_num_queries(15):
        anna.get(page)


@pytest.mark.row("LAB-126", level="browser")
@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 390)])
def test_in_a_browser_a_session_is_started_and_stopped(
    open_page: OpenPage, operator: User, project: Project, world: World, scheme: str, width: int
) -> None:
    page = open_page(f"/projects/{project.pk}/", operator, width=width, color_scheme=scheme)
    wrong = look(page, "no sessions", scheme, width)
    page.get_by_label("Label of the session").fill("try it")
    page.get_by_role("button", name="Start a session").click()
    region = page.locator("#project-sessions")
    expect(region).to_contain_text("lab/try_it-20261121-1200")
    expect(region).to_contain_text("tmux attach")
    wrong += look(page, "a session", scheme, width)
    press_twice(region.get_by_role("button", name="Stop"))
    expect(region).to_contain_text("Start your own agent session")
    expect(page.get_by_text("Its clean worktree was removed.")).to_be_visible()
    assert wrong == []
