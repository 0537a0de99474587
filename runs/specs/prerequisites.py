"""What the end-to-end check needs on this machine, and whether each is there. Starts no program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from runs.agents import checks
from runs.core.ports import Lab
from runs.models import AgentProfile, Project, Settings
from runs.validation.specs import E2E

_NO_ENVIRONMENT: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Prerequisite:
    """One thing that has to be there. `is_there` is None when that cannot be told from here."""

    name: str
    is_there: bool | None
    text: str


def of_e2e(lab: Lab, project: Project, e2e: E2E) -> list[Prerequisite]:
    """The agent with its login, the command's program, and each variable that it needs."""
    found = [_agent(lab, project.agent or Settings.current().agent)]
    if e2e.command:
        found.append(_program(lab, e2e.command[0]))
    return [*found, *(_variable(lab, name) for name in e2e.required_env)]


def missing(found: list[Prerequisite]) -> list[str]:
    """The names of those that are known not to be there: the check fails with them."""
    return [one.name for one in found if one.is_there is False]


def _agent(lab: Lab, profile: AgentProfile | None) -> Prerequisite:
    if profile is None:
        return Prerequisite("Agent", False, "No agent is chosen for new sessions.")
    path, unfit = checks.inspect(lab, profile)
    if unfit is not None:
        return Prerequisite(profile.name, False, unfit.text)
    if profile.is_logged_in is False:
        return Prerequisite(profile.name, False, "It is not logged in on this machine.")
    if path is None or profile.is_logged_in is None:
        return Prerequisite(profile.name, None, "Whether it is logged in is not known yet.")
    return Prerequisite(profile.name, True, "It is there and logged in.")


def _program(lab: Lab, program: str) -> Prerequisite:
    path = lab.programs.find(program, _NO_ENVIRONMENT)
    if path is None:
        return Prerequisite(program, None, "It is looked for in the worktree when the check runs.")
    if not path:
        return Prerequisite(program, False, "The program was not found on this machine.")
    return Prerequisite(program, True, "The program is there.")


def _variable(lab: Lab, name: str) -> Prerequisite:
    is_there = bool(lab.programs.variable(name, _NO_ENVIRONMENT))
    text = "The variable is set." if is_there else "The variable is not set for sessions."
    return Prerequisite(name, is_there, text)
