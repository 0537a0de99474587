"""Answering an agent that waits: once, by one person, to the question that they saw."""

from __future__ import annotations

import pytest
from django.test import Client

from runs.core.states import NoticeKind
from runs.lifecycle import answering
from runs.lifecycle.answering import AnswerRefused
from runs.lifecycle.wait_rules import choices
from runs.models import Run
from tests.fakes import World
from tests.lifecycle.test_waits import BASH, hears, looked, project, run, shows, told
from tests.web.people import hx, text_of

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["project", "run"]

DIALOG = """
 Bash command
   rm -rf build
 Do you want to proceed?
 ❯ 1. Yes
   2. Yes, and don't ask again for rm commands in /worktree
   3. No, and tell Claude what to do differently (esc)
"""


@pytest.fixture
def waiting(world: World, run: Run) -> Run:
    """A run whose agent asks for a permission, with the dialog on its screen."""
    hears(world, run, BASH)
    return shows(world, run, DIALOG)


@pytest.fixture
def idle(world: World, run: Run) -> Run:
    """A run whose agent has ended its turn without delivering anything."""
    hears(world, run, {"event": "Stop"})
    return looked(world, run, seconds=11)


@pytest.mark.parametrize(
    ("screen", "found"),
    [
        (DIALOG, ["Yes", "Yes, and don't ask again", "No, and tell"]),
        ("1. Yes", []),
        ("", []),
        ("2. b\n3. c", []),
        ("1. a\n2. b\n\n│ ❯ 1) Allow │\n│   2) Deny  │", ["Allow", "Deny"]),
        ("1. a\n2. b\n2. again\n4. gap", ["a", "b"]),
        ("1. one\n" * 40 + "2. two", ["one", "two"]),
        ("1. old\n2. old\n" + "text\n" * 40, []),
        ("12. twelve\n1.none\n1. a\n2. " + "x" * 500, ["a", "x" * 200]),
    ],
)
def test_what_a_screen_offers_to_choose_from(screen, found):
    offered = choices(screen)
    assert [one.digit for one in offered] == list(range(1, len(found) + 1))
    assert len(offered) == len(found)
    assert all(one.text.startswith(text) for one, text in zip(offered, found, strict=True))


def test_a_choice_is_pressed_once_and_told_with_the_persons_name(world, waiting):
    since = waiting.waits_at
    answering.choose(world.lab, waiting, 1, since=since, by="anna")
    assert world.sessions.typed == [(waiting.session, "key 1")]
    waiting.refresh_from_db()
    assert (waiting.answer, waiting.answered_by) == ("1. Yes", "anna")
    assert told(NoticeKind.RUN_ANSWERED) == ["answered: 1. Yes"]
    with pytest.raises(AnswerRefused, match=r"anna has answered it already: 1\. Yes\."):
        answering.choose(world.lab, waiting, 2, since=since, by="ben")
    assert len(world.sessions.typed) == 1


def test_a_text_goes_to_an_agent_that_has_stopped(world, idle):
    answering.say(world.lab, idle, " Use the\r\nother client.\x07 ", since=idle.waits_at, by="anna")
    assert world.sessions.typed == [(idle.session, "Use the\nother client.")]
    hears(world, idle, {"event": "UserPromptSubmit"})
    looked(world, idle)
    assert (idle.waits, idle.answer, idle.answered_at) == ("", "", None)


@pytest.mark.parametrize("text", ["", " \n ", "x" * 4001])
def test_a_text_that_says_nothing_or_too_much_is_refused_at_its_field(world, idle, text):
    with pytest.raises(AnswerRefused) as refused:
        answering.say(world.lab, idle, text, since=idle.waits_at, by="anna")
    assert refused.value.field == "text"
    assert world.sessions.typed == []


def test_an_answer_to_another_question_is_not_sent(world, waiting):
    before = waiting.waits_at
    hears(world, waiting, {"event": "UserPromptSubmit"})
    looked(world, waiting, seconds=1)
    hears(world, waiting, {**BASH, "wish": "git push --force"})
    looked(world, waiting, seconds=1)
    with pytest.raises(AnswerRefused, match="asks something else by now"):
        answering.choose(world.lab, waiting, 1, since=before, by="anna")
    assert world.sessions.typed == []


def test_an_answer_that_comes_when_the_question_is_gone_is_not_sent(world, waiting):
    since = waiting.waits_at
    hears(world, waiting, {"event": "UserPromptSubmit"})
    looked(world, waiting, seconds=1)
    with pytest.raises(AnswerRefused, match="does not wait any more"):
        answering.choose(world.lab, waiting, 1, since=since, by="anna")
    assert world.sessions.typed == []


def test_a_choice_that_is_not_on_the_screen_any_more_is_not_pressed(world, waiting):
    world.sessions.text[waiting.session] = "✳ Working…"
    with pytest.raises(AnswerRefused, match="does not offer this choice any more"):
        answering.choose(world.lab, waiting, 1, since=waiting.waits_at, by="anna")
    waiting.refresh_from_db()
    assert (world.sessions.typed, waiting.answered_at) == ([], None)


def test_an_answer_to_a_session_that_has_ended_is_not_taken_for_sent(world, idle):
    del world.sessions.all[idle.session]
    with pytest.raises(AnswerRefused, match=r"not sent: the session .* is not there any more"):
        answering.say(world.lab, idle, "go on", since=idle.waits_at, by="anna")
    idle.refresh_from_db()
    assert (idle.answered_at, idle.answer) == (None, "")
    assert told(NoticeKind.RUN_STEP)[-1].startswith("not sent: ")


def test_an_answer_that_got_lost_may_be_given_again_and_one_that_arrived_not(world, idle):
    """The process died between storing and sending: nothing changes on the screen."""
    Run.objects.filter(pk=idle.pk).update(answered_at=world.clock.now, answered_by="anna")
    with pytest.raises(AnswerRefused, match="answered it already"):
        answering.say(world.lab, idle, "go on", since=idle.waits_at, by="ben")
    world.clock.forward(seconds=16)
    answering.say(world.lab, idle, "go on", since=idle.waits_at, by="ben")
    assert len(world.sessions.typed) == 1
    world.clock.forward(seconds=2)
    Run.objects.filter(pk=idle.pk).update(screen_at=world.clock.now)
    world.clock.forward(seconds=16)
    with pytest.raises(AnswerRefused, match="ben has answered it already"):
        answering.say(world.lab, idle, "go on", since=idle.waits_at, by="anna")


def test_a_session_on_another_machine_gets_nothing_from_here(world, idle):
    Run.objects.filter(pk=idle.pk).update(host="elsewhere")
    idle.refresh_from_db()
    with pytest.raises(AnswerRefused, match="another machine"):
        answering.say(world.lab, idle, "go on", since=idle.waits_at, by="anna")


def at(run: Run) -> str:
    return f"/runs/{run.pk}/answer"


@pytest.mark.row("LAB-132", level="contract")
@pytest.mark.parametrize("style", ["htmx", "form"])
def test_the_page_offers_the_choices_and_sends_one(world, waiting, anna: Client, style):
    page = text_of(anna.get(f"/runs/{waiting.pk}/"))
    form = page[page.index('id="answering"') : page.index('id="terminal"')]
    assert "2. Yes, and don&#x27;t ask again for rm commands" in form
    assert "<textarea" not in form
    since = waiting.waits_at.isoformat()
    given = {"since": since, "choice": "1"}
    there = f"/runs/{waiting.pk}/"
    answer = (
        hx(anna, at(waiting), given, at=there) if style == "htmx" else anna.post(at(waiting), given)
    )
    assert answer.status_code == (200 if style == "htmx" else 303)
    assert world.sessions.typed == [(waiting.session, "key 1")]
    page = text_of(anna.get(there))
    assert "anna sent <q>1. Yes</q> at" in page
    assert "its screen has not changed yet." in page
    again = hx(anna, at(waiting), {**given, "choice": "2"}, at=there)
    assert again.status_code == 409
    assert "anna has answered it already" in text_of(again)


def test_the_page_has_a_box_for_a_text_where_nothing_is_offered(world, idle, anna: Client):
    page = text_of(anna.get(f"/runs/{idle.pk}/"))
    form = page[page.index('id="answering"') : page.index('id="terminal"')]
    assert "<textarea" in form
    assert 'value="continue"' in form
    given = {"since": idle.waits_at.isoformat(), "text": ["", "continue"]}
    assert anna.post(at(idle), given).status_code == 303
    assert world.sessions.typed == [(idle.session, "continue")]


@pytest.mark.parametrize("given", [{}, {"since": "x", "text": "y"}, {"choice": "x"}])
def test_an_answer_that_cannot_be_read_is_refused(world, idle, anna: Client, given):
    answer = hx(anna, at(idle), given)
    assert answer.status_code == 400
    assert "Nothing was sent." in text_of(answer)


def test_whoever_may_only_look_sees_no_form_and_sends_nothing(world, idle, vera: Client):
    page = text_of(vera.get(f"/runs/{idle.pk}/"))
    assert "has stopped and waits for a word" in page
    assert "answer-form" not in page
    given = {"since": idle.waits_at.isoformat(), "text": "go on"}
    assert vera.post(at(idle), given).status_code == 403
    assert world.sessions.typed == []


def test_what_an_agent_offers_is_only_text(world, run, anna: Client):
    hears(world, run, BASH)
    shows(world, run, "1. <script>x</script>\n2. b")
    page = text_of(anna.get(f"/runs/{run.pk}/"))
    assert "1. &lt;script&gt;x" in page
