"""An agent of a loop asks a person: who is told, who answers, and what comes when nobody does."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runs.core.states import NoticeKind, Wait
from runs.loops import acts, questions
from runs.loops.acts import LoopRefused
from runs.models import Notice, Project, Run
from runs.waits import acts as waits
from tests.fakes import World
from tests.loops.desk import Desk, desk_of, project_of, topic
from tests.world.stories import look

pytestmark = pytest.mark.django_db(transaction=True)
ASKED = topic("human.interact", "Which port?")


@pytest.fixture
def desk(world: World) -> Desk:
    made = desk_of(world, project_of(world, answer_seconds=120))
    made.begin()
    return made


def run_of(desk: Desk) -> Run:
    return Run.objects.select_related("project", "profile").get(pk=desk.run.pk)


def waiting(desk: Desk) -> Run:
    """The run once the worker has seen that it waits."""
    desk.world.clock.forward(seconds=5)
    look(desk.world)
    return run_of(desk)


@pytest.mark.row("RALPH-76", level="contract")
def test_a_question_holds_the_next_turn_up_and_a_person_is_told(desk):
    answer = desk.finish(ASKED)
    assert (answer.do, answer.content["seconds"]) == ("wait", 120.0)
    assert "waits up to 120 s for an answer" in answer.content["why"]
    run = waiting(desk)
    assert (run.waits, run.waits_note) == (Wait.QUESTION, "Which port?")
    form = waits.form(desk.lab, run)
    assert form is not None and form.has_text
    told = Notice.objects.filter(kind=NoticeKind.RUN_WAITS).latest("pk")
    assert "asks a question: Which port?" in told.text


@pytest.mark.row("RALPH-76", level="contract")
def test_the_answer_is_guidance_of_the_next_prompt_and_given_once(desk):
    desk.finish(ASKED)
    run = waiting(desk)
    assert run.waits_at is not None
    questions.answer(desk.lab, run, "8080", since=run.waits_at, by="anna")
    with pytest.raises(LoopRefused, match="anna has answered it already: 8080"):
        questions.answer(desk.lab, run, "9090", since=run.waits_at, by="bert")
    order = desk.step(1)
    assert order.do == "turn"
    assert "> To your question “Which port?”:\n> 8080" in order.content["prompt"]
    assert "NO ANSWER" not in order.content["prompt"]
    assert "human.interact" not in order.content["prompt"]
    assert not waiting(desk).is_waiting


@pytest.mark.row("RALPH-76", level="contract")
def test_without_an_answer_it_goes_on_and_the_prompt_says_so_once(desk):
    desk.finish(ASKED)
    run = waiting(desk)
    since = run.waits_at
    desk.world.clock.forward(seconds=110)
    assert desk.step(1).do == "wait"
    desk.world.clock.forward(seconds=6)
    order = desk.step(1)
    assert order.do == "turn"
    assert "## NO ANSWER" in order.content["prompt"]
    assert "> Which port?" in order.content["prompt"]
    assert not waiting(desk).is_waiting
    with pytest.raises(LoopRefused, match="does not wait any more"):
        questions.answer(desk.lab, run, "8080", since=since, by="anna")
    assert "## NO ANSWER" not in desk.finish(topic("build.done")).content["prompt"]


def test_any_guidance_is_an_answer_and_a_question_with_the_completion_word_is_none(desk):
    desk.finish(ASKED)
    waiting(desk)
    acts.guide(desk.lab, run_of(desk), "Take 8080.", by="anna")
    assert run_of(desk).asks == ""
    order = desk.step(1)
    assert "NO ANSWER" not in order.content["prompt"]
    acts.acknowledge(desk.lab, desk.loop)
    assert desk.finish(ASKED, topic("LOOP_COMPLETE")).do == "end"
    assert run_of(desk).asks == ""


def test_a_long_answer_is_kept_whole_whatever_the_question(desk):
    desk.finish(topic("human.interact", "Which port? " * 30))
    run = waiting(desk)
    assert run.waits_at is not None
    said = "x" * (acts.MOST_TEXT - 60) + " NOT 8080!"
    made = questions.answer(desk.lab, run, said, since=run.waits_at, by="anna")
    assert made.text.startswith("To your question “Which")
    assert made.text.endswith("NOT 8080!")


def test_what_was_said_before_the_question_is_no_answer_to_it(desk):
    desk.world.clock.forward(seconds=1)
    acts.guide(desk.lab, run_of(desk), "mind the docs", by="anna")
    desk.world.clock.forward(seconds=1)
    assert desk.finish(ASKED).content["seconds"] == 120.0
    assert desk.step(1).do == "wait"
    acts.guide(desk.lab, run_of(desk), "8080", by="anna")
    order = desk.step(1)
    assert (order.do, "NO ANSWER" in order.content["prompt"]) == ("turn", False)


def test_a_restart_ends_the_wait_for_an_answer_and_the_budget_runs_on(desk):
    Project.objects.update(waits_stop_budget=True)
    desk.finish(ASKED)
    assert waiting(desk).is_waiting
    acts.ask_restart(desk.lab, run_of(desk), by="anna")
    assert (desk.step(1).do, run_of(desk).asks) == ("restart", "")
    assert desk.step(generation=2).do == "turn"
    run = waiting(desk)
    assert (run.is_waiting, run.budget_stopped_at) == (False, None)


def test_a_restart_and_a_stop_do_not_wait_for_an_answer(desk):
    desk.finish(ASKED)
    acts.ask_restart(desk.lab, run_of(desk), by="anna")
    assert desk.step(1).do == "restart"
    order = desk.step(generation=2)
    assert (order.do, "NO ANSWER" in order.content["prompt"]) == ("turn", False)
    assert desk.finish(ASKED).do == "wait"
    acts.ask_stop(desk.lab, run_of(desk), by="anna")
    assert desk.step(1, 2).do == "end"


@pytest.mark.row("RALPH-76", level="contract")
def test_the_page_and_the_api_answer_it(desk, anna):
    desk.finish(ASKED)
    run = waiting(desk)
    page = anna.get(f"/runs/{run.pk}/").content.decode()
    assert "Which port?" in page
    assert "Tell the agent" in page
    assert "Which port?" in anna.get("/").content.decode()
    assert run.waits_at is not None
    sent = {"since": run.waits_at.isoformat(), "text": "8080"}
    assert anna.post(f"/runs/{run.pk}/answer", sent).status_code == 303
    assert "8080" in desk.step(1).content["prompt"]
    desk.finish(ASKED)
    run = waiting(desk)
    assert run.waits_at is not None
    late = {"since": (run.waits_at - timedelta(seconds=9)).isoformat(), "text": "8080"}
    assert anna.post(f"/runs/{run.pk}/answer", late).status_code == 409
