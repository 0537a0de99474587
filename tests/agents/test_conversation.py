"""The conversation of the real Claude Code and the real Codex reads as what they did."""

from __future__ import annotations

import json
import re

import pytest
from django.test import Client

from runs.conversation import keeping
from runs.lifecycle import stop
from tests.agents.house import CLAUDE, CODEX, PRINT
from tests.agents.script import Refuse, Say, Shell, Tool

PART = {"description": "Look around", "prompt": "PARTWORK", "subagent_type": "general-purpose"}
EDIT = {"file_path": "hello.txt", "old_string": "hello", "new_string": "hello there"}
PATCH = "*** Begin Patch\n*** Update File: hello.txt\n@@\n-hello\n+hello there\n*** End Patch"


def page(anna: Client, run) -> str:  # type: ignore[no-untyped-def]
    return anna.get(f"/runs/{run.pk}/conversation/").content.decode()


def of_claude(house, name):  # type: ignore[no-untyped-def]
    house.model.script(
        Shell("echo read; cat hello.txt"),
        Tool("TaskCreate", {"subject": "Greet them", "description": "again"}),
        Tool("Read", {"file_path": "hello.txt"}),
        Tool("Edit", EDIT),
        Tool("Agent", PART),
        Shell("git commit -qam 'feat: greet'; echo out; exit 3"),
        Tool("TaskUpdate", {"taskId": "1", "status": "completed"}),
        Say("All is **done**."),
    )
    house.model.script(Shell("echo part"), Say("The part is done."), word="PARTWORK")
    # 2.1.332 has no list of things to do for its newest models, unless it is told to.
    profile = house.profile(name, CLAUDE_CODE_ENABLE_TODO_TOOLS="1")
    run = house.start(house.project(profile))
    return house.until(run, lambda run: run.turn_ended_at or run.outcome)


def assert_shown(html: str) -> None:
    """Words, the calls with input, output and status, the edit as a diff."""
    assert "All is <strong>done</strong>." in html
    assert re.search(r'aria-label="Command">echo read; cat hello.txt</pre>', html)
    assert re.search(r'aria-label="Output">read\nhello', html)
    assert "exit 3" in html
    diff = html[html.index('class="diff code') :]
    assert '<tr class="minus">' in diff
    assert "there" in diff[: diff.index("</table>")]


@pytest.mark.parametrize("name", [CLAUDE, PRINT])
def test_claude_code(house, anna, name):
    run = of_claude(house, name)
    # Its hook tells that the turn has ended before its record does.
    house.until(run, lambda run: "All is <strong>" in page(anna, run))
    html = page(anna, run)
    assert_shown(html)
    assert "You work unattended on issue 1" in html
    assert "The part is done." in html[html.index("Look around") :]
    assert 'class="done"><span class="hide">done: </span>Greet them' in html
    assert "120 in · 10 out" in html
    assert "Unknown entry" not in html
    found = b"".join(anna.get(f"/runs/{run.pk}/conversation/conversation.json").streaming_content)
    told = json.loads(found)["messages"]
    assert {one["agent"] for one in told if "The part is done." in one["text"]} > {""}


def test_claude_code_in_print_mode_whose_own_file_is_gone(house, anna):
    run = of_claude(house, PRINT)
    for path in house.home.glob(".claude/projects/*/*"):
        path.unlink() if path.is_file() else path.rename(path.with_suffix(".old"))
    html = page(anna, run)
    assert_shown(html)
    assert "The part is done." in html[html.index("Look around") :]
    assert "as printed" in html
    assert "Unknown entry" not in html


def of_codex(house):  # type: ignore[no-untyped-def]
    house.model.script(
        Shell("echo read; cat hello.txt"),
        Shell(f"apply_patch <<'EOF'\n{PATCH}\nEOF"),
        Shell("git commit -qam 'feat: greet'; echo out; exit 3"),
        Say("All is **done**."),
    )
    return house.until_over(house.start(house.project(house.profile(CODEX))))


def test_codex(house, anna):
    html = page(anna, of_codex(house))
    assert_shown(html)
    assert "You work unattended on issue 1" in html
    assert "120 in · 10 out" in html
    assert "Unknown entry" not in html


def test_codex_on_a_screen(house, anna):
    """As a person works with it; what it says live is what is kept of it."""
    house.model.script(
        Shell("echo read; cat hello.txt"),
        Shell(f"apply_patch <<'EOF'\n{PATCH}\nEOF"),
        Shell("echo out; exit 3"),
        Say("All is **done**."),
    )
    profile = house.profile(CODEX)
    quiet = ("-c", "check_for_update_on_startup=false", "-c", "analytics.enabled=false")
    free = "--dangerously-bypass-approvals-and-sandbox"
    profile.argv = ["codex", *quiet, free, "{prompt}"]
    profile.mode, profile.output, profile.login_command = "interactive", "", []
    profile.save()
    project = house.project(profile)
    house.trust_codex(project)
    run = house.until(house.start(project), lambda run: "All is <strong>" in page(anna, run))
    assert_shown(page(anna, run))
    assert "Unknown entry" not in page(anna, run)
    assert stop.stop(house.real.lab, run, by="anna")
    house.until_over(run)
    assert keeping.tend(house.real.lab) == 1
    for path in house.real.folder.glob("codex-home/sessions/*/*/*/*"):
        path.unlink()
    assert_shown(page(anna, run))


def test_codex_whose_own_file_is_gone(house, anna):
    run = of_codex(house)
    for path in house.real.folder.glob("codex-home/sessions/*/*/*/*"):
        path.unlink()
    html = page(anna, run)
    assert "All is <strong>done</strong>." in html
    assert "exit 3" in html
    assert "Unknown entry" not in html


def test_claude_code_that_was_refused_shows_the_error(house, anna):
    refused = Refuse(400, "invalid_request_error", "Your credit balance is too low.")
    house.model.script(Shell("echo before"), refused)
    run = house.until(house.start(house.project(house.profile())), lambda run: run.trouble)
    house.until(run, lambda run: "Credit balance is too low" in page(anna, run))
    html = page(anna, run)
    assert re.search(r'<b class="name">Error</b> [^<]*Credit balance is too low', html)
