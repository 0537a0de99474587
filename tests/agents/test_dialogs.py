"""No question of the real Claude Code stops an unattended start: each one seen, and answered beforehand."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from runs.models import Project, Run
from tests.agents.house import KEY, AgentHouse, work_on
from tests.agents.script import Say, Shell
from tests.real import git

ALLOWED = {"permissions": {"allow": ["Bash(git tag allowed)"]}}
SERVER = {"mcpServers": {"none": {"command": "false"}}}
ASKING = ["claude", "--permission-mode", "default", "{prompt}"]


def _commit(house: AgentHouse, project: Project, name: str, text: str) -> None:
    """One more file on origin's default branch."""
    checkout = house.real.folder / f"{project.name}-checkout"
    (checkout / name).parent.mkdir(parents=True, exist_ok=True)
    (checkout / name).write_text(text)
    git(checkout, "add", "-A")
    git(checkout, "commit", "-qm", "chore: more")
    git(checkout, "push", "-q", "origin", "main")


def an_empty_home(house: AgentHouse, project: Project) -> None:
    assert list(house.home.iterdir()) == []


def a_home_that_an_earlier_start_has_used(house: AgentHouse, project: Project) -> None:
    """It takes the agreement to bypass permissions over once, from a file that was not there yet."""
    env = {**house.real.environ, **project.agent.env}
    subprocess.run(["claude", "auth", "status"], env=env, capture_output=True, check=False)
    assert json.loads((house.home / ".claude.json").read_text())


def an_import_from_outside_the_repository(house: AgentHouse, project: Project) -> None:
    (house.home / "notes.md").write_text("Write short sentences, says the note.\n")
    _commit(house, project, "CLAUDE.md", "@~/notes.md\n")


def a_server_of_the_repository(house: AgentHouse, project: Project) -> None:
    project.agent.argv = ASKING  # in any other mode it asks nobody about them
    project.agent.save()
    _commit(house, project, ".mcp.json", json.dumps(SERVER))


def an_argument_list_of_the_operators_own(house: AgentHouse, project: Project) -> None:
    project.agent.argv = ["claude", "--dangerously-skip-permissions", "{prompt}"]
    project.agent.save()


@pytest.mark.parametrize(
    "given",
    [
        an_empty_home,
        a_home_that_an_earlier_start_has_used,
        an_import_from_outside_the_repository,
        a_server_of_the_repository,
        an_argument_list_of_the_operators_own,
    ],
    ids=lambda given: given.__name__,
)
def test_it_goes_to_work_without_a_question(
    house: AgentHouse, given: Callable[[AgentHouse, Project], None]
) -> None:
    house.model.script(Say("I look."))
    project = house.project(house.profile())
    given(house, project)
    run = house.until(house.start(project), lambda run: run.turn_ended_at)
    assert f"labctl issue view {run.issue_key}" in house.model.asked()[0].text
    offered = [tool.get("name") for tool in house.model.asked()[0].body["tools"]]
    assert "AskUserQuestion" not in offered, "it could ask a question that nobody answers"
    if given is an_import_from_outside_the_repository:
        assert "says the note" in house.model.asked()[0].text


def test_the_list_of_allowed_commands_of_a_repository_counts(house: AgentHouse) -> None:
    house.model.script(Shell("git tag allowed"), Say("Done."))
    profile = house.profile()
    profile.argv = ASKING
    profile.save()
    project = house.project(profile)
    _commit(house, project, ".claude/settings.json", json.dumps(ALLOWED))
    run = house.until(house.start(project), lambda run: run.turn_ended_at)
    tags = git(Path(run.worktree), "tag", "--list")
    assert tags == "allowed", house.told(run)


@pytest.mark.parametrize("count", [3])
def test_several_at_once_lose_no_agreement_of_each_other(house: AgentHouse, count: int) -> None:
    profile = house.profile()
    project = house.project(profile)
    keys = ["1", *(house.issue(project) for _ in range(count - 1))]
    for key in keys:
        house.model.script(*work_on(key), word=f"afk/{key}`")
    runs: list[Run] = [house.start(project, key) for key in keys]
    for run in runs:
        house.until_over(run)
        assert run.outcome == "succeeded", house.told(run)
    known = json.loads((house.home / ".claude.json").read_text())
    assert known["customApiKeyResponses"]["approved"] == [KEY[-20:]]
    trusted = {path for path, one in known["projects"].items() if one["hasTrustDialogAccepted"]}
    worktrees = {str(house.real.paths.worktrees / f"demo-{key}") for key in keys}
    assert trusted >= worktrees
