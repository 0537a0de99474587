"""Parked to discard to requeue, and a rescue brought back: real product, real browser, real git."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.chromium import press_twice
from tests.house.product import until
from tests.real import git
from tests.story.test_bad_days import ASK, IDLE, RUNS
from tests.story.test_main_job import _make_demo


@pytest.mark.row("LAB-46", "LAB-78", "LAB-116", "LAB-125", "X-18", level="browser")
def test_stopped_work_is_parked_discarded_requeued_and_brought_back(story, tab):
    story.up()
    _make_demo(story)
    story.shell(IDLE)
    story.shell(ASK)
    until(lambda: story.shell(RUNS) == "1:working:")
    tree = story.paths.worktrees / "demo-1"
    (tree / "work.txt").write_text("committed\n")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "feat: work")
    (tree / "never committed.txt").write_text("not committed\n")

    page = tab("/runs/1/")
    press_twice(page.get_by_role("button", name="Stop", exact=True).first)
    expect(page.locator("main")).to_contain_text("stopped by anna")
    page.get_by_role("link", name="discard it under Parked").click()
    entry = page.locator("#parked-afk1")
    expect(entry).to_contain_text("stopped")
    expect(entry).to_contain_text("dirty")
    expect(entry).to_contain_text("1 unpushed")
    press_twice(entry.get_by_role("button", name="Discard afk/1"))
    expect(page.locator("#parked-list")).to_contain_text("Nothing is parked")
    assert not tree.exists()

    story.shell(ASK)
    until(lambda: story.shell(RUNS) == "1:ended:stopped 1:working:")
    assert not (tree / "work.txt").exists()

    page.reload()
    page.locator("#rescues").get_by_role("link", name="afk/1").click()
    expect(page.locator("main")).to_contain_text("never committed.txt")
    expect(page.locator("main")).to_contain_text("work.txt")
    page.get_by_role("button", name="Restore").click()
    expect(page.locator("main")).to_contain_text("restored as afk/1-restored")
    back = story.paths.worktrees / "demo.1-restored"
    assert (back / "never committed.txt").read_text() == "not committed\n"
    assert git(back, "status", "--porcelain") == '?? "never committed.txt"'
    assert git(back, "log", "-1", "--format=%s") == "feat: work"
    page.goto(f"{story.url}/projects/1/")
    expect(page.locator("#parked-count")).to_have_text("1")
    page.locator("#parked summary").click()
    expect(page.locator("#parked-list")).to_contain_text(re.compile("afk/1-restored"))

    (back / "model.bin").write_bytes(bytes(70_000_000))
    page.goto(f"{story.url}/projects/1/parked/")
    entry = page.locator("#parked-afk1-restored")
    press_twice(entry.get_by_role("button", name="Discard"))
    # How far it is shows only while the worker is at it, which the next look of the page may be after.
    expect(page.locator("#banner")).to_contain_text("It holds large files, which are rescued first")
    expect(page.locator("#parked-list")).to_contain_text("Nothing is parked")
    assert not back.exists()
