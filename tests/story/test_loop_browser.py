"""Loops as their user sees them: issue after issue on its own, and one loop that stays."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.house.product import until
from tests.real import git
from tests.story.test_gates import picture
from tests.story.test_loops import LOOP, TURNS, Shop

STAY = "window.isSamePage = true"
DONE = ('git push -q origin "$LAB_BRANCH"', "labctl pr create", "labctl emit LOOP_COMPLETE")
ISSUE = """
from runs.wiring import lab
from runs.models import Project
from runs.issues import acts as issues
issues.create(lab(), Project.objects.get(), title='Count the lamps', labels=['ready-for-agent'], by='anna')
"""
PLAIN = "from runs.models import LoopTerms; LoopTerms.objects.all().delete()"


def is_same_page(page: Page) -> bool:
    return bool(page.evaluate("window.isSamePage === true"))


@pytest.mark.row(
    *("X-18", "RALPH-41", "RALPH-55", "RALPH-59", "RALPH-63", "RALPH-79", "RALPH-81"),
    *("RALPH-82", "RALPH-84"),
    level="browser",
)
def test_issue_after_issue_and_then_one_loop_that_stays(story, tab, tmp_path):
    story.up()
    shop = Shop(story, tmp_path, "Count the table", "Count the chairs")
    story.shell(PLAIN)

    # What one turns on: loops, with a short pause between two issues, and automatic work.
    settings = tab("/projects/1/loops/")
    expect(settings.get_by_label("One loop per issue (recommended)")).to_be_checked()
    settings.get_by_label("Work in loops").check()
    settings.get_by_label("Pause between issues (seconds)").fill("1")
    settings.get_by_role("button", name="Save loop settings").click()
    expect(settings.get_by_label("Work in loops")).to_be_checked()
    project = tab("/projects/1/")
    project.evaluate(STAY)
    project.locator("#auto-switch").click()

    # Two issues, one after the other, without a page that is loaded anew.
    shop.begins("1-1-1")
    run = tab("/runs/1/")
    run.evaluate(STAY)
    expect(run.locator("#run-loop")).to_contain_text("turn 1 of at most 50")
    shop.does("1-1-1", "commit one", "labctl emit build.done first")
    shop.begins("1-1-2")
    expect(run.locator("#turn-1-1")).to_contain_text("build.done")
    picture(run, "story-loop")
    shop.does("1-1-2", *DONE)
    expect(run.locator("#run-loop")).to_contain_text("completed")
    assert is_same_page(run)
    shop.begins("2-1-1")
    expect(project.locator("body")).to_contain_text("Count the chairs")
    shop.does("2-1-1", "commit two", *DONE)
    until(lambda: story.shell(LOOP) == "ended completed 0 1", told=shop.state)
    branches = git(tmp_path / "shop-origin.git", "branch", "--list", "afk/*").split()
    assert branches == ["afk/1", "afk/2"]
    assert git(tmp_path / "shop-origin.git", "rev-list", "--count", "main..afk/2") == "1"
    assert is_same_page(project)

    # One loop stays: it idles without a turn, hears what a person says, and goes on.
    settings.goto(f"{story.url}/projects/1/loops/")
    settings.get_by_label("One loop stays").check()
    settings.get_by_role("button", name="Save loop settings").click()
    expect(settings.get_by_label("One loop stays")).to_be_checked()
    story.shell(ISSUE)
    shop.begins("5-1-1")
    run = tab("/runs/3/")
    run.evaluate(STAY)
    shop.does("5-1-1", "labctl emit LOOP_COMPLETE")
    expect(run.locator("#run-loop")).to_contain_text("here is nothing to do")
    picture(run, "story-loop-idle")
    run.get_by_label("Tell the next turn").fill("Look for lamps in the cellar")
    run.locator("#guide-form").get_by_role("button", name="Send").click()
    shop.begins("5-1-2")
    prompt = story.paths.run_folder(3) / "loop" / "1-2" / "prompt.md"
    assert "Look for lamps in the cellar" in prompt.read_text()
    assert "task.resume" in prompt.read_text()
    shop.does("5-1-2", "commit lamps", "labctl ack", "labctl emit build.done")
    shop.begins("5-1-3")
    expect(run.locator("#run-loop")).to_contain_text("acknowledged")
    assert is_same_page(run)
    assert story.shell(TURNS).splitlines()[-2].startswith("1 2 0")
