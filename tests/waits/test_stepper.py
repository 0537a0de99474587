"""Runs whose agent waits for a person: stored, told once each way, first under *Needs you*."""

from __future__ import annotations

import dataclasses
import json
import threading
from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client

from runs import tick
from runs.core.states import NoticeKind, Outcome, Wait
from runs.core.tick_context import TickContext
from runs.dispatch import start_requests
from runs.lifecycle import resuming
from runs.models import Notice, Project, Run, Settings
from runs.notices import rules as notice_rules
from runs.waits import stepper
from tests import make
from tests.fakes import World
from tests.patience import PATIENCE
from tests.web import board_rows as rows
from tests.web.people import text_of
from tests.world.stories import look, start

pytestmark = pytest.mark.django_db(transaction=True)

DIALOG = """
 Bash command
   rm -rf build
 Do you want to proceed?
 ❯ 1. Yes
   2. Yes, and don't ask again for rm commands in /worktree
   3. No, and tell Claude what to do differently (esc)
"""
BASH = {"event": "PermissionRequest", "tool": "Bash", "wish": "rm -rf build"}


@pytest.fixture
def project(world: World) -> Project:
    """Agents that stop are not asked for their pull request first: tests/followups/test_nudging.py."""
    Settings.current()
    Settings.objects.update(nudges=False)
    world.tracker.add_root("demo")
    return make.a_project(agent=make.an_agent("Claude", argv=["claude", "{prompt}"]))


@pytest.fixture
def run(world: World, project: Project) -> Run:
    """One that works on its task, as its hooks told."""
    made = start(world, project, "7")
    hears(world, made, {"event": "UserPromptSubmit", "session": "s-1"})
    shows(world, made, "✳ Thinking…")
    return made


def hears(world: World, run: Run, event: dict[str, object]) -> None:
    """A hook of its program writes a line."""
    folder = world.lab.paths.run_folder(run.pk)
    line = json.dumps({"at": world.clock.now.timestamp(), **event}).encode() + b"\n"
    world.sessions.events[folder] = world.sessions.events.get(folder, b"") + line


def shows(world: World, run: Run, screen: str) -> Run:
    """Its screen is this, and the worker looks."""
    world.sessions.text[run.session] = screen
    return looked(world, run)


def looked(world: World, run: Run, **delta: float) -> Run:
    """Time passes, and the worker looks."""
    world.clock.forward(**delta)
    look(world)
    run.refresh_from_db()
    return run


def told(kind: NoticeKind) -> list[str]:
    return list(Notice.objects.filter(kind=kind).order_by("pk").values_list("text", flat=True))


def test_a_permission_prompt_is_seen_told_and_over_once_the_screen_moves_on(world, run):
    at = world.clock.now
    hears(world, run, BASH)
    looked(world, run)
    assert run.waits == ""
    world.clock.forward(seconds=4)
    shows(world, run, DIALOG)
    assert (run.waits, run.waits_at, run.waits_note) == (
        Wait.PERMISSION,
        at,
        "Bash: rm -rf build",
    )
    text = f"Claude asks for a permission: Bash: rm -rf build, since {at:%H:%M:%S} UTC"
    assert told(NoticeKind.RUN_WAITS) == [text]
    looked(world, run, minutes=5)
    # Whoever is attached moves the cursor: the question still stands.
    shows(world, run, DIALOG.replace("❯ 1", "  1").replace("  2.", "❯ 2."))
    world.clock.forward(seconds=5)
    shows(world, run, DIALOG)
    assert (run.waits, len(told(NoticeKind.RUN_WAITS))) == (Wait.PERMISSION, 1)
    # Somebody answers: the screen changes, and again.
    world.clock.forward(seconds=5)
    shows(world, run, "✳ Working… 1")
    assert run.waits == ""
    world.clock.forward(seconds=5)
    shows(world, run, "✳ Working… 2")
    assert (run.waits, run.asks, run.waits_at, run.waits_note) == ("", "", None, "")
    assert told(NoticeKind.RUN_GOES_ON) == ["the agent goes on; it had asked for a permission"]
    looked(world, run, minutes=1)
    assert (run.waits, len(told(NoticeKind.RUN_WAITS))) == ("", 1)


def test_the_next_permission_of_the_same_turn_is_told_too(world, run):
    hears(world, run, BASH)
    world.clock.forward(seconds=4)
    shows(world, run, DIALOG)
    world.clock.forward(seconds=30)
    hears(world, run, {**BASH, "wish": "git push --force"})
    world.clock.forward(seconds=4)
    shows(world, run, DIALOG.replace("rm -rf build", "git push --force"))
    assert (run.waits, run.waits_note) == (Wait.PERMISSION, "Bash: git push --force")
    assert len(told(NoticeKind.RUN_WAITS)) == 2


def test_a_permission_that_a_hook_of_its_user_gives_is_no_wait(world, run):
    hears(world, run, BASH)
    for number in range(5):
        world.clock.forward(seconds=5)
        shows(world, run, f"✳ Working… {number}")
        assert run.waits == ""
    assert (run.asks, told(NoticeKind.RUN_WAITS)) == ("", [])


def test_a_turn_that_ends_without_delivery_waits_for_a_word(world, run):
    hears(world, run, {"event": "Stop"})
    looked(world, run)
    assert run.waits == ""
    looked(world, run, seconds=11)
    assert (run.waits, run.outcome) == (Wait.IDLE, "")
    hears(world, run, {"event": "UserPromptSubmit"})
    looked(world, run)
    assert run.waits == ""
    (text,) = told(NoticeKind.RUN_WAITS)
    assert text.startswith("Claude has stopped and waits for a word, since ")
    hears(world, run, {"event": "Stop"})
    looked(world, run, seconds=11)
    assert len(set(told(NoticeKind.RUN_WAITS))) == 2


def test_an_error_that_is_not_the_accounts_trouble_waits_with_its_words(world, run):
    hears(world, run, {"event": "StopFailure", "kind": "unknown", "text": "Something odd"})
    looked(world, run, seconds=11)
    assert (run.waits, run.waits_note, run.state) == (Wait.ERROR, "Something odd", "working")


def test_the_accounts_trouble_is_held_and_waits_for_nobody(world, run):
    words = "API Error: Request rejected (429) · much"
    hears(world, run, {"event": "StopFailure", "kind": "rate_limit", "text": words})
    looked(world, run, seconds=11)
    assert (run.state, run.waits) == ("held", "")


@pytest.mark.parametrize(("minutes", "waits"), [(15, Wait.QUIET), (0, ""), (60, "")])
def test_a_screen_that_does_not_change_counts_after_the_time_of_the_settings(
    world, run, minutes, waits
):
    Settings.objects.update(quiet_minutes=minutes)
    looked(world, run, minutes=16)
    assert run.waits == waits
    shows(world, run, "something new")
    assert (run.waits, len(told(NoticeKind.RUN_GOES_ON))) == ("", 1 if waits else 0)


def test_a_dialog_of_which_no_hook_tells_is_a_need_while_it_stands(world, run):
    """A program without hooks, or one that asks before it has any."""
    shows(world, run, DIALOG)
    assert run.waits == ""
    looked(world, run, seconds=6)
    assert (run.waits, run.waits_note) == (Wait.QUESTION, "")
    tick.tick(world.lab, project=run.project.slug)  # which reads no screen
    run.refresh_from_db()
    assert run.waits == Wait.QUESTION
    world.clock.forward(seconds=5)
    shows(world, run, "✳ Working…")
    assert (run.waits, len(told(NoticeKind.RUN_GOES_ON))) == ("", 1)


def test_a_list_that_a_person_gave_is_no_question(world, run):
    """It stands there behind the sign for a choice, above the prompt."""
    shows(world, run, "› 1. Use it\n  2. Then push\n\n› Ask Codex to do anything")
    assert looked(world, run, seconds=60).waits == ""


@pytest.mark.parametrize(
    "screen",
    [
        "¿Continuar? [s/N]",
        "Weiter mit beliebiger Taste …",
        "続行しますか？ (はい/いいえ)",
        "(y/n) ",
    ],
)
def test_a_question_in_a_form_that_nobody_foresaw_is_told_by_its_still_screen(world, run, screen):
    shows(world, run, screen)
    assert looked(world, run, minutes=14).waits == ""
    assert looked(world, run, minutes=1).waits == Wait.QUIET


def test_a_screen_that_animates_for_ever_is_work_and_its_budget_ends_it(world, run):
    for number in range(0, 60, 5):
        world.clock.forward(minutes=5)
        shows(world, run, f"✳ Working… {number}")
        assert run.waits == ""
    assert run.outcome == Outcome.TIMED_OUT


def test_an_agent_that_works_without_a_word_is_told_and_goes_on_as_before(world, run):
    """Its screen stands still for an hour although it works: nothing is done to it."""
    Project.objects.update(run_budget_minutes=120)
    assert looked(world, run, minutes=59).waits == Wait.QUIET
    assert (run.outcome, run.session in world.sessions.all) == ("", True)
    assert shows(world, run, "✳ done").waits == ""


def test_a_screen_that_cannot_be_read_proves_nothing(world, run):
    shows(world, run, "")
    assert looked(world, run, minutes=20).waits == ""
    shows(world, run, "news")
    looked(world, run, minutes=16)
    assert run.waits == Wait.QUIET
    shows(world, run, "")
    assert run.waits == Wait.QUIET


def test_a_look_at_one_project_says_nothing_of_a_screen(world, run):
    world.clock.forward(minutes=20)
    tick.tick(world.lab, project=run.project.slug)
    run.refresh_from_db()
    assert run.waits == ""
    assert looked(world, run).waits == Wait.QUIET


def test_delivered_work_waits_for_nobody(world, run):
    hears(world, run, BASH)
    world.tracker.add_pull("demo", "afk/7")
    looked(world, run, seconds=5)
    assert (run.outcome, told(NoticeKind.RUN_WAITS)) == (Outcome.SUCCEEDED, [])


def test_a_budget_says_what_the_wait_did(world, run):
    hears(world, run, BASH)
    looked(world, run, minutes=1)
    looked(world, run, minutes=45)
    assert run.outcome == Outcome.TIMED_OUT
    assert run.reason.endswith("; it waited for a person for the last 46 min")


def test_a_budget_that_ends_on_a_quiet_screen_says_no_more_than_was_seen(world, run):
    looked(world, run, minutes=16)
    looked(world, run, minutes=30)
    assert run.reason.endswith("; its screen had not changed for the last 46 min")


def test_a_clock_that_is_set_moves_what_is_counted(world, run):
    hears(world, run, {"event": "Stop"})
    looked(world, run, seconds=11)
    before = run.waits_at
    world.clock.jump(hours=-1)
    looked(world, run)
    assert (run.waits, run.waits_at) == (Wait.IDLE, before - timedelta(hours=1))
    assert len(told(NoticeKind.RUN_WAITS)) == 1


def test_what_asks_is_masked(world, run):
    world.lab = dataclasses.replace(world.lab, mask=lambda text: text.replace("hush", "[hidden]"))
    hears(world, run, {**BASH, "wish": "curl -H hush"})
    looked(world, run, minutes=1)
    assert run.question == run.waits_note == "Bash: curl -H [hidden]"
    (text,) = told(NoticeKind.RUN_WAITS)
    assert text.startswith("Claude asks for a permission: Bash: curl -H [hidden], since")


def test_an_agent_that_is_started_again_waits_for_nothing_of_before(run):
    forgotten = resuming.forgotten(run)
    assert [forgotten[name] for name in ("waits", "asks", "question")] == ["", "", ""]
    assert [forgotten[name] for name in ("waits_at", "asked_at", "screen_at")] == [None] * 3


@pytest.mark.postgres
def test_a_wait_without_a_time_is_refused_by_the_database(run):
    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects.filter(pk=run.pk).update(waits=Wait.IDLE, waits_at=None)


def test_a_tick_that_lost_the_race_tells_nothing(world, run):
    """Another one has stored the wait since this one read its run."""
    stale = Run.objects.select_related("project").get(pk=run.pk)
    at = world.clock.now
    stale.asks, stale.asked_at = Wait.PERMISSION, at - timedelta(minutes=1)
    Run.objects.filter(pk=run.pk).update(waits=Wait.PERMISSION, waits_at=stale.asked_at)
    context = TickContext(world.lab, 1, Settings.current(), at)
    assert stepper.note(context, [stale]) == 0
    assert told(NoticeKind.RUN_WAITS) == []


@pytest.mark.postgres
def test_a_tracker_that_blocks_delays_no_need(world, run):
    """It is told before anything outside is asked, and the next one before anything is started."""
    hears(world, run, BASH)
    world.sessions.text[run.session] = DIALOG
    world.clock.forward(seconds=21)
    is_asked, may_answer, told_before = threading.Event(), threading.Event(), []

    def pulls(heads):  # type: ignore[no-untyped-def]
        is_asked.set()
        assert may_answer.wait(PATIENCE)
        return dict.fromkeys(heads, ())

    def ticks() -> None:
        try:
            look(world)
        finally:
            connection.close()

    world.tracker.pulls = pulls
    thread = threading.Thread(target=ticks)
    thread.start()
    try:
        assert is_asked.wait(PATIENCE)
        run.refresh_from_db()
        told_before = told(NoticeKind.RUN_WAITS)
    finally:
        may_answer.set()
        thread.join()
    assert (run.waits, len(told_before)) == (Wait.PERMISSION, 1)


def test_what_is_asked_while_a_tracker_answers_slowly_is_told_before_anything_is_started(
    world, run, project
):
    """A request to start something has the tracker asked again, which may take as long."""
    start_requests.request(world.lab, project, "anna", "")
    seen = []

    def pulls(heads):  # type: ignore[no-untyped-def]
        hears(world, run, BASH)
        world.sessions.text[run.session] = DIALOG
        world.clock.forward(seconds=10)
        return dict.fromkeys(heads, ())

    def queues(wanted):  # type: ignore[no-untyped-def]
        seen.append(Run.objects.get(pk=run.pk).waits)
        return {}

    world.tracker.pulls, world.tracker.queues = pulls, queues
    look(world)
    assert seen[0] == Wait.PERMISSION


def test_what_delivered_at_last_is_not_told_as_a_wait_before_its_tracker_was_asked(world, run):
    hears(world, run, {"event": "Stop"})
    world.tracker.add_pull("demo", "afk/7")
    looked(world, run, seconds=19)
    assert (run.outcome, told(NoticeKind.RUN_WAITS)) == (Outcome.SUCCEEDED, [])


def test_a_program_that_ended_waits_for_nobody(world, run):
    hears(world, run, BASH)
    del world.sessions.all[run.session]
    looked(world, run, minutes=1)
    assert (run.outcome, told(NoticeKind.RUN_WAITS)) == (Outcome.DIED, [])


def test_pages_and_api_say_it_first(world, run, operator, client: Client):
    client.force_login(operator)
    rows.a_tick(world)
    assert "asks for a permission" not in text_of(client.get("/"))
    hears(world, run, BASH)
    looked(world, run, minutes=1)
    rows.a_tick(world)
    html = text_of(client.get("/"))
    needs = html[html.index('id="needs-you"') : html.index('id="running"')]
    assert "asks for a permission since" in needs
    assert "Bash: rm -rf build. Answer it on its page." in needs
    assert "waits for you" in html[html.index(f'id="run-{run.pk}"') :]
    page = text_of(client.get(f"/runs/{run.pk}/"))
    card = page[page.index('id="run-wait"') : page.index('id="steps"')]
    assert "Claude asks for a permission, since" in card
    assert "<code>Bash: rm -rf build</code>" in card
    assert "The budget goes on meanwhile." in card
    assert "Waits for you" in page[page.index('id="steps"') :]


def test_whoever_gets_notices_is_told_of_it_by_default():
    assert NoticeKind.RUN_WAITS.value in notice_rules.AT_FIRST
    assert notice_rules.topic_of(NoticeKind.RUN_WAITS, "") == NoticeKind.RUN_WAITS.value


def test_the_rule_waits_for_a_pull_request_that_was_opened_last(world, run):
    """The turn ends a moment after the pull request was made: that is a success, and no wait."""
    hears(world, run, {"event": "Stop"})
    world.tracker.add_pull("demo", "afk/7")
    looked(world, run, seconds=timedelta(seconds=11).total_seconds())
    assert (run.outcome, told(NoticeKind.RUN_WAITS)) == (Outcome.SUCCEEDED, [])
