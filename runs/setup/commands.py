"""The commands of a project around its runs: when each list of them runs, and how one is run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from runs.core import naming
from runs.core.ports import Lab
from runs.models import Project, Run
from runs.setup import checkout
from runs.validation import rules
from runs.validation.command_rules import Check, Checked, read_commands

COMMAND_CHARACTERS = 200
_GIVEN = ("status", "seconds", "tail", "signal", "is_over_time", "is_given_up", "trouble")


@dataclass(frozen=True, slots=True)
class Stage:
    """When a list of commands runs.

    `name` is the column of the project that has them, and of a run that keeps what they gave.
    """

    name: str
    words: str


NEW = Stage("setup", "set-up")
AGAIN = Stage("setup_again", "set-up before a further run")
AFTER = Stage("setup_after", "after the run")
REMOVAL = Stage("setup_removal", "before removal")


def list_commands(project: Project, stage: Stage) -> list[list[str]]:
    """Return the commands of a stage as argument lists; in a new worktree submodules come first."""
    if stage is NEW:
        return project.setup_commands
    return read_commands(getattr(project, stage.name))


def longest(project: Project, stage: Stage) -> timedelta:
    """Return how long the commands of a stage may take together."""
    return timedelta(minutes=project.setup_minutes) * len(list_commands(project, stage))


def begin_entry(lab: Lab, stage: Stage, argv: Sequence[str], number: int) -> dict[str, Any]:
    """Return what is kept of a command that begins now."""
    return {
        **store_result(Checked(None, 0.0)),
        "name": f"{stage.name.replace('_', '-')}-{number}.txt",
        "argv": list(argv),
        "is_running": True,
        "began_at": lab.now().isoformat(),
    }


def run_one(
    lab: Lab, run: Run, entry: Mapping[str, Any], mark: str, goes_on: Callable[[], bool]
) -> Checked:
    """Run a command in the worktree of a run; its processes carry the mark. Raises SeamError."""
    project = run.project
    given = checkout.environment_of(lab, project, entry["argv"])
    env = {"LAB_WORKTREE": run.worktree, "LAB_ISSUE": run.issue_key, "LAB_BRANCH": run.branch}
    if run.outcome:
        env["LAB_OUTCOME"] = run.outcome
    check = Check(
        argv=entry["argv"],
        cwd=Path(run.worktree),
        folder=lab.paths.run_folder(run.pk),
        name=entry["name"],
        mark=mark,
        limit=timedelta(minutes=project.setup_minutes),
        env={
            **env,
            **given,
            **naming.ports_env(run.slot),
            **({} if run.settled_at else {"TMPDIR": str(lab.paths.temporary_folder(run.pk))}),
        },
        secrets=[one for one in (project.git_token, given.get("LAB_GIT_TOKEN")) if one],
    )
    return lab.checks.run(check, goes_on)


def store_result(found: Checked) -> dict[str, Any]:
    """Return what is kept of what a command gave."""
    kept = asdict(found)
    del kept["error_tail"]
    return kept


def describe_failure(entry: Mapping[str, Any]) -> str:
    """Return why a command that has ended counts as failed; empty when it passed."""
    return rules.why_failed(entry["argv"], Checked(**{key: entry[key] for key in _GIVEN}))
