"""Watch sessions over the API."""

from __future__ import annotations

from typing import Any

import pytest

from runs.models import Notice, Project, Validation, WatchSession
from runs.watch import switch as auto
from tests.api.program import Program, denied
from tests.fakes import START, World
from tests.watch.test_validate_again import FailedDay
from tests.watch.watch_day import WATCH, Day

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def day(world: World) -> Day:
    return Day(world, "1", "2")


def at(day: Day) -> str:
    return f"/projects/{day.project.pk}/watch"


@pytest.mark.row("MALA-W-73", level="contract")
def test_a_session_is_opened_shown_listed_and_ended(program: Program, day: Day) -> None:
    made = program.post(at(day), {"watch": True, "max_issues": 5.0, "validate_every": 2})
    assert made.status_code == 201
    told = made.json()
    assert (told["state"], told["max_issues"], told["threshold"]) == ("working", 5, 2)
    assert (told["opened_by"], told["code"], told["active"]) == ("anna", None, [])
    day.tick()
    address = f"{at(day)}/{told['id']}"
    assert len(program.get(address).json()["active"]) == 2
    assert [one["id"] for one in program.get(at(day)).json()["items"]] == [told["id"]]
    drained = program.post(f"{address}/drain").json()
    assert (drained["request"], drained["asked_by"]) == ("drain", "anna")
    assert program.post(f"{address}/kill").json()["request"] == "kill"
    denied(program.post(f"{address}/abort"), 409, "already_ended")
    day.tick().wait(5)
    ended = program.get(address).json()
    assert (ended["code"], ended["reason"], ended["state"]) == (130, "interrupted", "ended")


@pytest.mark.row("MALA-V-60", "MALA-V-69", "MALA-V-70", level="contract")
def test_a_session_has_switches_of_its_own_over_the_checks(program: Program, day: Day) -> None:
    wish = {"disable_validations": ["review", "e2e"], "coverage_threshold": 90}
    told = program.post(at(day), wish).json()
    assert (told["disable_validations"], told["coverage_threshold"]) == (["e2e", "review"], 90)
    assert told["keep_worktrees"] is None
    assert WatchSession.objects.get().switches == {
        "disabled": ["e2e", "review"],
        "coverage_threshold": 90.0,
        "keep_worktrees": None,
    }
    text = "without e2e, review, 90 % coverage needed"
    assert Notice.objects.get(kind="watch.opened").text.endswith(text)


@pytest.mark.row("MALA-V-68", level="contract")
@pytest.mark.parametrize(
    "wish",
    [
        {"disable_validations": ["codex-review"]},
        {"disable_validations": "e2e"},
        {"coverage_threshold": 100.1},
        {"coverage_threshold": True},
        {"keep_worktrees": "yes"},
        {"codex_thinking_mode": "high"},
    ],
)
def test_unknown_switches_are_refused(program: Program, day: Day, wish: dict[str, Any]) -> None:
    said = denied(program.post(at(day), wish), 422, "invalid")
    assert next(iter(wish)) in next(iter(said["fields"]))
    assert not WatchSession.objects.exists()


@pytest.mark.row("MALA-W-40", "MALA-W-41", "MALA-W-42", "MALA-W-43", level="contract")
@pytest.mark.parametrize("wrong", [0, -1, "x", 1.5, 2_000_000])
@pytest.mark.parametrize("name", ["max_issues", "validate_every"])
def test_wrong_numbers_are_refused_before_anything_is_made(
    program: Program, day: Day, name: str, wrong: Any
) -> None:
    said = denied(program.post(at(day), {name: wrong}), 422, "invalid")
    field = said["fields"][name]
    if isinstance(wrong, int):
        assert field == f"Error: --{name.replace('_', '-')} must be at least 1"
    assert not WatchSession.objects.exists()


@pytest.mark.postgres
@pytest.mark.row("MALA-W-12", level="contract")
def test_a_second_session_is_refused_and_named(program: Program, day: Day) -> None:
    day.opens(WATCH)
    said = denied(program.post(at(day), {}), 409, "already_open")
    assert f"It is session {day.session.pk}." in said["text"]
    Project.objects.update(state="cloning")
    denied(program.post(at(day), {}), 409, "refused")
    assert WatchSession.objects.count() == 1


@pytest.mark.row("C-29", level="contract")
def test_automatic_work_is_resumed(program: Program, day: Day) -> None:
    denied(program.post(f"{at(day)}/resume"), 409, "nothing_to_resume")
    auto.switch(day.lab, day.project, is_on=True, by="anna")
    day.fails().wait(200)
    stopped = program.get(f"{at(day)}/{day.session.pk}").json()
    assert (stopped["code"], stopped["needs_resume"], stopped["is_auto"]) == (3, True, True)
    assert program.post(f"{at(day)}/resume").json()["state"] == "working"


def test_who_may_only_look_changes_nothing(program: Program, looking: Program, day: Day) -> None:
    day.opens(WATCH)
    address = f"{at(day)}/{day.session.pk}"
    assert looking.get(address).status_code == 200
    for name in ("drain", "abort", "kill"):
        assert looking.post(f"{address}/{name}").status_code == 403
    assert looking.post(at(day), {}).status_code == 403
    assert day.session.request == 0
    denied(program.get(f"{at(day)}/999"), 404, "not_found")


def test_validations_are_told_with_their_commands(program: Program, day: Day) -> None:
    day.opens(WATCH)
    result = {"attempt": 0, "argv": ["make"], "is_running": False, "status": 2, "seconds": 1.5}
    Validation.objects.create(
        project=day.project, session=day.session, number=1, count=2, host="local", minutes=1,
        most_fixers=0, mark="m", began_at=START, state="failed", ended_at=START,
        results=[{**result, "tail": "red"}],
    )  # fmt: skip
    (told,) = program.get(f"{at(day)}/{day.session.pk}/validations").json()["items"]
    assert (told["state"], told["results"]) == ("failed", [{**result, "tail": "red"}])


def test_validations_are_told_in_pages(program: Program, day: Day) -> None:
    day.opens(WATCH)
    for number in range(1, 4):
        Validation.objects.create(
            project=day.project, session=day.session, number=number, count=number, host="local",
            minutes=1, most_fixers=0, mark="m", began_at=START, state="passed", ended_at=START,
        )  # fmt: skip
    address = f"{at(day)}/{day.session.pk}/validations"
    first = program.get(f"{address}?limit=2").json()
    assert ([one["number"] for one in first["items"]], first["next"]) == ([3, 2], 2)
    rest = program.get(f"{address}?limit=2&cursor={first['next']}").json()
    assert ([one["number"] for one in rest["items"]], rest["next"]) == ([1], None)


@pytest.mark.row("C-54", level="contract")
def test_a_program_has_an_ended_session_validated_again(program: Program, world: World) -> None:
    day = FailedDay(world)
    address = f"{at(day)}/{day.session.pk}/validate"
    told = program.post(address).json()
    assert (told["number"], told["state"], told["asked_by"]) == (2, "running", "anna")
    assert program.post(address).json()["number"] == 2
    day.passes().validates()
    denied(program.post(address), 409, "nothing_to_validate")
    listed = program.get(f"{at(day)}/{day.session.pk}/validations").json()["items"]
    assert [(one["state"], one["asked_by"]) for one in listed] == [
        ("passed", "anna"),
        ("failed", ""),
    ]
