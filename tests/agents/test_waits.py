"""The real Claude Code waits for a person, and that is seen: a permission prompt, and a turn without delivery."""

from __future__ import annotations

from runs.core.states import NoticeKind, Wait
from runs.models import Notice
from runs.waits import acts
from tests.agents.house import work_on
from tests.agents.script import Say, Shell
from tests.real import git

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
    assert git(project.repo(house.real.paths), "tag", "--list") == "asked", house.told(run)
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
    model = house.model.script(Shell("sleep 300"), Say("Slept."))
    project = house.project(house.profile())
    run = house.until(house.start(project), lambda run: "sleep 300" in house.screen(run))
    acts.interrupt(house.real.lab, run, by="anna")
    run = house.until(run, lambda run: run.waits)
    assert run.waits == Wait.IDLE, house.told(run)
    assert run.has_changed_since(run.turn_interrupted_at)
    model.go_on(*work_on())
    acts.say(house.real.lab, run, "Never mind, do it.", since=run.waits_at, by="anna")
    house.until_over(run)
    assert (run.outcome, run.pull_number) == ("succeeded", 2), house.told(run)
    assert Notice.objects.get(run=run, kind=NoticeKind.RUN_INTERRUPTED).by == "anna"
