"""The real Claude Code waits for a person, and that is seen: a permission prompt, and a turn without delivery."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

from runs.core.states import NoticeKind, Wait
from runs.models import Notice
from runs.transcript import screens
from runs.waits import acts
from tests.agents import script
from tests.agents.house import hold, work_on
from tests.agents.script import Say, Shell, Tool
from tests.real import git
from tests.world import stories

ASKING = ["claude", "--settings", "{settings}", "--permission-mode", "default", "{prompt}"]


def test_a_permission_prompt_of_claude_code_is_seen_and_is_over_once_it_is_answered(house):
    house.model.script(Shell("git tag asked"), Say("Done."))
    profile = house.profile()
    profile.argv = ASKING
    profile.save()
    project = house.project(profile)
    run = house.until(house.start(project), lambda run: run.waits_note)
    assert (run.waits, run.waits_note) == (Wait.PERMISSION, "Bash: git tag asked")
    # Its hook comes before its dialog is drawn.
    run = house.until(run, lambda run: acts.form(house.real.lab, run))
    form = acts.form(house.real.lab, run)
    assert form is not None
    seen = {"since": run.waits_at, "mark": form.mark}
    acts.choose(house.real.lab, run, 1, **seen, by="anna")
    run = house.until(run, lambda run: run.turn_ended_at)
    assert git(Path(run.worktree), "tag", "--list") == "asked", house.told(run)
    assert run.asks == ""


def test_claude_code_that_has_stopped_goes_on_with_what_it_is_told(house):
    model = house.model.script(Say("Which client do you mean?"))
    project = house.project(house.profile())
    run = house.until(house.start(project), lambda run: run.waits)
    assert run.waits == Wait.IDLE
    model.go_on(*work_on())
    acts.say(house.real.lab, run, "I mean the\nolder one.", since=run.waits_at, by="anna")
    house.until_over(run)
    assert (run.outcome, run.pull_number) == ("succeeded", 2), house.told(run)
    assert Notice.objects.get(run=run, kind=NoticeKind.RUN_ANSWERED).by == "anna"


def test_claude_code_stops_at_the_key_and_goes_on_with_what_it_is_told(house):
    model = house.model.script(hold(), Say("Slept."))
    project = house.project(house.profile())
    run = house.until(house.start(project), lambda run: "go-on" in house.screen(run))
    acts.interrupt(house.real.lab, run, by="anna")
    run = house.until(run, lambda run: run.waits)
    assert run.waits == Wait.IDLE, house.told(run)
    assert run.has_changed_since(run.turn_interrupted_at)
    model.go_on(*work_on())
    acts.say(house.real.lab, run, "Never mind, do it.", since=run.waits_at, by="anna")
    house.until_over(run)
    assert (run.outcome, run.pull_number) == ("succeeded", 2), house.told(run)
    assert Notice.objects.get(run=run, kind=NoticeKind.RUN_INTERRUPTED).by == "anna"


def test_claude_code_works_while_its_agent_works_in_the_background(house, anna):
    """2.1.332 does so without being asked; its main turn ends meanwhile."""
    give = {"description": "Look around", "prompt": "PARTWORK", "subagent_type": "general-purpose"}
    house.model.script(Tool("Agent", {**give, "run_in_background": True}), Say("It looks around."))
    house.model.script(hold(), Say("The part is done."), word="PARTWORK")
    run = house.start(house.project(house.profile()))
    run = house.until(run, lambda run: run.agent_note or run.turn_ended_at)
    assert (run.agent_note, run.turn_ended_at) == ("1 agent in the background", None)
    house.real.offset = timedelta(minutes=1)
    stories.look(house.real)
    run.refresh_from_db()
    assert (run.waits, run.outcome) == ("", ""), house.told(run)
    assert acts.may_interrupt(house.real.lab, run)
    (Path(run.worktree) / "go-on").touch()
    run = house.until(run, lambda run: run.turn_ended_at)
    assert run.agent_note == ""
    shown = "Finished in the background"
    run = house.until(
        run, lambda run: shown in anna.get(f"/runs/{run.pk}/conversation/").content.decode()
    )


def test_the_agents_of_claude_code_in_the_background_stop_at_their_key(house):
    give = {"description": "Look around", "prompt": "PARTWORK", "subagent_type": "general-purpose"}
    house.model.script(Tool("Agent", {**give, "run_in_background": True}), Say("It looks around."))
    house.model.script(hold(), Say("The part is done."), word="PARTWORK")
    run = house.start(house.project(house.profile()))
    run = house.until(run, lambda run: run.agent_note)
    acts.interrupt(house.real.lab, run, by="anna")
    run = house.until(run, lambda run: run.waits)
    assert run.waits == Wait.IDLE, house.told(run)
    assert "stopped" in screens.plain(house.screen(run)), house.told(run)


def allow(house, run):  # type: ignore[no-untyped-def]
    """Press the first choice, as the page does."""
    form = acts.form(house.real.lab, run)
    assert form is not None
    assert form.choices, house.told(run)
    acts.choose(house.real.lab, run, 1, since=run.waits_at, mark=form.mark, by="anna")


def test_codex_asks_for_a_permission_and_is_answered(house):
    """First whether it may trust the folder, which no hook tells; then for a command, which one does."""
    house.model.script(Shell("git tag asked", "May I?"), Say("Done."))
    project = house.project(house.codex_on_screen("-a", "on-request", "-s", "workspace-write"))
    run = house.until(house.start(project), lambda run: run.waits)
    assert (run.waits, "Trust this folder?" in house.screen(run)) == (Wait.QUESTION, True)
    allow(house, run)
    run = house.until(run, lambda run: run.waits_note)
    assert (run.waits, run.waits_note) == (Wait.PERMISSION, "Bash: git tag asked"), house.told(run)
    assert run.asked_at is not None
    assert datetime.now(UTC) - run.asked_at < timedelta(seconds=10)
    run = house.until(run, lambda run: acts.form(house.real.lab, run))
    allow(house, run)
    run = house.until(run, lambda run: run.turn_ended_at)
    assert git(Path(run.worktree), "tag", "--list") == "asked", house.told(run)
    run = house.until(run, lambda run: run.waits)
    assert run.waits == Wait.IDLE


def test_codex_stops_at_the_key_and_goes_on_with_what_it_is_told(house):
    """The model is still thinking."""
    thought = threading.Event()
    model = house.model.script(script.Wait(thought), Say("Thought."))
    project = house.project(house.codex_on_screen("--dangerously-bypass-approvals-and-sandbox"))
    run = house.start(project)
    run = house.until(run, lambda run: run.waits or run.began_at)
    if run.waits:
        allow(house, run)
    run = house.until(run, lambda run: "esc to interrupt" in screens.plain(house.screen(run)))
    acts.interrupt(house.real.lab, run, by="anna")
    run = house.until(run, lambda run: run.waits == Wait.IDLE)
    thought.set()
    assert run.has_changed_since(run.turn_interrupted_at)
    model.go_on(*work_on())
    acts.say(house.real.lab, run, "Never mind, do it.", since=run.waits_at, by="anna")
    house.until_over(run)
    assert (run.outcome, run.pull_number) == ("succeeded", 2), house.told(run)
