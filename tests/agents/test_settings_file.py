"""What Claude Code is given beside an operator's own argument list."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runs.agents import claude_settings
from runs.agents.claude_settings import equipped

OURS = ["--settings", "{settings}", "--session-id", "{session}"]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (["claude", "{prompt}"], ["claude", *OURS, "{prompt}"]),
        (["/opt/bin/claude", "{prompt}"], ["/opt/bin/claude", *OURS, "{prompt}"]),
        (["claude", *OURS, "{prompt}"], ["claude", *OURS, "{prompt}"]),
        (["claude", "--settings={settings}", "{prompt}"], None),
        (["claude", "--settings", "mine.json", "{prompt}"], None),
        (["claude", "--settings=mine.json", "{prompt}"], None),
        (
            ["claude", "--continue", "{prompt}"],
            ["claude", *OURS[:2], "--continue", "{prompt}"],
        ),
        (
            ["claude", "--session-id=x", "{prompt}"],
            ["claude", *OURS[:2], "--session-id=x", "{prompt}"],
        ),
        (["npx", "claude", "{prompt}"], None),
        (["codex", "{prompt}"], None),
        ([], None),
    ],
)
def test_a_list_is_given_settings_and_a_session_unless_it_has_its_own(given, wanted):
    assert equipped(given) == (given if wanted is None else wanted)


def test_the_file_answers_the_dialogs_and_has_hooks_only_where_they_are_heard():
    with_hooks = json.loads(claude_settings.content(Path("/a b/labctl")))
    assert with_hooks["skipDangerousModePermissionPrompt"] is True
    assert with_hooks["permissions"] == {"deny": ["AskUserQuestion"]}
    (entry,) = with_hooks["hooks"]["StopFailure"]
    assert entry["hooks"][0]["command"] == "'/a b/labctl' hook session"
    assert "hooks" not in json.loads(claude_settings.content())


def test_where_a_person_sits_the_agent_may_ask():
    assert "permissions" not in json.loads(claude_settings.content(is_attended=True))
