"""Interrupting an agent: one key, once, by one person; then it waits for a next word."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client

from runs.core.ports import STOP_AGENTS, MaybeGiven
from runs.core.states import AgentMode, NoticeKind, Wait
from runs.models import Notice, Run
from runs.transcript import hook_events
from runs.waits import acts
from runs.waits.acts import AnswerRefused
from tests.api.program import Program, denied
from tests.fakes import World
from tests.waits.crowd import refusals
from tests.waits.test_answering import idle, since, waiting
from tests.waits.test_stepper import hears, looked, project, run, shows, told
from tests.web.people import hx, text_of
from tests.world.stories import start

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["idle", "project", "run", "waiting"]


def at(run: Run) -> str:
    return f"/runs/{run.pk}/interrupt"


def test_the_key_is_pressed_once_and_told_with_the_persons_name(world, run):
    acts.interrupt(world.lab, run, by="anna")
    assert world.sessions.typed == [(run.session, "key Escape")]
    (notice,) = Notice.objects.filter(kind=NoticeKind.RUN_INTERRUPTED)
    assert (notice.by, notice.text, notice.run_id) == (
        "anna",
        "interrupted: Escape was sent",
        run.pk,
    )
    with pytest.raises(AnswerRefused, match="anna has interrupted it already"):
        acts.interrupt(world.lab, run, by="ben")
    assert len(world.sessions.typed) == 1


@pytest.mark.postgres
def test_of_many_people_who_press_at_once_one_is_let_through(world, run):
    def press(mine: Run, name: str) -> None:
        acts.interrupt(world.lab, mine, by=name)

    refused = refusals(run, press)
    assert world.sessions.typed == [(run.session, "key Escape")]
    assert refused == ["answered"] * 4


def test_an_agent_that_was_interrupted_waits_for_a_word_and_goes_on_with_it(world, run):
    """No hook tells of an interrupt, so its screen does: it changes once and stands still."""
    pressed = world.clock.now
    acts.interrupt(world.lab, run, by="anna")
    world.clock.forward(seconds=1)
    shows(world, run, "Interrupted. What should Claude do instead?")
    assert run.waits == ""
    looked(world, run, seconds=11)
    assert (run.waits, run.waits_at) == (Wait.IDLE, pressed)
    acts.say(world.lab, run, "Use the other client.", since=since(run), by="anna")
    hears(world, run, {"event": "UserPromptSubmit"})
    looked(world, run, seconds=1)
    assert (run.waits, run.turn_interrupted_at, run.turn_interrupted_by) == ("", None, "")


def test_one_whose_agents_work_in_the_background_works_and_can_be_interrupted(world, run):
    """As Claude Code 2.1.332 has it by default: its main turn says that it stops, and they go on."""
    hears(world, run, {"event": "Stop", "background": ["subagent"]})
    looked(world, run, seconds=60)
    assert (run.waits, run.turn_ended_at) == ("", None)
    assert run.agent_note == "1 agent in the background"
    assert acts.may_interrupt(world.lab, run)
    acts.interrupt(world.lab, run, by="anna")
    assert world.sessions.typed == [(run.session, f"key {STOP_AGENTS}")]
    hears(world, run, {"event": "UserPromptSubmit"})
    hears(world, run, {"event": "Stop"})
    looked(world, run, seconds=11)
    assert run.waits == Wait.IDLE


def test_the_button_says_which_keys_are_sent(world, run, anna: Client):
    assert "Sends Escape" in text_of(anna.get(f"/runs/{run.pk}/"))
    hears(world, run, {"event": "Stop", "background": ["subagent"]})
    looked(world, run, seconds=1)
    page = text_of(anna.get(f"/runs/{run.pk}/"))
    assert "Sends Ctrl-X Ctrl-K twice" in page and "Sends Escape" not in page


def test_one_that_left_a_server_in_the_background_waits_as_ever(world, run):
    hears(world, run, {"event": "Stop", "background": ["shell"]})
    looked(world, run, seconds=11)
    assert run.waits == Wait.IDLE


def test_a_question_of_an_agent_in_the_background_is_interrupted_by_the_key_for_a_turn(world, run):
    hears(world, run, {"event": "Stop", "background": ["subagent"]})
    looked(world, run)
    Run.objects.filter(pk=run.pk).update(asks=Wait.PERMISSION, asked_at=world.lab.now())
    run.refresh_from_db()
    acts.interrupt(world.lab, run, by="anna")
    assert world.sessions.typed == [(run.session, "key Escape")]


def test_a_word_from_before_the_key_does_not_undo_it(world, run):
    """The worker reads its lines later than the key was pressed."""
    hears(world, run, {"event": "UserPromptSubmit"})
    world.clock.forward(seconds=1)
    acts.interrupt(world.lab, run, by="anna")
    looked(world, run, seconds=1)
    assert run.turn_interrupted_by == "anna"


def test_the_first_word_told_just_after_the_key_is_the_one_that_was_stopped(world, project):
    """A program shows that it works while its hook still runs, and a person presses at once."""
    run = shows(world, start(world, project, "7"), "Working (esc to interrupt)")
    acts.interrupt(world.lab, run, by="anna")
    world.clock.forward(seconds=1)
    hears(world, run, {"event": "UserPromptSubmit"})
    looked(world, run, seconds=11)
    assert (run.waits, run.turn_interrupted_by) == (Wait.IDLE, "anna")
    hears(world, run, {"event": "UserPromptSubmit"})
    looked(world, run, seconds=1)
    assert (run.waits, run.turn_interrupted_at) == ("", None)


def test_a_program_that_does_not_heed_the_key_is_not_taken_for_one_that_waits(world, run):
    acts.interrupt(world.lab, run, by="anna")
    for number in range(8):
        world.clock.forward(seconds=5)
        shows(world, run, f"✳ Working… {number}")
    assert (run.waits, run.turn_interrupted_at) == ("", None)
    looked(world, run, minutes=1)
    assert run.waits == ""


def test_a_question_that_stood_there_is_gone_with_the_key(world, waiting):
    acts.interrupt(world.lab, waiting, by="anna")
    waiting.refresh_from_db()
    assert waiting.asks == ""
    world.clock.forward(seconds=1)
    shows(world, waiting, "Interrupted. What should Claude do instead?")
    looked(world, waiting, seconds=11)
    assert waiting.waits == Wait.IDLE


def test_it_may_be_interrupted_again_when_nothing_came_of_it(world, run):
    acts.interrupt(world.lab, run, by="anna")
    assert not acts.may_interrupt(world.lab, run)
    world.clock.forward(seconds=31)
    assert acts.may_interrupt(world.lab, run)
    acts.interrupt(world.lab, run, by="ben")
    assert len(world.sessions.typed) == 2


def test_what_has_nothing_to_do_is_not_interrupted(world, idle):
    assert not acts.may_interrupt(world.lab, idle)
    with pytest.raises(AnswerRefused, match="does not work on anything") as refused:
        acts.interrupt(world.lab, idle, by="anna")
    assert refused.value.code == "not_working"
    assert world.sessions.typed == []


def test_a_turn_whose_end_the_worker_has_not_read_yet_is_not_interrupted(world, run):
    hears(world, run, {"event": "Stop"})
    with pytest.raises(AnswerRefused, match="does not work on anything"):
        acts.interrupt(world.lab, run, by="anna")
    assert world.sessions.typed == []
    assert looked(world, run, seconds=11).waits == Wait.IDLE


def test_what_stood_still_after_a_key_gets_no_second_one(world, run):
    """An interrupt ends no turn that a hook would tell of."""
    acts.interrupt(world.lab, run, by="anna")
    world.clock.forward(seconds=1)
    shows(world, run, "Interrupted. What should Claude do instead?")
    looked(world, run, seconds=40)
    assert run.waits == Wait.IDLE
    assert not acts.may_interrupt(world.lab, run)
    with pytest.raises(AnswerRefused, match="does not work on anything") as refused:
        acts.interrupt(world.lab, run, by="ben")
    assert refused.value.code == "not_working"
    assert world.sessions.typed == [(run.session, "key Escape")]


def test_what_two_processes_read_at_once_is_kept_and_told_once(world, run):
    """A web process reads the hooks before it sends a key, while the worker does too."""
    workers = Run.objects.select_related("project").get(pk=run.pk)
    hears(world, run, {"event": "StopFailure", "kind": "unknown", "text": "Something odd"})
    with pytest.raises(AnswerRefused, match="does not work on anything"):
        acts.interrupt(world.lab, run, by="anna")
    hook_events.hear(world.lab, [workers])
    assert told(NoticeKind.RUN_TROUBLED) == ["the agent ended with an error: Something odd"]


def test_a_run_that_has_ended_is_not_interrupted(world, run):
    world.tracker.add_pull("demo", "afk/7")
    looked(world, run)
    with pytest.raises(AnswerRefused, match="does not work on anything"):
        acts.interrupt(world.lab, run, by="anna")


def test_a_program_that_reads_no_keys_gets_none(world, run):
    Run.objects.filter(pk=run.pk).update(mode=AgentMode.ONE_SHOT)
    run.refresh_from_db()
    assert not acts.may_interrupt(world.lab, run)
    with pytest.raises(AnswerRefused, match="reads no keys"):
        acts.interrupt(world.lab, run, by="anna")
    assert world.sessions.typed == []


def test_a_session_on_another_machine_gets_no_key_from_here(world, run):
    Run.objects.filter(pk=run.pk).update(host="elsewhere")
    with pytest.raises(AnswerRefused, match="another machine"):
        acts.interrupt(world.lab, run, by="anna")


def test_a_key_to_a_session_that_has_ended_is_taken_back(world, run):
    del world.sessions.all[run.session]
    with pytest.raises(
        AnswerRefused, match=r"It was not sent: the session .* is not there any more"
    ):
        acts.interrupt(world.lab, run, by="anna")
    run.refresh_from_db()
    assert (run.turn_interrupted_at, run.turn_interrupted_by) == (None, "")


def test_a_key_that_may_have_arrived_is_not_taken_back(world, run):
    def press(name: str, marker: str, key: str) -> None:
        raise MaybeGiven("tmux gave no answer")

    world.sessions.press = press
    with pytest.raises(AnswerRefused, match="It is not known whether it arrived"):
        acts.interrupt(world.lab, run, by="anna")
    run.refresh_from_db()
    assert run.turn_interrupted_by == "anna"


def test_a_clock_that_is_set_moves_the_interrupt_with_it(world, run):
    acts.interrupt(world.lab, run, by="anna")
    run.refresh_from_db()
    before = run.turn_interrupted_at
    world.clock.jump(hours=-1)
    looked(world, run)
    assert run.turn_interrupted_at == before - timedelta(hours=1)


@pytest.mark.row("LAB-132", level="contract")
@pytest.mark.parametrize("style", ["htmx", "form"])
def test_the_page_has_a_button_and_says_what_came_of_it(world, run, anna: Client, style):
    there = f"/runs/{run.pk}/"
    assert 'id="interrupt"' in text_of(anna.get(there))
    answer = hx(anna, at(run), {}, at=there) if style == "htmx" else anna.post(at(run))
    assert answer.status_code == (200 if style == "htmx" else 303)
    page = text_of(anna.get(there))
    assert "anna interrupted it at" in page
    assert "its screen has not changed yet." in page
    assert 'id="interrupt"' not in page
    world.clock.forward(seconds=1)
    shows(world, run, "Interrupted.")
    assert "its screen has changed since." in text_of(anna.get(there))
    again = hx(anna, at(run), {}, at=there)
    assert again.status_code == 409
    assert "anna has interrupted it already" in text_of(again)
    assert world.sessions.typed == [(run.session, "key Escape")]


def test_whoever_may_only_look_sees_no_button_and_sends_no_key(world, run, vera: Client):
    assert 'id="interrupt"' not in text_of(vera.get(f"/runs/{run.pk}/"))
    assert vera.post(at(run)).status_code == 403
    assert world.sessions.typed == []


def test_a_program_interrupts_over_the_api(world, run, operator: User):
    program = Program.of(operator)
    answer = program.post(f"/runs/{run.pk}/interrupt")
    assert answer.status_code == 200, answer.content
    told_at = answer.json()["interrupted"]
    assert (told_at["by"], told_at["has_changed"]) == ("anna", False)
    denied(program.post(f"/runs/{run.pk}/interrupt"), 409, "answered")
    world.clock.forward(seconds=1)
    shows(world, run, "Interrupted.")
    assert program.get(f"/runs/{run.pk}").json()["interrupted"]["has_changed"] is True
    assert len(told(NoticeKind.RUN_INTERRUPTED)) == 1


def test_the_api_says_why_it_sends_no_key(world: World, idle: Run, operator: User):
    program = Program.of(operator)
    denied(program.post(f"/runs/{idle.pk}/interrupt"), 409, "not_working")
    Run.objects.filter(pk=idle.pk).update(mode=AgentMode.ONE_SHOT)
    denied(program.post(f"/runs/{idle.pk}/interrupt"), 409, "no_keys")
    denied(program.post("/runs/987654321/interrupt"), 404, "not_found")
