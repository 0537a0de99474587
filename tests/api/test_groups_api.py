"""Task groups, their tasks and monitors over the API."""

from __future__ import annotations

from typing import Any

import pytest

from runs.groups import monitors
from runs.groups.terms import SHIPPED, Decision, MonitorState, Preset
from runs.models import Checkpoint, Monitor, Notice, Project, TaskGroup
from tests.api.program import Program, denied
from tests.fakes import World
from trackers.builtin import store

pytestmark = pytest.mark.django_db

THREE = [
    {"subject": "Read the parser"},
    {"subject": "Read the lexer", "key": "lex"},
    {"subject": ""},
]


def at(project: Project) -> str:
    return f"/projects/{project.pk}/groups"


@pytest.fixture
def group(program: Program, project: Project) -> str:
    """The address of a group of three tasks."""
    made = program.post(at(project), {"name": "review-7", "preset": "work", "tasks": THREE})
    assert made.status_code == 201, made.content
    return f"{at(project)}/{made.json()['id']}"


@pytest.mark.long
@pytest.mark.row("RUNE-75", level="contract")
def test_a_group_is_made_listed_shown_and_closed(
    program: Program, project: Project, group: str
) -> None:
    told = program.get(group).json()
    assert (told["name"], told["preset"], told["made_by"]) == ("review-7", "work", "anna")
    assert (told["completed"], told["total"], told["closed_at"]) == (0, 3, None)
    found = program.get(f"{group}/tasks").json()["items"]
    assert [(t["key"], t["subject"]) for t in found] == [
        ("1", "Read the parser"),
        ("lex", "Read the lexer"),
        ("2", "Task 2"),
    ]
    assert [g["id"] for g in program.get(at(project)).json()["items"]] == [told["id"]]
    assert program.post(f"{group}/close").json()["closed_at"]
    denied(program.post(f"{group}/close"), 409, "closed")
    assert program.get(at(project)).json()["items"] == []
    assert len(program.get(at(project), state="closed").json()["items"]) == 1
    denied(program.post(f"{group}/claim", {"worker": "ash"}), 409, "closed")
    assert program.send("DELETE", group).status_code == 204
    denied(program.get(group), 404, "not_found")


@pytest.mark.row("RUNE-74", level="contract")
@pytest.mark.parametrize("name", ["../x", "a b", "x" * 129, "a/b", ""])
def test_bad_names_are_refused_everywhere(
    program: Program, project: Project, group: str, name: str
) -> None:
    told = Notice.objects.count()
    said = denied(program.post(at(project), {"name": name}), 422, "invalid")
    assert "letters, digits, _ and -" in said["fields"]["name"]
    if name:
        more = {"tasks": [{"subject": "s", "key": name}]}
        denied(program.post(f"{group}/tasks", more), 422, "invalid")
    denied(program.post(f"{group}/claim", {"worker": name}), 422, "invalid")
    assert TaskGroup.objects.count() == 1
    assert Notice.objects.count() == told


@pytest.mark.parametrize("count", [1, 11])
def test_lists_ask_the_same_number_of_questions_whatever_their_length(
    program: Program, project: Project, count: int, django_assert_num_queries: Any
) -> None:
    for number in range(count):
        tasks = [{"subject": f"Task {one}"} for one in range(count)]
        made = program.post(at(project), {"name": f"g{number}", "tasks": tasks})
    one = f"{at(project)}/{made.json()['id']}"
    for address, queries in ((at(project), 3), (f"{one}/tasks", 4), (f"{one}/workers", 4)):
        program.get(address)
        with django_assert_num_queries(queries):
            program.get(address)


@pytest.mark.postgres
def test_a_second_open_group_of_a_name_is_refused(
    program: Program, project: Project, group: str
) -> None:
    denied(program.post(at(project), {"name": "review-7"}), 409, "name_taken")


def test_tasks_are_claimed_completed_and_given_back(program: Program, group: str) -> None:
    first = program.post(f"{group}/claim", {"worker": "ash"}).json()
    assert (first["key"], first["owner"], first["status"]) == ("1", "ash", "in_progress")
    denied(program.post(f"{group}/claim", {"worker": "rowan", "key": "1"}), 409, "taken")
    denied(program.post(f"{group}/tasks/1/complete", {"worker": "rowan"}), 409, "not_yours")
    back = program.post(f"{group}/tasks/1/release", {"worker": "ash", "note": "too hard"}).json()
    assert (back["status"], back["owner"], back["note"]) == ("pending", "", "too hard")
    denied(program.post(f"{group}/tasks/1/complete", {"worker": "ash"}), 409, "not_yours")
    again = program.post(f"{group}/claim", {"worker": "rowan", "key": "1"}).json()
    assert again["claim"] == 2
    denied(program.post(f"{group}/tasks/1/complete", {"worker": "ash"}), 409, "not_yours")
    done = program.post(f"{group}/tasks/1/complete", {"worker": "rowan"}).json()
    assert (done["status"], done["owner"]) == ("completed", "rowan")
    denied(program.post(f"{group}/tasks/1/release", {}), 409, "done")
    assert program.post(f"{group}/tasks/lex/complete", {}).json()["owner"] == "anna"
    assert program.get(group).json()["completed"] == 2
    assert [w["name"] for w in program.get(f"{group}/workers").json()["items"]] == ["ash", "rowan"]
    left = program.get(f"{group}/tasks", status="pending").json()["items"]
    assert [t["key"] for t in left] == ["2"]
    denied(program.get(f"{group}/tasks/none"), 404, "not_found")


@pytest.mark.row("C-21", level="contract")
def test_a_group_of_issues_names_what_is_not_open(
    program: Program, project: Project, world: World
) -> None:
    for title in ("One", "Two"):
        store.create_issue(
            project.tracker_root, title=title, body="", author="a", labels=[], at=world.clock.now
        )
    address = f"{at(project)}/from-issues"
    said = denied(program.post(address, {"name": "g", "issues": ["1", "9"]}), 422, "invalid")
    assert "#9" in said["fields"]["issues"]
    made = program.post(address, {"name": "g", "issues": ["#1", "2"]}).json()
    found = program.get(f"{at(project)}/{made['id']}/tasks").json()["items"]
    assert [(t["key"], t["subject"], t["issue"]) for t in found] == [
        ("1", "One", "1"),
        ("2", "Two", "2"),
    ]
    one = f"{at(project)}/{made['id']}"
    denied(program.post(f"{one}/claim", {"worker": "ash", "key": "1"}), 409, "follows_run")
    denied(program.post(f"{one}/tasks/1/release", {}), 409, "follows_run")


@pytest.mark.postgres
@pytest.mark.row("RUNE-01", "RUNE-02", "RUNE-03", "RUNE-34", level="contract")
def test_a_monitor_is_started_shown_and_stopped(program: Program, group: str) -> None:
    given = {
        **{"expected": 2, "label": "Mine", "poll_seconds": 10, "stale_seconds": 60},
        **{"timeout_seconds": 600, "release_seconds": None, "has_checkpoints": False},
    }
    made = program.post(f"{group}/monitors", given)
    assert made.status_code == 201, made.content
    told = made.json()
    assert {name: told[name] for name in given} == given
    assert (told["state"], told["result"], told["started_by"]) == ("running", None, "anna")
    one = f"{group}/monitors/{told['id']}"
    denied(program.post(f"{group}/monitors", {}), 409, "already_watched")
    row = Monitor.objects.get()
    Checkpoint.objects.create(
        monitor=row,
        at=row.started_at,
        n=1,
        label="Mine",
        completed=1,
        total=2,
        percentage=50,
        decision=Decision.CONTINUE,
    )
    (checkpoint,) = program.get(f"{one}/checkpoints").json()["items"]
    del checkpoint["at"]
    assert checkpoint == {
        **{"n": 1, "label": "Mine", "completed": 1, "total": 2, "percentage": 50},
        **{"active": [], "blockers": [], "decision": "CONTINUE"},
    }
    assert type(checkpoint["percentage"]) is int
    assert program.post(f"{one}/stop").json()["state"] == "stopped"
    denied(program.post(f"{one}/stop"), 409, "already_ended")
    Monitor.objects.update(
        state=MonitorState.TIMED_OUT, completed=["1"], incomplete=["lex", "2"], timed_out=True
    )
    assert program.get(one).json()["result"] == {
        "completed": ["1"],
        "incomplete": ["lex", "2"],
        "timed_out": True,
    }
    denied(program.post(f"{group}99/monitors", {}), 404, "not_found")


@pytest.mark.row("RUNE-45", level="contract")
def test_wrong_options_of_a_monitor_are_named(program: Program, group: str) -> None:
    given = {"preset": "review", "release_seconds": 60}
    said = denied(program.post(f"{group}/monitors", given), 422, "invalid")
    assert set(said["fields"]) == {"release_seconds"}
    denied(program.post(f"{group}/monitors", {"poll_seconds": 0}), 422, "invalid")
    denied(program.post(f"{group}/monitors", {"preset": "hope"}), 422, "invalid")
    assert not Monitor.objects.exists()


@pytest.mark.row(
    *("RUNE-51", "RUNE-52", "RUNE-53", "RUNE-54", "RUNE-55", "RUNE-56", "RUNE-57"),
    level="contract",
)
def test_the_presets_are_told_as_they_are_in_force(program: Program) -> None:
    told = program.get("/presets").json()["items"]
    assert [one["name"] for one in told] == [name.value for name in SHIPPED]
    for one, preset in zip(told, SHIPPED.values(), strict=True):
        assert one == {"name": one["name"], **_as_told(preset)}
    monitors.presets()[0].__class__.objects.filter(name="work").update(poll_seconds=7)
    told = program.get("/presets").json()["items"]
    assert [one["poll_seconds"] for one in told if one["name"] == "work"] == [7]


def _as_told(preset: Preset) -> dict[str, Any]:
    options = preset.options
    times = {
        "poll_seconds": options.poll,
        "stale_seconds": options.stale,
        "timeout_seconds": options.timeout,
        "release_seconds": options.release,
    }
    return {
        "label": options.label,
        "has_checkpoints": options.has_checkpoints,
        "is_unique": preset.is_unique,
        **{name: None if t is None else int(t.total_seconds()) for name, t in times.items()},
    }
