"""Runs the set-up commands of a project in the new worktree of a run, and keeps what they gave.

What is kept on the run (`Run.setup`) is `{"has_passed": bool, "results": [entry, …]}`, the entries as
those of a validation. As long as it has not passed, no agent has ever worked in the worktree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.db import transaction

from runs.core import naming
from runs.core.ports import Lab
from runs.core.states import NoticeKind
from runs.models import Run
from runs.timeline import announce
from runs.validation import rules
from runs.validation.command_rules import Check, Checked, shown

TAIL_CHARACTERS = 1500  # of its output, in the sentence that says why nothing was started
COMMAND_CHARACTERS = 200


class SetUpFailedError(Exception):
    """A set-up command failed, so that no agent may start; says which, and how it ended."""


class CalledOffError(Exception):
    """Nobody wants the start any more; the command that ran was ended."""


def longest(run: Run) -> timedelta:
    """Return how long the set-up commands of a run may take together."""
    return timedelta(minutes=run.project.setup_minutes) * len(run.project.setup_commands)


def run_commands(lab: Lab, run: Run, goes_on: Callable[[], bool]) -> None:
    """Run each set-up command in the worktree of a run that is starting; none is no work.

    Every process carries the mark of the run, so that whatever ends the run ends it too.

    Args:
        lab: the outside.
        run: in *starting*, with its new worktree.
        goes_on: asked every second or so; once it says no, the command is ended.

    Raises:
        SetUpFailedError: a command failed or took too long; the later ones were not run.
        CalledOffError: `goes_on` said no.
        SeamError: labsite could not run them.
    """
    commands = run.project.setup_commands
    results: list[dict[str, Any]] = []
    for number, argv in enumerate(commands, start=1):
        entry = _entry(lab, argv, number)
        text = f"set-up {number} of {len(commands)}: {shown(argv)[:COMMAND_CHARACTERS]}"
        _keep(lab, run, [*results, {**entry, "is_running": True}], text=text)
        found = lab.checks.run(_check(lab, run, argv, entry["name"]), goes_on)
        if found.is_given_up:
            raise CalledOffError
        results.append({**entry, **_stored(found)})
        why = rules.why_failed(argv, found)
        _keep(lab, run, results, has_passed=not why and number == len(commands))
        if why:
            raise SetUpFailedError(describe_failure(why, found.tail))


def describe_failure(why: str, tail: str) -> str:
    """Return why nothing was started, with the end of what the failed command printed."""
    said = tail.strip()[-TAIL_CHARACTERS:]
    return f"the set-up of the project failed: {why}.{f' Its final output: {said}' if said else ''}"


def is_unfinished(run: Run) -> bool:
    """Return whether set-up commands began in the worktree and no agent could start after them."""
    return run.setup is not None and not run.setup["has_passed"] and not run.did_start


def clear_unfinished(lab: Lab, run: Run, repo: Path) -> None:
    """Remove a worktree in which set-up commands alone have written. Idempotent; raises SeamError."""
    path = Path(run.worktree)
    if run.worktree and is_unfinished(run) and path.exists():
        lab.repos.force_remove(repo, path)


def _keep(
    lab: Lab,
    run: Run,
    results: Sequence[dict[str, Any]],
    *,
    has_passed: bool = False,
    text: str = "",
) -> None:
    """Store the results so far, as long as the run is starting; `text` is told of it."""
    setup = {"has_passed": has_passed, "results": list(results)}
    with transaction.atomic():
        if not Run.objects.starting().filter(pk=run.pk).update(setup=setup):
            raise CalledOffError
        if text:
            announce.tell(lab, NoticeKind.RUN_STEP, text, run=run)
    run.setup = setup


def _entry(lab: Lab, argv: Sequence[str], number: int) -> dict[str, Any]:
    return {
        **_stored(Checked(None, 0.0)),
        "name": f"setup-{number}.txt",
        "argv": list(argv),
        "is_running": False,
        "began_at": lab.now().isoformat(),
    }


def _stored(found: Checked) -> dict[str, Any]:
    kept = asdict(found)
    del kept["error_tail"]
    return kept


def _check(lab: Lab, run: Run, argv: Sequence[str], name: str) -> Check:
    project = run.project
    return Check(
        argv=argv,
        cwd=Path(run.worktree),
        folder=lab.paths.run_folder(run.pk),
        name=name,
        mark=run.marker(lab.paths),
        limit=timedelta(minutes=project.setup_minutes),
        env={
            **{"LAB_WORKTREE": run.worktree, "LAB_ISSUE": run.issue_key, "LAB_BRANCH": run.branch},
            **naming.ports_env(run.slot),
        },
        secrets=[one for one in (project.git_token,) if one],
    )
