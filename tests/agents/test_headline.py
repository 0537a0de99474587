"""From *Start* to a merged pull request without a person: the real programs in an empty home."""

from __future__ import annotations

import pytest

from runs.core.states import Outcome
from runs.pulls import merging
from tests.agents.house import CLAUDE, CODEX, PRINT, work_on
from tests.real import git


@pytest.mark.parametrize("name", [CLAUDE, PRINT, CODEX])
def test_an_issue_becomes_a_merged_pull_request_without_a_person(house, name):
    house.model.script(*work_on())
    profile = house.profile(name)
    project = house.project(profile)
    run = house.until_over(house.start(project))
    assert run.outcome == Outcome.SUCCEEDED, house.told(run)
    assert (run.worktree_fate, run.warning) == ("removed", "")
    merged = merging.merge(house.real.lab, project, run.pull_number, by="anna")
    assert list(merged.closed) == [1]
    origin = house.real.folder / "demo-origin.git"
    assert "hello again" in git(origin, "show", "main:hello.txt")
