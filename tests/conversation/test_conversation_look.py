"""The page of a conversation, looked at: accessible, fitting, light and dark, at a desk and on a phone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runs.core.states import NoticeKind
from tests import make
from tests.conversation import long_talk
from tests.conversation.conftest import TREE
from tests.web import board_rows as rows
from tests.web.looking import looks
from tests.world import agent_homes as homes

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_long_conversation_of_claude_code(open_page, operator, world, home, claude_run):
    rows.a_tick(world)
    long_talk.write_claude(home, TREE)
    page = open_page(f"/runs/{claude_run.pk}/conversation/", operator)
    assert looks(page, "conversation-claude") == []
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    assert looks(page, "conversation-claude-open") == []
    rows.tell(world, "Started by anna (slot 1)", NoticeKind.RUN_STARTING, run=claude_run)
    rows.tell(world, "Branch afk/7 created from ab12cd3", run=claude_run)
    rows.tell(world, "agent started in session demo~1", NoticeKind.RUN_STARTED, run=claude_run)
    for text in ("a small step", "commit ab12cd3 feat: parse levels", "another small step"):
        rows.tell(world, text, run=claude_run)
    page.get_by_role("link", name="Story", exact=True).click()
    page.locator("#timeline").wait_for()
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    assert looks(page, "story") == []


def test_a_long_conversation_of_codex(open_page, operator, world, home, codex_run):
    rows.a_tick(world)
    long_talk.write_codex(home, TREE)
    page = open_page(f"/runs/{codex_run.pk}/conversation/", operator)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    assert looks(page, "conversation-codex") == []


def test_what_a_search_finds_and_a_run_without_a_record(
    open_page, operator, world, home, claude_run
):
    rows.a_tick(world)
    long_talk.write_claude(home, TREE)
    page = open_page(f"/runs/{claude_run.pk}/conversation/search?q=parser", operator)
    assert looks(page, "conversation-search") == []
    words = {"outcome": "died", "last_words": "the last screen", "issue_title": "Add retries"}
    run = make.a_run(claude_run.project, "9", slot=2, **words)
    page = open_page(f"/runs/{run.pk}/conversation/", operator)
    assert looks(page, "conversation-none") == []


def test_without_javascript_everything_is_there_and_opens_by_the_keyboard(
    open_page, operator, world, home, claude_run
):
    rows.a_tick(world)
    long_talk.write_claude(home, TREE, turns=40)
    address = f"/runs/{claude_run.pk}/conversation/"
    page = open_page(address, operator, java_script_enabled=False)
    page.get_by_role("link", name="Earlier").first.click()
    assert "before=" in page.url
    tool = page.locator(".tool summary", has_text="Bash").first
    tool.focus()
    page.keyboard.press("Enter")
    page.locator("pre", has_text="1 failed, 41 passed").first.wait_for()
    page.get_by_role("searchbox", name="Search").fill("level breaks")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="1 message with").wait_for()


def test_what_worked_in_the_background(open_page, operator, world, home, claude_run):
    """Recorded of Claude Code 2.1.332."""
    rows.a_tick(world)
    path = Path(__file__).with_name("claude_background.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    homes.write(homes.claude_path(home, TREE), [homes.said(TREE), *lines])
    page = open_page(f"/runs/{claude_run.pk}/conversation/", operator)
    assert page.get_by_text("Finished in the background").count() == 2
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    assert looks(page, "conversation-background") == []
