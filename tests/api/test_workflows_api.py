"""Composite workflows over the API."""

from __future__ import annotations

from typing import Any

import pytest

from runs.core import lease
from runs.models import Monitor, Project, Workflow
from runs.workflows import stepper as composing
from tests import make
from tests.api.program import Program, denied
from tests.fakes import World
from tests.world.stories import passing

pytestmark = pytest.mark.django_db


@pytest.fixture
def at(project: Project) -> str:
    for name in ("wave", "findings"):
        make.a_group(project, name, tasks=2, preset="work")
    return f"/projects/{project.pk}/workflows"


def step(world: World) -> None:
    under_way = passing(world)
    composing.look(under_way)
    lease.release(world.lab, under_way.number)


PHASES = [{"name": "work", "group": "wave"}, {"name": "review", "group": "findings"}]


@pytest.mark.row("RUNE-57", "RUNE-58", "C-25", level="contract")
def test_one_is_started_shown_listed_held_restarted_and_stopped(
    program: Program, world: World, at: str
) -> None:
    made = program.post(at, {"name": "release", "phases": PHASES})
    assert made.status_code == 201
    told = made.json()
    assert (told["state"], told["ceiling_seconds"], told["started_by"]) == ("running", 5400, "anna")
    assert [(p["name"], p["state"], p["net_seconds"]) for p in told["phases"]] == [
        ("work", "waiting", 2100),
        ("review", "waiting", 2100),
    ]
    step(world)
    address = f"{at}/{told['id']}"
    first = program.get(address).json()["phases"][0]
    assert (first["state"], first["monitor"]) == ("running", Monitor.objects.get().pk)
    assert Monitor.objects.get().label == "Arc: work"
    denied(program.post(f"{address}/phases/1/restart"), 409, "not_held")
    denied(program.post(f"{address}/phases/9/restart"), 404, "not_found")

    gone = {"look_at": None, "pass_at": None, "ended_at": world.clock.now}
    Monitor.objects.update(state="error", error="the disk is gone", **gone)
    step(world)
    held = program.get(address).json()
    assert (held["state"], held["note"]) == ("held", "phase work failed: the disk is gone")
    assert program.post(f"{address}/phases/1/restart").json()["state"] == "running"
    assert program.post(f"{address}/stop").json()["state"] == "stopped"
    denied(program.post(f"{address}/stop"), 409, "already_ended")
    assert [one["id"] for one in program.get(at).json()["items"]] == [told["id"]]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param({"phases": []}, "phases", id="no phases"),
        pytest.param({"ceiling_seconds": 0}, "ceiling_seconds", id="no ceiling"),
        pytest.param(
            {"phases": [{"name": "a", "group": "x"}]}, "phases.1.group", id="unknown group"
        ),
        pytest.param(
            {"phases": [{**PHASES[0], "net_seconds": 60}]}, "phases.1.net_seconds", id="a short net"
        ),
    ],
)
def test_what_does_not_fit_is_refused_by_its_field(
    program: Program, at: str, change: dict[str, Any], field: str
) -> None:
    said = denied(program.post(at, {"name": "r", "phases": PHASES, **change}), 422, "invalid")
    assert list(said["fields"]) == [field]
    assert not Workflow.objects.exists()


def test_who_may_only_look_starts_and_stops_nothing(looking: Program, at: str) -> None:
    denied(looking.post(at, {"name": "r", "phases": PHASES}), 403, "look_only")
    assert looking.get(at).json() == {"items": [], "next": None}


def test_a_list_costs_the_same_for_one_and_for_many(
    program: Program, at: str, django_assert_num_queries: Any
) -> None:
    program.post(at, {"name": "first", "phases": PHASES})
    with django_assert_num_queries(4):
        program.get(at)
    for number in range(5):
        program.post(at, {"name": f"more {number}", "phases": PHASES})
    with django_assert_num_queries(4):
        assert len(program.get(at).json()["items"]) == 6
