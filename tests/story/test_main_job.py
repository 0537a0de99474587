"""The main job, as its user does it: real browser, real processes, real tmux and git, the demo agent."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.chromium import press_twice
from tests.house.product import until
from tests.real import a_checkout, git

FASTER = "from runs.models import AgentProfile; AgentProfile.objects.filter(name='Demo agent').update(env={'DEMO_PAUSE': '0.3'})"
STAY = "window.stayed = true"


def _holds_pushes(story) -> Path:  # type: ignore[no-untyped-def]
    """The demo's origin takes no push, so that no run ends, until the file is there."""
    go = Path(story.state.parent / "go")
    hook = story.paths.origins / "demo.git" / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nwhile ! [ -e {go} ]; do sleep 0.1; done\n")
    hook.chmod(0o755)
    return go


def _is_same_page(page) -> bool:  # type: ignore[no-untyped-def]
    return page.evaluate("window.stayed === true")


def _make_demo(story) -> None:  # type: ignore[no-untyped-def]
    story.shell(
        "from runs.wiring import lab; from runs.demo import making; making.make(lab(), 'anna')"
    )
    until(
        lambda: (
            story.shell("from runs.models import Project; print(Project.objects.get().state)")
            == "ready"
        )
    )


# Half a minute alone; the first story of a run also prepares the folder that all of them copy.
@pytest.mark.timeout(150)
@pytest.mark.quick("the main job: demo issue to a finished run in a real browser")
@pytest.mark.row("X-18", "X-17", "X-16", "LAB-53", level="browser")
@pytest.mark.row("LAB-21", "LAB-37", "LAB-38", "LAB-41", level="browser")
@pytest.mark.row("LAB-46", "LAB-52", "LAB-56", level="browser")
def test_an_issue_becomes_a_finished_run_and_the_next_is_stopped_without_a_reload(
    story, tab, tmp_path
):
    """And then an empty queue is a notice, and a wrong project an error at its field."""
    story.up()
    _finishes(story, tab)
    _stop_is_neutral_and_reaches_other_browsers_as_a_push(story, tab)
    _an_empty_queue_is_a_notice(story, tab)
    _a_wrong_project_is_an_error_at_its_field(story, tab, tmp_path)


def _finishes(story, tab) -> None:  # type: ignore[no-untyped-def]
    page = tab("/", by_hand=True)
    page.get_by_role("button", name=re.compile("demo", re.IGNORECASE)).first.click()
    page.wait_for_url("**/projects/*/")
    expect(page.get_by_role("heading", name="demo")).to_be_visible()
    story.shell(FASTER)
    go = _holds_pushes(story)
    start = page.get_by_role("button", name="Start AFK run").first
    expect(start).to_be_enabled()
    page.evaluate(STAY)
    start.click()
    row = page.locator("article.run")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("#1")
    until(lambda: story.sessions() == ["demo~1~afk-1"])
    assert _is_same_page(page)

    watching = tab("/runs/1/")
    watching.evaluate(STAY)
    terminal = tab("/runs/1/terminal/").locator("#terminal")
    expect(terminal).to_contain_text("labctl issue view 1")
    expect(watching.locator("#budget")).to_contain_text("of 45 min")
    go.touch()
    expect(watching.locator("main")).to_contain_text("succeeded")
    expect(watching.locator("#steps")).to_contain_text("slot free")
    expect(watching.locator("#timeline")).to_contain_text("Pull request 4 opened")
    assert _is_same_page(watching)

    expect(page.locator("article.run")).to_have_count(0)
    expect(page.locator("main")).to_contain_text("succeeded")
    assert _is_same_page(page)
    assert story.sessions() == []
    assert not (story.paths.worktrees / "demo-1").exists()
    repo = story.paths.repos / "demo.git"
    assert git(repo, "rev-parse", "refs/heads/afk/1") == git(
        story.paths.origins / "demo.git", "rev-parse", "refs/heads/afk/1"
    )
    shown = tab("/projects/1/pulls/4/")
    expect(shown.locator("main")).to_contain_text("Closes #1")
    expect(shown.locator("main")).to_contain_text("open")


def _stop_is_neutral_and_reaches_other_browsers_as_a_push(story, tab) -> None:  # type: ignore[no-untyped-def]
    page = tab("/projects/1/")
    page.get_by_role("button", name="Start AFK run").first.click()
    expect(page.locator("article.run")).to_have_count(1)
    other = tab("/")
    expect(other.locator("article.run")).to_have_count(1)
    expect(other.locator("#link-state")).to_have_text("live")
    other.route(re.compile(r"/live"), lambda route: route.abort())
    until(lambda: story.sessions() == ["demo~1~afk-2"])
    page.goto(f"{story.url}/runs/2/")
    page.evaluate(STAY)
    press_twice(page.get_by_role("button", name="Stop", exact=True).first)
    expect(page.locator("main")).to_contain_text("stopped by anna")
    assert _is_same_page(page)
    expect(other.locator("article.run")).to_have_count(0)
    until(lambda: story.sessions() == [])
    assert (story.paths.worktrees / "demo-2" / "splitbill.py").exists()
    assert "afk/2" in git(story.paths.repos / "demo.git", "branch", "--list", "afk/2")


def _an_empty_queue_is_a_notice(story, tab) -> None:  # type: ignore[no-untyped-def]
    before = sorted(story.paths.worktrees.glob("*"))
    story.shell("from trackers.builtin.models import Issue; Issue.objects.update(is_open=False)")
    page = tab("/projects/1/")
    answers = []
    page.on(
        "response",
        lambda answer: answers.append(answer.status) if answer.url.endswith("/start") else None,
    )
    page.evaluate(STAY)
    page.locator("#start").click()
    expect(page.locator("#banner")).to_contain_text("Nothing is ready")
    assert answers == [409]
    assert _is_same_page(page)
    assert story.sessions() == []
    assert sorted(story.paths.worktrees.glob("*")) == before


def _a_wrong_project_is_an_error_at_its_field(story, tab, tmp_path) -> None:  # type: ignore[no-untyped-def]
    a_checkout(tmp_path / "shop", tmp_path / "shop-origin.git")
    page = tab("/projects/new")
    page.locator("[name=source]").fill(str(tmp_path / "nowhere"))
    page.get_by_role("button", name="Add project", exact=True).click()
    expect(page.locator("main")).to_contain_text("There is no folder")
    page.locator("[name=source]").fill(str(tmp_path / "shop"))
    page.get_by_role("button", name="Add project", exact=True).click()
    page.wait_for_url("**/projects/*/")
    expect(page.get_by_role("heading", name="shop")).to_be_visible()
    expect(page.locator("main")).to_contain_text("main")
    until(lambda: (story.paths.repos / "shop.git" / "refs").is_dir())
