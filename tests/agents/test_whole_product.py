"""Claude Code in the whole product: an empty state folder, an empty home, *Start* pressed in a browser."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from tests.agents.house import environment
from tests.agents.script import Say, Shell
from tests.chromium import press_twice
from tests.repositories import IDENTITY
from tests.story.conftest import story, tab, with_anna  # noqa: F401
from tests.story.test_main_job import _make_demo

AGENT = """
from runs.models import AgentProfile, Project
profile = AgentProfile.objects.get(name='Claude Code')
profile.env = {{**profile.env, **{env}}}
profile.save()
Project.objects.update(agent=profile)
"""


@pytest.mark.row("X-18", level="browser")
def test_an_issue_is_merged_after_start_was_pressed_once(on_path, model, story, tab):  # noqa: F811
    model.forget()
    model.script(
        Shell("labctl issue view 1"),
        Shell("echo '# one more line' >> splitbill.py && git commit -qam 'feat: one more line'"),
        Shell("git push -q origin afk/1"),
        Shell('labctl pr create --title "One more line" --body "Closes #1"'),
        Say("The pull request is open."),
    )
    home = story.state.parent / "home"
    home.mkdir()
    story.more = {"HOME": str(home), **IDENTITY}
    story.up()
    _make_demo(story)
    story.shell(AGENT.format(env=json.dumps(environment("Claude Code", model.url, home))))
    page = tab("/projects/1/")
    page.get_by_role("button", name="Start AFK run").first.click()
    expect(page.locator("article.run")).to_have_count(1)
    watching = tab("/runs/1/")
    expect(watching.locator("main")).to_contain_text("succeeded")
    expect(watching.locator("#steps")).to_contain_text("slot free")
    pull = tab("/projects/1/pulls/4/")
    merge = pull.locator("#pull-merge").get_by_role("button").first
    press_twice(merge)
    expect(pull.locator("#pull-state")).to_contain_text("merged by anna")
    assert story.sessions() == []
    assert not (story.paths.worktrees / "demo-1").exists()
