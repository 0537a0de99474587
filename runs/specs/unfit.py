"""Why what people write on the page *Checks* cannot be stored: for each wrong field a sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models

from runs.core.states import CompletionPolicy
from runs.models import AgentProfile, CheckCommand, LoopTerms, Reviewer
from runs.reviewers import programs
from runs.validation import specs
from runs.validation.spec_models import TermsColumns
from runs.validation.specs import Command

# The columns of the terms, as sentences name them.
TERM_NAMES = {
    "disabled": "switches",
    "require_clean_git": "require a clean worktree",
    "require_pytest_for_code_changes": "code changes need a test command",
    "coverage_min_percent": "minimum coverage",
    "coverage_branch": "branches in coverage",
    "coverage_report_path": "coverage report",
    "e2e_command": "end-to-end command",
    "e2e_required_env": "variables of the end-to-end check",
    "e2e_minutes": "time limit of the end-to-end check",
    "keep_e2e_fixture": "keep the test repository",
    "keep_worktrees": "keep the clean worktree after a failure",
    "max_gate_attempts": "attempts for evidence and clean room",
    "max_review_attempts": "attempts for reviews",
    "review_minutes": "time limit of a review",
    "review_total_minutes": "time limit of all reviews of a run",
    "skip_without_reviewers": "skip the review without reviewers",
    "track_low_findings": "open an issue for P2 and P3",
    "person_for_check_changes": "a person looks at changes to the checks",
}
TERMS = tuple(TERM_NAMES)
REVIEWER = ("name", "is_on", "profile_id", "model", "effort", "command", "instructions")
MOST_ARGUMENTS = 200
MOST_INSTRUCTIONS = 10_000
MOST_FILE_BYTES = 2_000_000  # of checks in one file
IN_LOOPS = (
    "Runs of this project are loops, and gates cannot prove a loop yet. Turn off “Work in loops” on "
    "its page Loops first."
)
_NO_LIST = 'Write a list of texts, such as ["pytest", "-q"].'
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


def wrong_policy(project_id: int, policy: str) -> str:
    """Why a project cannot have this policy; empty when it can."""
    if policy != CompletionPolicy.GATES:
        return ""
    is_loop = LoopTerms.objects.filter(project_id=project_id, is_on=True).exists()
    return IN_LOOPS if is_loop else ""


def wrong_row(row: TermsColumns | CheckCommand | Reviewer) -> dict[str, str]:
    """For each field of a filled-in row that cannot be stored, why."""
    if isinstance(row, TermsColumns):
        return wrong_terms({name: getattr(row, name) for name in TERMS})
    if isinstance(row, Reviewer):
        return wrong_reviewer(row)
    lists = ("argv", "coverage_args", "unit_args", "lock_files")
    odd = {name: _NO_LIST for name in lists if not _is_texts(getattr(row, name))}
    return odd or wrong_command(row, row.command())


def wrong_command(row: CheckCommand, command: Command) -> dict[str, str]:
    """Why a row cannot become this command."""
    wrong = specs.wrong(command)
    if len(command.argv) > MOST_ARGUMENTS:
        wrong["argv"] = f"Write at most {MOST_ARGUMENTS} arguments."
    others = CheckCommand.objects.filter(project_id=row.project_id, name=command.name)
    if "name" not in wrong and others.exclude(pk=row.pk).exists():
        wrong["name"] = "There is a command of this name already."
    return wrong


def wrong_terms(given: Mapping[str, Any]) -> dict[str, str]:
    """What the columns themselves cannot refuse."""
    wrong = {}
    try:
        specs.switches(given.get("disabled", ()))
    except specs.UnknownSwitch as error:
        wrong["disabled"] = str(error)
    path = given.get("coverage_report_path", "")
    if path and not specs.is_report_path(path):
        wrong["coverage_report_path"] = "Write a path below the repository, without .. in it."
    if not _is_argv(given.get("e2e_command", [])):
        wrong["e2e_command"] = "Write the program and its arguments."
    names = given.get("e2e_required_env", [])
    if not _is_texts(names) or not all(_VARIABLE.fullmatch(one) for one in names):
        wrong["e2e_required_env"] = "Write names of variables: letters, digits and underscores."
    return wrong


def _is_texts(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) <= MOST_ARGUMENTS
        and all(isinstance(one, str) for one in value)
    )


def _is_argv(value: Any) -> bool:
    """An argument list, or an empty one."""
    return _is_texts(value) and (not value or bool(value[0]))


def wrong_fields(row: models.Model, names: Sequence[str]) -> dict[str, str]:
    """The limits of the model's own fields, as the admin's form checks them."""
    try:
        row.clean_fields(exclude={one.name for one in row._meta.fields} - set(names))
    except ValidationError as error:
        return {name: " ".join(said) for name, said in error.message_dict.items()}
    return {}


def wrong_reviewer(row: Reviewer) -> dict[str, str]:
    """What the columns themselves cannot refuse."""
    wrong = {}
    others = Reviewer.objects.filter(project_id=row.project_id, name=row.name).exclude(pk=row.pk)
    if "name" in specs.wrong(Command(row.name, ("x",), specs.Kind.LINT)):
        wrong["name"] = specs.NAMES
    elif others.exists():
        wrong["name"] = "There is a reviewer of this name already."
    if not _is_argv(row.command):
        wrong["command"] = "Write the program and its arguments."
    elif programs.is_inside(row.command):
        wrong["command"] = (
            "Write a program of this machine, by its name or its full path: one inside the "
            "repository could be changed by whoever is reviewed."
        )
    elif bool(row.command) == (row.profile_id is not None):
        field = "command" if row.command else "profile_id"
        wrong[field] = "Choose an agent or write a command, one of the two."
    if len(row.instructions) > MOST_INSTRUCTIONS:
        wrong["instructions"] = f"Write at most {MOST_INSTRUCTIONS} characters."
    return wrong | _wrong_choice(row)


def _wrong_choice(row: Reviewer) -> dict[str, str]:
    """Model and effort are of the closed lists of its agent, and a command has none."""
    chosen = {name: getattr(row, name) for name in ("model", "effort") if getattr(row, name)}
    if not chosen:
        return {}
    profiles = AgentProfile.objects.filter(pk=row.profile_id) if row.profile_id else ()
    profile = next(iter(profiles), None)
    if profile is None:
        return dict.fromkeys(chosen, "Only an agent has this.")
    return {
        name: f"{profile.name} does not offer it."
        for name, value in chosen.items()
        if not profile.allows(**{"model": "", "effort": "", name: value})
    }
