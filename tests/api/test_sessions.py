"""Sessions that people drive, over the API."""

from __future__ import annotations

import pytest

from runs.manual import acts as manual
from runs.models import ManualSession, Project, Settings
from tests import make
from tests.api.program import Program
from tests.fakes import World

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def driven(world: World, project: Project) -> Project:
    Settings.current()
    Project.objects.update(agent=make.an_agent())
    world.queue.open = lambda pk: manual.carry_out(world.lab, pk)  # type: ignore[method-assign]
    return project


@pytest.mark.row("LAB-126", level="contract")
def test_a_session_is_started_listed_and_stopped(program: Program, driven: Project) -> None:
    address = f"/projects/{driven.pk}/sessions"
    made = program.post(address, {"label": "try it"})
    assert made.status_code == 201
    told = made.json()
    assert (told["label"], told["state"], told["by"]) == ("try_it-20261121-1200", "live", "anna")
    assert "attach" in told["attach"]
    assert [one["id"] for one in program.get(address).json()["items"]] == [told["id"]]
    ended = program.post(f"{address}/{told['id']}/stop").json()
    assert (ended["state"], ended["attach"], ended["warning"]) == ("ended", "", "")
    assert program.post(f"{address}/{told['id']}/stop").status_code == 409
    assert program.post(f"{address}/999/stop").status_code == 404
    assert program.get(address).json() == {"items": []}


def test_one_that_ends_at_once_is_said_with_what_is_kept_and_what_to_do(
    program: Program, driven: Project, world: World
) -> None:
    def open_and_exit(pk: int) -> None:
        manual.carry_out(world.lab, pk)
        row = ManualSession.objects.get(pk=pk)
        world.sessions.end(row.session)
        manual.watch(world.lab)

    world.queue.open = open_and_exit  # type: ignore[method-assign]
    answer = program.post(f"/projects/{driven.pk}/sessions", {"label": "try it"})
    assert answer.status_code == 502
    said = answer.json()["text"]
    row = ManualSession.objects.get()
    assert said.startswith(f"The session {row.label} ended at once: its program exited")
    assert f"Work on branch {row.branch} is kept." in said


def test_what_cannot_be_is_refused(program: Program, looking: Program, driven: Project) -> None:
    address = f"/projects/{driven.pk}/sessions"
    assert looking.post(address, {}).status_code == 403
    assert program.post(address, {"label": "x" * 33}).status_code == 422
    Project.objects.update(state="cloning")
    assert program.post(address, {}).status_code == 409
    assert not ManualSession.objects.exists()
