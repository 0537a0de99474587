"""Automatic work over the API."""

from __future__ import annotations

import pytest

from runs.models import Notice, Project, Settings
from tests import make
from tests.api.program import Program, denied
from tests.fakes import World

pytestmark = pytest.mark.django_db


@pytest.fixture
def waiting(world: World) -> Project:
    Settings.current()
    made = make.a_project(agent=make.an_agent())
    world.tracker.add_root("demo")
    for key in "78":
        world.tracker.add_issue("demo", f"Issue {key}", key, labels=[made.ready_label])
    return made


def test_a_program_switches_and_resets(program: Program, waiting: Project) -> None:
    at = f"/projects/{waiting.pk}"
    shown = program.send("PUT", f"{at}/auto", {"is_auto": True}).json()
    assert (shown["is_auto"], shown["streak"], shown["is_paused"]) == (True, 0, False)
    Project.objects.update(streak=3)
    assert program.get(at).json()["is_paused"] is True
    for _ in range(2):
        shown = program.post(f"{at}/reset").json()
        assert (shown["is_auto"], shown["streak"], shown["is_paused"]) == (True, 0, False)
    assert Notice.objects.filter(kind="streak.reset").count() == 1
    Project.objects.update(state="cloning")
    denied(program.send("PUT", f"{at}/auto", {"is_auto": True}), 409, "refused")
    denied(program.post(f"{at}/reset"), 409, "refused")
    denied(program.send("PUT", f"{at}/auto", {"is_auto": "yes"}), 422, "invalid")


def test_a_program_reads_why_something_is_not_running(
    program: Program, waiting: Project, world: World
) -> None:
    at = f"/projects/{waiting.pk}/waiting"
    found = program.get(at).json()
    assert found["is_known"] is True
    first = found["items"][0]
    assert first["issue"] == "7"
    assert [(one["why"], one["change"]["act"]) for one in first["failed"]] == [
        ("switched_off", "turn_on")
    ]
    assert [(one["act"], one["target"]) for one in first["changes"]] == [("start", "7")]
    world.tracker.fail()
    assert program.get(at).json() == {"is_known": False, "items": []}
