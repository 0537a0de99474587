"""What Claude Code is given beside an operator's own argument list."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from runs.agents import claude_settings, orders
from runs.agents.claude_settings import equipped
from runs.models import AgentProfile

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
    assert with_hooks["permissions"] == {"deny": ["AskUserQuestion", "EnterWorktree"]}
    (entry,) = with_hooks["hooks"]["StopFailure"]
    assert entry["hooks"][0]["command"] == "'/a b/labctl' hook session"
    assert "hooks" not in json.loads(claude_settings.content())


@pytest.mark.parametrize(
    ("trust", "argv", "is_switched"),
    [
        ("claude", ["claude", "{prompt}"], True),
        ("claude", ["claude", "-p", "{prompt}"], True),
        ("none", ["wrapper", "--settings", "{settings}"], True),
        ("codex", ["codex", "exec", "{prompt}"], False),
    ],
)
def test_sessions_in_the_background_of_claude_code_are_switched_off(trust, argv, is_switched):
    found = orders.switches_of(AgentProfile(trust=trust, argv=argv))
    assert ("CLAUDE_CODE_DISABLE_AGENT_VIEW" in found) is is_switched
    assert ("CLAUDE_CODE_DISABLE_CRON" in found) is is_switched


@pytest.mark.real
def test_the_real_program_starts_no_session_in_the_background(agents, tmp_path):
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "IS_SANDBOX": "1"}
    done = subprocess.run(
        [agents / "claude", "--bg", "hello"],
        cwd=tmp_path,
        env={**env, **claude_settings.ENVIRONMENT},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "is disabled by CLAUDE_CODE_DISABLE_AGENT_VIEW" in done.stdout + done.stderr


def test_where_a_person_sits_the_agent_may_ask():
    assert "permissions" not in json.loads(claude_settings.content(is_attended=True))
