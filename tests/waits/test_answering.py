"""Answering an agent that waits: once, by one person, to the question that they saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pytest
from django.test import Client

from runs.core.ports import MaybeGiven
from runs.core.states import NoticeKind
from runs.models import Run
from runs.waits import acts
from runs.waits.acts import AnswerRefused
from runs.waits.rules import dialog
from tests.fakes import World
from tests.waits.crowd import refusals
from tests.waits.test_stepper import BASH, DIALOG, hears, looked, project, run, shows, told
from tests.web.people import hx, text_of

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["project", "run"]


@pytest.fixture
def waiting(world: World, run: Run) -> Run:
    """A run whose agent asks for a permission, with the dialog on its screen."""
    hears(world, run, BASH)
    world.clock.forward(seconds=4)
    return shows(world, run, DIALOG)


@pytest.fixture
def idle(world: World, run: Run) -> Run:
    """A run whose agent has ended its turn without delivering anything."""
    hears(world, run, {"event": "Stop"})
    return looked(world, run, seconds=11)


def since(run: Run) -> datetime:
    assert run.waits_at is not None
    return run.waits_at


def seen(run: Run, screen: str = DIALOG) -> dict[str, Any]:
    """What a person has before them when they press a choice."""
    return {"since": since(run), "mark": dialog(screen).mark}


RULE = "─" * 60


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
        (f"❯ 1. Use it\n  2. Then push\n\n⏺ Refused.\n{RULE}\n❯ \n{RULE}\n  ? for shortcuts", []),
        ("❯ 1. a\n  2. b\n\n╭────╮\n│ >  │\n╰────╯", []),
        ("› 1. a\n  2. b\n\n• Ok.\n\n› Ask Codex to do anything", []),
        ("❯ 1. a\n  2. b\n\none\ntwo\nthree\nfour\nfive", []),
        ("❯ 1. a\n  2. b\n     and what b means\n\n────\n Esc to cancel", ["a", "b"]),
        ("12. twelve\n1.none\n1. a\n2. " + "x" * 500, ["a", "x" * 200]),
    ],
)
def test_what_a_screen_offers_to_choose_from(screen, found):
    offered = dialog(screen).choices
    assert [one.digit for one in offered] == list(range(1, len(found) + 1))
    assert len(offered) == len(found)
    assert all(one.text.startswith(text) for one, text in zip(offered, found, strict=True))


def test_two_dialogs_are_told_apart_and_a_moved_cursor_is_the_same_one():
    moved = DIALOG.replace("❯ 1", "  1").replace("  2.", "❯ 2.")
    assert dialog(moved).mark == dialog(DIALOG).mark
    assert dialog(DIALOG.replace("rm -rf build", "git status")).mark != dialog(DIALOG).mark
    assert dialog(DIALOG).is_open
    assert not dialog("I did:\n1. this\n2. that").is_open
    assert not dialog("They wrote:\n> 1. this\n> 2. that").is_open


CONFIRM = f"{DIALOG}\n Press enter to confirm or esc to cancel\n\n\n"


@pytest.mark.parametrize(
    ("screen", "cursor", "wants_enter"),
    [
        (DIALOG, 1, False),
        (CONFIRM, 1, True),
        (CONFIRM.replace("❯ 1", "  1").replace("  3.", "❯ 3."), 3, True),
        ("› 1. Trust\n  2. Back\n\n  enter continue · esc back", 1, True),
        ("1. a\n2. b\nCenter it, then enter", 0, True),
        ("❯ 1. a\n2. b\nCenter", 1, False),
        ("❯ 1. a\n2. b\n\n\n\n\nenter", 1, False),
        (f"{CONFIRM}{chr(10) * 40}", 1, True),
    ],
)
def test_where_the_cursor_stands_and_whether_enter_takes_it(screen, cursor, wants_enter):
    found = dialog(screen)
    assert (found.cursor, found.wants_enter) == (cursor, wants_enter)


@pytest.fixture
def confirming(world: World, run: Run) -> Run:
    """One whose dialog takes no digits: it wants the cursor there, and Enter."""
    hears(world, run, BASH)
    world.clock.forward(seconds=4)
    return shows(world, run, CONFIRM)


def moving(world: World, run: Run) -> None:
    """Its cursor moves with the keys."""
    press = world.sessions.press

    def pressed(name: str, marker: str, key: str) -> None:
        press(name, marker, key)
        at = dialog(world.sessions.text[run.session]).cursor + {"Down": 1, "Up": -1}.get(key, 0)
        plain = CONFIRM.replace("❯ 1", "  1")
        world.sessions.text[run.session] = plain.replace(f"   {at}.", f" ❯ {at}.")

    world.sessions.press = pressed


@pytest.mark.parametrize(
    ("digit", "keys"), [(1, ["Enter"]), (2, ["Down", "Enter"]), (3, ["Down", "Down", "Enter"])]
)
def test_a_dialog_that_wants_enter_gets_it_where_the_choice_is(world, confirming, digit, keys):
    moving(world, confirming)
    acts.choose(world.lab, confirming, digit, **seen(confirming, CONFIRM), by="anna")
    assert world.sessions.typed == [(confirming.session, f"key {key}") for key in keys]


def test_enter_is_not_pressed_where_the_cursor_did_not_come(world, confirming):
    """Else it would take another choice than the one that was meant."""
    with pytest.raises(AnswerRefused, match="Enter was not pressed") as refused:
        acts.choose(world.lab, confirming, 3, **seen(confirming, CONFIRM), by="anna")
    assert refused.value.code == "unsure"
    assert (confirming.session, "key Enter") not in world.sessions.typed


def test_a_choice_is_pressed_once_and_told_with_the_persons_name(world, waiting):
    acts.choose(world.lab, waiting, 1, **seen(waiting), by="anna")
    assert world.sessions.typed == [(waiting.session, "key 1")]
    waiting.refresh_from_db()
    assert (waiting.answer, waiting.answered_by) == ("1. Yes", "anna")
    assert told(NoticeKind.RUN_ANSWERED) == ["answered: 1. Yes"]
    with pytest.raises(AnswerRefused, match=r"anna has answered it already: 1\. Yes\."):
        acts.choose(world.lab, waiting, 2, **seen(waiting), by="ben")
    assert len(world.sessions.typed) == 1


@pytest.mark.postgres
def test_of_many_people_who_press_at_once_one_is_let_through(world, waiting):
    def press(mine: Run, name: str) -> None:
        acts.choose(world.lab, mine, 1, **seen(waiting), by=name)

    refused = refusals(waiting, press)
    assert world.sessions.typed == [(waiting.session, "key 1")]
    assert refused == ["answered"] * 4
    assert len(told(NoticeKind.RUN_ANSWERED)) == 1


def test_a_choice_is_not_pressed_in_another_dialog_than_the_one_that_was_seen(world, waiting):
    """Somebody who is attached answered, and the next one stands there with the same words."""
    world.sessions.text[waiting.session] = DIALOG.replace("rm -rf build", "git push --force")
    with pytest.raises(AnswerRefused, match="asks something else by now"):
        acts.choose(world.lab, waiting, 1, **seen(waiting), by="anna")
    assert world.sessions.typed == []


def test_a_text_is_never_typed_into_a_dialog(world, waiting, idle):
    with pytest.raises(AnswerRefused, match="wants one of its choices pressed"):
        acts.say(world.lab, waiting, "No, don't", since=since(waiting), by="anna")
    assert world.sessions.typed == []


def test_an_idle_agent_that_shows_a_dialog_by_now_gets_no_text(world, idle):
    world.sessions.text[idle.session] = DIALOG
    with pytest.raises(AnswerRefused, match="wants one of its choices pressed"):
        acts.say(world.lab, idle, "go on", since=since(idle), by="anna")


def test_a_text_goes_to_an_agent_that_has_stopped(world, idle):
    said = " Use the\r\nother client.\x07 "
    acts.say(world.lab, idle, said, since=since(idle), by="anna")
    assert world.sessions.typed == [(idle.session, "Use the\nother client.")]
    hears(world, idle, {"event": "UserPromptSubmit"})
    looked(world, idle)
    assert (idle.waits, idle.answer, idle.answered_at) == ("", "", None)


def test_a_summary_of_several_points_is_no_choice(world, idle):
    world.sessions.text[idle.session] = "I did two things:\n1. this\n2. that"
    form = acts.form(world.lab, idle)
    assert form is not None
    assert (form.has_text, form.choices) == (True, ())


LIST = f"❯ 1. Use it\n  2. Then push\n\n⏺ Refused. What now?\n{RULE}\n❯ \n{RULE}"


def test_a_list_that_a_person_wrote_is_no_choice_and_takes_a_text(world, idle):
    """Claude Code shows what it was told behind the sign that stands before its choices."""
    shows(world, idle, LIST)
    looked(world, idle, seconds=60)
    form = acts.form(world.lab, idle)
    assert form is not None
    assert (form.has_text, form.choices) == (True, ())
    with pytest.raises(AnswerRefused, match="asks something else"):
        acts.choose(world.lab, idle, 1, since=since(idle), mark=dialog(LIST).mark, by="anna")
    acts.say(world.lab, idle, "Use ssh.", since=since(idle), by="anna")
    assert world.sessions.typed == [(idle.session, "Use ssh.")]


@pytest.mark.parametrize("text", ["", " \n ", "x" * 4001])
def test_a_text_that_says_nothing_or_too_much_is_refused_at_its_field(world, idle, text):
    with pytest.raises(AnswerRefused) as refused:
        acts.say(world.lab, idle, text, since=since(idle), by="anna")
    assert refused.value.field == "text"
    assert world.sessions.typed == []


def test_an_answer_to_another_question_is_not_sent(world, waiting):
    before = seen(waiting)
    world.clock.forward(seconds=30)
    hears(world, waiting, {**BASH, "wish": "git push --force"})
    looked(world, waiting, seconds=4)
    with pytest.raises(AnswerRefused, match="asks something else by now"):
        acts.choose(world.lab, waiting, 1, **before, by="anna")
    assert world.sessions.typed == []


def test_the_next_of_several_dialogs_may_be_answered_though_no_hook_tells_of_it(world, waiting):
    """Several tools asked at once: only the first question is told by a hook of its own."""
    acts.choose(world.lab, waiting, 1, **seen(waiting), by="anna")
    more = DIALOG.replace("rm -rf build", "rm -rf dist")
    world.clock.forward(seconds=5)
    shows(world, waiting, more)
    looked(world, waiting, seconds=4)
    assert (waiting.waits, waiting.answered_at, waiting.waits_note) == ("permission", None, "")
    acts.choose(world.lab, waiting, 1, **seen(waiting, more), by="anna")
    assert len(world.sessions.typed) == 2


def test_an_answer_that_comes_when_the_question_is_gone_is_not_sent(world, waiting):
    before = seen(waiting)
    hears(world, waiting, {"event": "UserPromptSubmit"})
    looked(world, waiting, seconds=1)
    with pytest.raises(AnswerRefused, match="does not wait any more"):
        acts.choose(world.lab, waiting, 1, **before, by="anna")
    assert world.sessions.typed == []


def test_an_answer_to_a_session_that_has_ended_is_not_taken_for_sent(world, idle):
    del world.sessions.all[idle.session]
    with pytest.raises(AnswerRefused, match=r"not sent: the session .* is not there any more"):
        acts.say(world.lab, idle, "go on", since=since(idle), by="anna")
    idle.refresh_from_db()
    assert (idle.answered_at, idle.answer) == (None, "")
    assert told(NoticeKind.RUN_STEP)[-1].startswith("not sent: ")


def test_what_may_have_arrived_is_not_taken_back(world, idle):
    def say(name: str, marker: str, text: str) -> None:
        raise MaybeGiven("tmux gave no answer")

    world.sessions.say = say
    with pytest.raises(AnswerRefused, match="It is not known whether it arrived"):
        acts.say(world.lab, idle, "go on", since=since(idle), by="anna")
    idle.refresh_from_db()
    assert (idle.answered_by, idle.answer) == ("anna", "go on")


def test_tmux_that_is_silent_gets_no_answer(world, waiting):
    world.sessions.broken = "tmux gave no answer"
    with pytest.raises(AnswerRefused, match="screen could not be read"):
        acts.choose(world.lab, waiting, 1, **seen(waiting), by="anna")
    assert acts.form(world.lab, waiting) is None


def test_an_answer_that_got_lost_may_be_given_again_while_its_dialog_stands(world, waiting):
    """The process died between storing and sending: the same dialog stands."""
    at = world.clock.now
    lost = {"answered_at": at, "answered_by": "anna", "answered_mark": dialog(DIALOG).mark}
    Run.objects.filter(pk=waiting.pk).update(**lost)
    with pytest.raises(AnswerRefused, match="answered it already"):
        acts.choose(world.lab, waiting, 1, **seen(waiting), by="ben")
    waiting.refresh_from_db()
    assert acts.form(world.lab, waiting) is None
    world.clock.forward(seconds=31)
    assert acts.form(world.lab, waiting) is not None
    acts.choose(world.lab, waiting, 1, **seen(waiting), by="ben")
    assert len(world.sessions.typed) == 1


def test_a_choice_is_not_pressed_after_a_key_that_came_in_between(world, waiting):
    """The key closed the dialog, so that the digit would go to the prompt."""
    screens = world.sessions.screens

    def read(names: Sequence[str], lines: int = 0) -> Mapping[str, str]:
        found = screens(names, lines)
        if not world.sessions.typed:
            acts.interrupt(world.lab, Run.objects.get(pk=waiting.pk), by="ben")
        return found

    world.sessions.screens = read
    with pytest.raises(AnswerRefused, match="ben has interrupted it just now") as refused:
        acts.choose(world.lab, waiting, 1, **seen(waiting), by="anna")
    assert refused.value.code == "answered"
    assert world.sessions.typed == [(waiting.session, "key Escape")]
    waiting.refresh_from_db()
    assert acts.form(world.lab, waiting) is None


def test_no_key_is_sent_while_an_answer_is_on_its_way(world, waiting):
    press = world.sessions.press

    def pressed(name: str, marker: str, key: str) -> None:
        mine = Run.objects.get(pk=waiting.pk)
        assert not acts.may_interrupt(world.lab, mine)
        with pytest.raises(AnswerRefused, match="anna has answered it just now: 1"):
            acts.interrupt(world.lab, mine, by="ben")
        press(name, marker, key)

    world.sessions.press = pressed
    acts.choose(world.lab, waiting, 1, **seen(waiting), by="anna")
    assert world.sessions.typed == [(waiting.session, "key 1")]
    world.sessions.press = press
    world.clock.forward(seconds=31)  # nothing came of it
    acts.interrupt(world.lab, waiting, by="ben")
    assert world.sessions.typed[1:] == [(waiting.session, "key Escape")]


def test_an_answer_that_arrived_is_not_given_again_to_the_next_dialog(world, waiting):
    acts.choose(world.lab, waiting, 1, **seen(waiting), by="anna")
    world.clock.forward(seconds=60)  # and no worker looks meanwhile
    more = DIALOG.replace("rm -rf build", "rm -rf dist")
    world.sessions.text[waiting.session] = more
    with pytest.raises(AnswerRefused, match="answered it already"):
        acts.choose(world.lab, waiting, 1, **seen(waiting, more), by="ben")
    assert len(world.sessions.typed) == 1


def test_a_session_on_another_machine_gets_nothing_from_here(world, idle):
    Run.objects.filter(pk=idle.pk).update(host="elsewhere")
    idle.refresh_from_db()
    assert acts.form(world.lab, idle) is None
    with pytest.raises(AnswerRefused, match="another machine"):
        acts.say(world.lab, idle, "go on", since=since(idle), by="anna")


def at(run: Run) -> str:
    return f"/runs/{run.pk}/answer"


@pytest.mark.row("LAB-132", level="contract")
@pytest.mark.parametrize("style", ["htmx", "form"])
def test_the_page_offers_the_choices_and_sends_one(world, waiting, anna: Client, style):
    page = text_of(anna.get(f"/runs/{waiting.pk}/"))
    form = page[page.index('id="answering"') : page.index('id="steps"')]
    assert "2. Yes, and don&#x27;t ask again for rm commands" in form
    assert "<textarea" not in form
    given = {**seen(waiting), "since": since(waiting).isoformat(), "choice": "1"}
    assert f'value="{given["mark"]}"' in form
    there = f"/runs/{waiting.pk}/"
    answer = (
        hx(anna, at(waiting), given, at=there) if style == "htmx" else anna.post(at(waiting), given)
    )
    assert answer.status_code == (200 if style == "htmx" else 303)
    assert world.sessions.typed == [(waiting.session, "key 1")]
    page = text_of(anna.get(there))
    assert "anna sent <q>1. Yes</q> at" in page
    assert "its screen has not changed yet." in page
    assert "answer-form" not in page
    again = hx(anna, at(waiting), {**given, "choice": "2"}, at=there)
    assert again.status_code == 409
    assert "anna has answered it already" in text_of(again)


def test_the_page_has_a_box_for_a_text_where_nothing_is_offered(world, idle, anna: Client):
    page = text_of(anna.get(f"/runs/{idle.pk}/"))
    form = page[page.index('id="answering"') : page.index('id="steps"')]
    assert "<textarea" in form
    assert 'value="continue"' in form
    given = {"since": since(idle).isoformat(), "text": ["", "continue"]}
    assert anna.post(at(idle), given).status_code == 303
    assert world.sessions.typed == [(idle.session, "continue")]


def test_a_text_that_is_refused_is_not_lost_without_javascript(world, idle, anna: Client):
    """It comes back in the box, or beside it when it is not asked for any more."""
    given = {"since": "2026-11-21T11:00:00+00:00", "text": "Use <the>\nother client."}
    answer = anna.post(at(idle), given)
    assert answer.status_code == 409
    page = text_of(answer)
    assert "asks something else by now" in page
    box = page[page.index("<textarea") : page.index("</textarea>")]
    assert box.endswith(">Use &lt;the&gt;\nother client.")
    hears(world, idle, {"event": "UserPromptSubmit"})
    looked(world, idle)
    page = text_of(anna.post(at(idle), given))
    assert "does not wait any more" in page
    assert 'aria-label="Your text">Use &lt;the&gt;\nother client.</pre>' in page
    assert world.sessions.typed == []


@pytest.mark.parametrize("given", [{}, {"since": "x", "choice": "x"}, {"text": "x"}])
def test_an_answer_that_cannot_be_read_is_refused(world, idle, anna: Client, given):
    answer = hx(anna, at(idle), given)
    assert answer.status_code == 400
    assert "Nothing was sent." in text_of(answer)


def test_whoever_may_only_look_sees_no_form_and_sends_nothing(world, idle, vera: Client):
    page = text_of(vera.get(f"/runs/{idle.pk}/"))
    assert "has stopped and waits for a word" in page
    assert "answer-form" not in page
    given = {"since": since(idle).isoformat(), "text": "go on"}
    assert vera.post(at(idle), given).status_code == 403
    assert world.sessions.typed == []


def test_what_an_agent_offers_is_only_text(world, run, anna: Client):
    hears(world, run, BASH)
    world.clock.forward(seconds=4)
    shows(world, run, "❯ 1. <script>x</script>\n2. b")
    page = text_of(anna.get(f"/runs/{run.pk}/"))
    assert "1. &lt;script&gt;x" in page
