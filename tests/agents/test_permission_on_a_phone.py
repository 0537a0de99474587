"""A permission prompt of the real Claude Code in the whole product, answered from a phone."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.agents.house import environment
from tests.agents.script import Say, Shell
from tests.house.product import until
from tests.real import git
from tests.repositories import IDENTITY
from tests.story.conftest import Story, story, tab, with_anna  # noqa: F401
from tests.story.test_main_job import _make_demo

PHONE = {"width": 390, "height": 844}
SECONDS = 10
# More than one, since the machine may hold up a look of the worker: the quickest counts.
TAGS = [f"asked-{number}" for number in range(6)]
AGENT = """
from runs.models import AgentProfile, Project
profile = AgentProfile.objects.get(name='Claude Code')
profile.env = {{**profile.env, **{env}}}
profile.argv = ['claude', '--settings', '{{settings}}', '--permission-mode', 'default', '{{prompt}}']
profile.save()
Project.objects.update(agent=profile)
"""
WORKTREE = "from runs.models import Run; print(Run.objects.get().worktree)"
TOLD_AFTER = """
from runs.core.states import NoticeKind
from runs.models import Notice, Run
notice = Notice.objects.filter(kind=NoticeKind.RUN_WAITS).latest('pk')
print((notice.at - Run.objects.get().asked_at).total_seconds())
"""


def test_a_permission_is_a_need_within_seconds_and_given_from_a_phone(
    on_path,
    model,
    story,  # noqa: F811
    tab,  # noqa: F811
):
    model.forget()
    model.script(*(Shell(f"git tag {tag}") for tag in TAGS), Say("Done."))
    home = story.state.parent / "home"
    home.mkdir()
    story.more = {"HOME": str(home), **IDENTITY}
    story.up()
    _make_demo(story)
    story.shell(AGENT.format(env=json.dumps(environment("Claude Code", model.url, home))))
    page = tab("/projects/1/")
    page.set_viewport_size(PHONE)
    page.get_by_role("button", name="Start AFK run").first.click()
    expect(page.locator("article.run")).to_have_count(1)
    took = []
    for tag in TAGS:
        took.append(_told_and_given(story, page, tag))
        if took[-1] < SECONDS:
            return
    raise AssertionError(took)


def _told_and_given(product: Story, page: Page, tag: str) -> float:
    """After how many seconds a permission was a need, which is then given on the run's page."""
    page.goto(f"{product.url}/")
    need = page.locator("#needs-you")
    expect(need).to_contain_text(f"Bash: git tag {tag}. Answer it on its page.")
    took = float(product.shell(TOLD_AFTER))
    worktree = Path(product.shell(WORKTREE).strip())
    assert git(worktree, "tag", "--list", tag) == ""
    page.goto(f"{product.url}/runs/1/")
    page.get_by_role("button", name="1. Yes", exact=True).click()
    expect(page.locator("#banner")).to_contain_text("Sent.")
    until(lambda: git(worktree, "tag", "--list", tag) == tag)
    return took
