"""Loops over the API: where one stands, its turns, guidance; settings and memories of a project."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs.loop_pages import schemas
from runs.loop_settings import unfit
from runs.models import LoopGuidance, LoopMemory, LoopRole, LoopTerms, LoopTurn, Project
from tests import make
from tests.api.program import Program, denied
from tests.fakes import START, World
from tests.loops.desk import Desk, desk_of, project_of, topic

pytestmark = pytest.mark.django_db(transaction=True)

ROLE = {"name": "builder", "instructions": "Build.", "subscriptions": ["task.resume", "build.*"]}


@pytest.fixture
def desk(world: World) -> Desk:
    return desk_of(world, project_of(world, max_turns=50))


@pytest.fixture
def program(desk: Desk, operator: User) -> Program:
    return Program.of(operator)


def of_run(desk: Desk, path: str) -> str:
    return f"/runs/{desk.run.pk}{path}"


def of_project(desk: Desk, path: str) -> str:
    return f"/projects/{desk.run.project_id}{path}"


def got(program: Program, path: str, **query: Any) -> Any:
    answer = program.get(path, **query)
    assert answer.status_code == 200, answer.content
    return answer.json()


@pytest.mark.row("RALPH-83", "RALPH-26", level="contract")
def test_a_loop_says_where_it_stands(program: Program, desk: Desk, world: World) -> None:
    desk.begin()
    world.clock.forward(seconds=90)
    found = got(program, of_run(desk, "/loop"))
    assert (found["state"], found["turn"], found["turns"], found["seconds"]) == ("turn", 1, 0, 90)
    assert found["limits"] == {"max_turns": 50, "max_seconds": 14400.0, "max_cost": None}
    desk.finish(topic("LOOP_COMPLETE"))
    found = got(program, of_run(desk, "/loop"))
    assert (found["end"], found["exit_code"], found["is_cost_whole"]) == ("completed", 0, False)


def test_a_run_without_a_loop_has_nothing_of_one(program: Program, desk: Desk) -> None:
    other = make.a_run(desk.run.project, "70", slot=2)
    for path in ("/loop", "/turns", "/turns/1/1", "/guidance"):
        denied(program.get(f"/runs/{other.pk}{path}"), 404, "not_found")
    denied(program.get(of_run(desk, "/turns/9/9")), 404, "not_found")
    denied(program.send("POST", f"/runs/{other.pk}/loop/stop"), 409, "no_loop")


@pytest.mark.row("RALPH-31", level="contract")
def test_turns_are_listed_and_shown_with_their_prompt(program: Program, desk: Desk) -> None:
    first = desk.begin().content["prompt"]
    desk.writes("note-A")
    second = desk.finish(topic("build.done", "half"), output="I built it.\n").content["prompt"]
    LoopTurn.objects.filter(number=1).update(tokens_in=5, tokens_out=7, cost=Decimal("0.25"))
    page = got(program, of_run(desk, "/turns"), limit=1)
    (row,) = page["items"]
    assert (row["number"], row["ended_at"], row["event_count"]) == (2, None, 0)
    (row,) = got(program, of_run(desk, "/turns"), cursor=page["next"])["items"]
    assert (row["number"], row["event_count"], row["exit_code"]) == (1, 1, 0)
    assert (row["tokens_in"], row["tokens_out"], row["cost"]) == (5, 7, 0.25)
    assert "prompt" not in row
    shown = got(program, of_run(desk, "/turns/1/1"))
    assert (shown["prompt"], shown["answer"]) == (first, "I built it.\n")
    assert shown["events"] == [{"topic": "build.done", "payload": "half", "to": ""}]
    assert got(program, of_run(desk, "/turns/1/2"))["prompt"] == second
    assert "note-A" in second


def test_a_page_of_turns_asks_a_fixed_number_of_queries(program: Program, desk: Desk) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as queries:
            got(program, of_run(desk, "/turns"), limit=50)
        return len(queries)

    desk.begin()
    count()
    before, last = count(), desk.turn
    LoopTurn.objects.bulk_create(
        LoopTurn(
            loop=desk.loop, generation=1, number=number, role="x", facts=last.facts,
            ordered_at=START, ended_at=START, exit_code=0,
        )
        for number in range(2, 200)
    )  # fmt: skip
    assert count() == before


@pytest.mark.row("RALPH-79", "RALPH-80", level="contract")
def test_guidance_is_sent_and_told_where_it_is(program: Program, desk: Desk) -> None:
    desk.begin()
    answer = program.send("POST", of_run(desk, "/guidance"), {"text": "Use port 8080."})
    assert answer.status_code == 201
    assert answer.json()["by"] == "anna"
    order = desk.finish(topic("build.done"))
    assert "Use port 8080." in order.content["prompt"]
    (found,) = got(program, of_run(desk, "/guidance"))["items"]
    assert (found["given_in"], found["acknowledged_at"]) == (2, None)
    for text in ("", " ", "x" * 4001):
        denied(program.send("POST", of_run(desk, "/guidance"), {"text": text}), 422, "invalid")
    assert LoopGuidance.objects.count() == 1
    desk.finish(topic("LOOP_COMPLETE"))


@pytest.mark.row("RALPH-83", "RALPH-20", "RALPH-28", level="contract")
def test_stop_and_restart_are_asked_for_once(program: Program, desk: Desk) -> None:
    desk.begin()
    answer = program.send("POST", of_run(desk, "/loop/restart"))
    assert answer.json()["restart_asked_by"] == "anna"
    denied(program.send("POST", of_run(desk, "/loop/restart")), 409, "already")
    assert program.send("POST", of_run(desk, "/loop/stop")).json()["stop_asked_by"] == "anna"
    desk.finish(topic("build.done"))
    assert desk.loop.end == "stopped"
    for path in ("/loop/stop", "/loop/restart"):
        denied(program.send("POST", of_run(desk, path)), 409, "ended")
    denied(program.send("POST", of_run(desk, "/guidance"), {"text": "x"}), 409, "ended")


@pytest.mark.row("RALPH-12", "RALPH-62", level="contract")
def test_settings_are_changed_all_of_it_or_nothing(program: Program, desk: Desk) -> None:
    address = of_project(desk, "/loops")
    assert got(program, address)["max_turns"] == 50
    given = {"completion": "ALL_DONE", "max_turns": None, "is_persistent": True, "roles": [ROLE]}
    answer = program.send("PATCH", address, given)
    assert answer.status_code == 200, answer.content
    found = answer.json()
    assert (found["completion"], found["max_turns"], found["max_seconds"]) == (
        "ALL_DONE",
        None,
        14_400,
    )
    assert found["roles"] == [{**ROLE, "publishes": [], "agent": None, "model": "", "effort": ""}]
    for wrong, field in (
        ({"max_turns": 3, "max_cost": 5}, "max_cost"),
        ({"max_turns": 3, "agent": 999}, "agent"),
        ({"max_turns": 3, "roles": [{**ROLE, "agent": 999}]}, "roles.0.agent"),
        ({"max_turns": 3, "roles": [{**ROLE, "subscriptions": ["a.b"]}]}, "roles.0.subscriptions"),
        ({"max_turns": 3, "completion": "two words"}, "completion"),
        ({"max_turns": 0}, "max_turns"),
        ({"is_on": None}, "is_on"),
        ({"nonsense": 1}, "nonsense"),
    ):
        refused = denied(program.send("PATCH", address, wrong), 422, "invalid")
        assert list(refused["fields"]) == [field], wrong
    row = LoopTerms.objects.get()
    assert (row.max_turns, row.completion, row.is_persistent) == (None, "ALL_DONE", True)
    assert program.send("PATCH", address, {"is_persistent": False, "roles": []}).status_code == 200
    assert not LoopRole.objects.exists()


def test_a_project_without_settings_shows_the_defaults(program: Program, world: World) -> None:
    other = make.a_project("other")
    found = got(program, f"/projects/{other.pk}/loops")
    assert (found["is_on"], found["max_turns"], found["completion"]) == (False, 50, "LOOP_COMPLETE")
    assert not LoopTerms.objects.filter(project=other).exists()


@pytest.mark.row("RALPH-39", "RALPH-83", level="contract")
def test_memories_are_listed_added_and_removed(program: Program, desk: Desk) -> None:
    address = of_project(desk, "/memories")
    made = program.send("POST", address, {"text": "The port is 8080."})
    assert made.status_code == 201
    assert "The port is 8080." in desk.begin().content["prompt"]
    other = make.a_project("other")
    LoopMemory.objects.create(project=other, text="x", by="an agent", at=START)
    (found,) = got(program, address)["items"]
    assert (found["text"], found["by"], found["run"]) == ("The port is 8080.", "anna", None)
    denied(program.send("POST", address, {"text": " "}), 422, "invalid")
    elsewhere = f"/projects/{other.pk}/memories/{found['id']}"
    denied(program.send("DELETE", elsewhere), 404, "not_found")
    assert program.send("DELETE", f"{address}/{found['id']}").status_code == 204
    denied(program.send("DELETE", f"{address}/{found['id']}"), 404, "not_found")
    assert LoopMemory.objects.count() == 1


def test_a_token_that_may_look_changes_nothing(desk: Desk, operator: User) -> None:
    looking = Program.of(operator, "look")
    desk.begin()
    assert looking.get(of_run(desk, "/loop")).status_code == 200
    assert looking.send("POST", of_run(desk, "/loop/stop")).status_code == 403
    assert looking.send("PATCH", of_project(desk, "/loops"), {"max_turns": 3}).status_code == 403
    assert Project.objects.get().loop_terms.max_turns == 50


def test_every_setting_can_be_read_and_changed() -> None:
    names = {"agent" if name == "profile_id" else name for name in unfit.TERMS}
    assert names | {"roles"} == set(schemas.LoopSettings.model_fields)
    assert names | {"roles"} == set(schemas.LoopSettingsGiven.model_fields)
