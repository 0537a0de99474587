"""What Claude Code is given beside an operator's own argument list, and shipped lists of old databases."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest
from django.apps import apps

from runs.agents import claude_settings
from runs.agents.claude_settings import equipped
from runs.models import AgentProfile
from tests.agents.house import CLAUDE, PRINT

OURS = ["--settings", "{settings}", "--session-id", "{session}"]
MIGRATION = importlib.import_module("runs.migrations.0046_unattended_claude")


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


@pytest.mark.django_db
def test_profiles_of_older_databases_are_changed_where_they_were_left_as_shipped():
    AgentProfile.objects.all().delete()
    for number, name in (("0002_claude_code_profile", "add"), ("0012_one_shot_profiles", "add")):
        getattr(importlib.import_module(f"runs.migrations.{number}"), name)(apps, None)
    of = AgentProfile.objects.get
    own = AgentProfile.objects.create(
        name="Own", argv=["claude", "--settings", "x.json", "{prompt}"], trust="claude"
    )
    little = AgentProfile.objects.create(
        name="Little",
        argv=["claude", "--verbose", "{prompt}"],
        trust="claude",
        env={"CLAUDE_CODE_MAX_RETRIES": "2", "MINE": "1"},
    )
    printed = list(of(name=PRINT).argv)
    for _ in range(2):
        MIGRATION.change(apps, None)
    assert of(name=CLAUDE).argv[:6] == ["claude", *OURS, "--permission-mode"]
    assert of(name=CLAUDE).env == {"DISABLE_AUTOUPDATER": "1"}
    assert of(name=CLAUDE).resume_argv == ["claude", "--resume", "{session}"]
    assert of(name=PRINT).argv == printed
    assert "CLAUDE_CODE_MAX_RETRIES" not in of(name=PRINT).env
    assert of(pk=own.pk).argv == own.argv
    assert of(pk=little.pk).argv == ["claude", *OURS, "--verbose", "{prompt}"]
    assert of(pk=little.pk).env == {"CLAUDE_CODE_MAX_RETRIES": "2", "MINE": "1"}
