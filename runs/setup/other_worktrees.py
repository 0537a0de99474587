"""Prepares worktrees that are no run's, a fixer's or a reviewer's, as those of runs are prepared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from runs.core.ports import Lab, UnfitFileError
from runs.models import Project
from runs.setup import checkout, file_acts
from runs.setup.preparation import CalledOffError, SetUpFailedError, describe_failure
from runs.validation import rules
from runs.validation.command_rules import Check


@dataclass(frozen=True, slots=True)
class OtherWorktree:
    """A new worktree, and where what is printed in it goes: files of `folder` that begin with `name`.

    Every process that is started in it carries the mark.
    """

    path: Path
    folder: Path
    name: str
    mark: str


def prepare(
    lab: Lab, project: Project, worktree: OtherWorktree, goes_on: Callable[[], bool]
) -> None:
    """Fetch large files into a new worktree, place the project's files, run its set-up commands.

    Args:
        lab: the outside.
        project: whose set-up it is.
        worktree: where nobody has worked yet.
        goes_on: asked every second or so; once it says no, the command is ended.

    Raises:
        SetUpFailedError: a file was unfit, or a command failed or took too long.
        CalledOffError: `goes_on` said no.
        SeamError: labsite could not do it.
    """
    checkout.fetch_large_files(lab, project, worktree.path)
    try:
        file_acts.place(lab, project, worktree.path)
    except UnfitFileError as error:
        raise SetUpFailedError(f"the set-up of the project failed: {error}") from error
    for number, argv in enumerate(project.setup_commands, start=1):
        given = checkout.environment_of(lab, project, argv)
        check = Check(
            argv=argv,
            cwd=worktree.path,
            folder=worktree.folder,
            name=f"{worktree.name}-{number}.txt",
            mark=worktree.mark,
            limit=timedelta(minutes=project.setup_minutes),
            env={"LAB_WORKTREE": str(worktree.path), **given},
            secrets=[one for one in (project.git_token, given.get("LAB_GIT_TOKEN")) if one],
        )
        found = lab.checks.run(check, goes_on)
        if found.is_given_up:
            raise CalledOffError
        if why := rules.why_failed(argv, found):
            raise SetUpFailedError(describe_failure(why, found.tail))
