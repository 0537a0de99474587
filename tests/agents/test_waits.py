"""The real Claude Code waits for a person, and that is seen: a permission prompt, and a turn without delivery."""

from __future__ import annotations

from runs.core.states import NoticeKind, Wait
from runs.models import Notice
from tests.agents.script import Say, Shell
from tests.real import git

ASKING = ["claude", "--settings", "{settings}", "--permission-mode", "default", "{prompt}"]


def test_a_permission_prompt_of_claude_code_is_seen_and_is_over_once_it_is_answered(house):
    house.model.script(Shell("git tag asked"), Say("Done."))
    profile = house.profile()
    profile.argv = ASKING
    profile.save()
    project = house.project(profile)
    run = house.until(house.start(project), lambda run: run.waits)
    assert (run.waits, run.waits_note) == (Wait.PERMISSION, "Bash: git tag asked")
    assert Notice.objects.filter(run=run, kind=NoticeKind.RUN_WAITS).count() == 1
    house.real.sessions.type(run.session, "1")
    run = house.until(run, lambda run: run.turn_ended_at)
    assert git(project.repo(house.real.paths), "tag", "--list") == "asked", house.told(run)
    assert run.asks == ""
