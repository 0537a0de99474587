"""A limit of tokens with the real programs: told once when it is near, ended in the middle of a tool call."""

from __future__ import annotations

from pathlib import Path

import pytest

from runs.core.states import NoticeKind, Outcome, WorktreeFate
from runs.models import Notice, Settings
from runs.transcript import screens
from tests.agents.house import CLAUDE, CODEX, hold
from tests.agents.script import Say, Shell

A_MESSAGE = 130  # tokens, in and out


def interactive(house, name):
    profile = house.profile(name)
    project = house.project(profile)
    if name == CODEX:
        house.trust_codex(project)
        profile.mode, profile.output = "interactive", ""
        profile.argv = ["codex", "--dangerously-bypass-approvals-and-sandbox", "{prompt}"]
        profile.save()
    return project


@pytest.mark.parametrize("name", [CLAUDE, CODEX])
def test_an_agent_is_told_that_its_limit_is_near_and_ended_when_it_is_reached(house, name):
    settings = Settings.current()
    settings.run_tokens_limit = 5 * A_MESSAGE
    settings.save()
    first = [Shell("echo work > half-done"), Shell("true"), Shell("true"), hold()]
    house.model.script(*first, hold("the-end"), Say("Done."))
    run = house.start(interactive(house, name))
    run = house.until(run, lambda run: run.limits_told)
    assert (run.outcome, run.limits_told) == ("", "run_tokens")
    if name == CLAUDE:  # it takes a moment to read the key after the words
        queued = "to edit queued messages"
        house.until(run, lambda run: queued in screens.plain(house.screen(run)))
    (Path(run.worktree) / "go-on").touch()
    run = house.until_over(run)
    assert run.outcome == Outcome.OVER_LIMIT, house.told(run)
    assert run.reason.startswith("the limit of tokens for one run is reached: ")
    # The model was told between two of its tool calls, once.
    asked = house.model.asked()[-1].text
    assert asked.count("About 80 % of the limit of tokens for one run is used") == 1
    assert Notice.objects.filter(run=run, kind=NoticeKind.RUN_NEARS_LIMIT).count() == 1
    assert run.worktree_fate == WorktreeFate.KEPT
    assert (Path(run.worktree) / "half-done").read_text() == "work\n"
