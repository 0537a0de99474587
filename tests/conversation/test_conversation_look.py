"""The page of a conversation, looked at: accessible, fitting, light and dark, at a desk and on a phone."""

from __future__ import annotations

import pytest

from tests.conversation import long_talk
from tests.conversation.conftest import TREE
from tests.web import board_rows as rows
from tests.web.looking import looks

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_long_conversation_of_claude_code(open_page, operator, world, home, claude_run):
    rows.a_tick(world)
    long_talk.write_claude(home, TREE)
    page = open_page(f"/runs/{claude_run.pk}/conversation/", operator)
    assert looks(page, "conversation-claude") == []
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    assert looks(page, "conversation-claude-open") == []


def test_a_long_conversation_of_codex(open_page, operator, world, home, codex_run):
    rows.a_tick(world)
    long_talk.write_codex(home, TREE)
    page = open_page(f"/runs/{codex_run.pk}/conversation/", operator)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    assert looks(page, "conversation-codex") == []
