"""Answering an agent that waits, over the API: the same act, and the same refusals with codes."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from runs.core.ports import MaybeGiven
from runs.core.states import NoticeKind
from runs.models import Notice, Run
from tests.api.program import Program, denied
from tests.fakes import World
from tests.waits.test_answering import idle, waiting
from tests.waits.test_stepper import DIALOG, hears, looked, project, run

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["idle", "project", "run", "waiting"]


@pytest.fixture
def program(world: World, operator: User) -> Program:
    """Anna's, which may act."""
    return Program.of(operator)


def asks(program: Program, run: Run) -> dict[str, Any]:
    """What a program reads of a run before it answers."""
    shown = program.get(f"/runs/{run.pk}").json()
    assert shown["waits"] is not None
    return dict(shown)


def a_choice(shown: dict[str, Any], digit: int) -> dict[str, Any]:
    seen = {"since": shown["waits"]["since"], "mark": shown["offers"]["mark"]}
    return {**seen, "choice": digit}


def test_a_choice_that_was_read_is_pressed_and_told_with_the_persons_name(world, waiting, program):
    shown = asks(program, waiting)
    assert shown["waits"]["note"] == "Bash: rm -rf build"
    assert shown["offers"]["has_text"] is False
    assert [one["digit"] for one in shown["offers"]["choices"]] == [1, 2, 3]
    answer = program.post(f"/runs/{waiting.pk}/answer", a_choice(shown, 2))
    assert answer.status_code == 200, answer.content
    after = answer.json()
    assert after["waits"]["answer"].startswith("2. Yes, and don't ask again")
    assert (after["waits"]["answered_by"], after["waits"]["has_changed"]) == ("anna", False)
    assert after["offers"] is None
    assert world.sessions.typed == [(waiting.session, "key 2")]
    assert Notice.objects.get(kind=NoticeKind.RUN_ANSWERED).by == "anna"
    world.clock.forward(seconds=1)
    world.sessions.text[waiting.session] = DIALOG.replace("❯ 1", "  1").replace("  2.", "❯ 2.")
    looked(world, waiting)
    assert asks(program, waiting)["waits"]["has_changed"] is True


def test_a_text_is_said_to_an_agent_that_has_stopped(world, idle, program):
    shown = asks(program, idle)
    assert shown["offers"] == {"has_text": True, "choices": [], "mark": ""}
    given = {"since": shown["waits"]["since"], "text": "Use the other client."}
    assert program.post(f"/runs/{idle.pk}/answer", given).status_code == 200
    assert world.sessions.typed == [(idle.session, "Use the other client.")]


def test_whoever_comes_second_is_told_who_was_first(world, waiting, program):
    given = a_choice(asks(program, waiting), 1)
    assert program.post(f"/runs/{waiting.pk}/answer", given).status_code == 200
    said = denied(program.post(f"/runs/{waiting.pk}/answer", given), 409, "answered")
    assert "anna has answered it already" in said["text"]
    assert len(world.sessions.typed) == 1


def test_an_answer_to_another_question_is_refused(world, waiting, program):
    given = a_choice(asks(program, waiting), 1)
    other = {**given, "since": "2026-11-21T11:00:00+01:00"}
    denied(program.post(f"/runs/{waiting.pk}/answer", other), 409, "not_waiting")
    unseen = {**given, "mark": "0" * 16}
    denied(program.post(f"/runs/{waiting.pk}/answer", unseen), 409, "not_waiting")
    assert world.sessions.typed == []


def test_an_answer_to_an_agent_that_works_is_refused(world, waiting, program):
    given = a_choice(asks(program, waiting), 1)
    hears(world, waiting, {"event": "UserPromptSubmit"})
    looked(world, waiting)
    denied(program.post(f"/runs/{waiting.pk}/answer", given), 409, "not_waiting")
    assert world.sessions.typed == []


def test_a_text_to_a_dialog_is_refused(world, waiting, program):
    given = {"since": asks(program, waiting)["waits"]["since"], "text": "Yes"}
    denied(program.post(f"/runs/{waiting.pk}/answer", given), 409, "wants_a_choice")
    assert world.sessions.typed == []


def test_a_text_that_says_nothing_names_its_field(world, idle, program):
    given = {"since": asks(program, idle)["waits"]["since"], "text": " "}
    said = denied(program.post(f"/runs/{idle.pk}/answer", given), 422, "invalid")
    assert said["fields"] == {"text": "Write what the agent is to be told."}
    del given["text"]
    denied(program.post(f"/runs/{idle.pk}/answer", given), 422, "invalid")


@pytest.mark.parametrize(
    "wrong",
    [
        {"since": "yesterday"},
        {"since": "2026-11-21T12:00:00"},
        {"text": "x" * 4001},
        {"choice": 0},
        {"choice": 10},
        {"choice": "1"},
        {"mark": "x" * 17},
        {"more": 1},
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_asked(world, idle, program, wrong):
    given = {"since": asks(program, idle)["waits"]["since"], "text": "go on", **wrong}
    said = denied(program.post(f"/runs/{idle.pk}/answer", given), 422, "invalid")
    assert list(said["fields"]) == list(wrong)
    assert world.sessions.typed == []


def test_what_may_have_arrived_is_said_so(world, idle, program):
    def say(name: str, marker: str, text: str) -> None:
        raise MaybeGiven("tmux gave no answer")

    world.sessions.say = say
    given = {"since": asks(program, idle)["waits"]["since"], "text": "go on"}
    denied(program.post(f"/runs/{idle.pk}/answer", given), 409, "unsure")


def test_a_session_that_has_ended_gets_no_answer(world, idle, program):
    given = {"since": asks(program, idle)["waits"]["since"], "text": "go on"}
    del world.sessions.all[idle.session]
    said = denied(program.post(f"/runs/{idle.pk}/answer", given), 409, "refused")
    assert said["text"].startswith("It was not sent: ")
    assert asks(program, idle)["waits"]["answered_at"] is None


def test_a_run_that_is_not_there_is_not_found(world, project, program):
    given = {"since": "2026-11-21T12:00:00Z", "text": "go on"}
    denied(program.post("/runs/987654321/answer", given), 404, "not_found")


def test_a_text_beside_a_choice_is_refused_and_neither_is_sent(world, waiting, program, anna):
    given = {**a_choice(asks(program, waiting), 1), "text": "No, use the other one."}
    said = denied(program.post(f"/runs/{waiting.pk}/answer", given), 422, "invalid")
    assert set(said["fields"]) == {"text", "choice"}
    answer = anna.post(f"/runs/{waiting.pk}/answer", given, headers={"HX-Request": "true"})
    assert answer.status_code == 400
    assert "Nothing was sent." in answer.content.decode()
    assert world.sessions.typed == []
    denied(program.post(f"/runs/{waiting.pk}/answer", given | {"text": "  "}), 422, "invalid")
