"""Prepares the worktree of a run before its agent starts: the project's files, then its commands.

What the commands gave is kept on the run, for a new worktree in `Run.setup`, for one that was there already
in `Run.setup_again`: `{"has_passed": bool, "results": [entry, …]}`, the entries as those of a
validation. As long as the former has not passed, no agent has ever worked in the worktree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from django.db import transaction

from runs.core.ports import Lab, UnfitFileError
from runs.core.states import NoticeKind
from runs.models import Notice, Run
from runs.setup import checkout, commands, file_acts
from runs.setup.commands import NEW, Stage
from runs.timeline import announce
from runs.validation.command_rules import shown

TAIL_CHARACTERS = 1500  # of its output, in the sentence that says why nothing was started


class SetUpFailedError(Exception):
    """A set-up command failed, so that no agent may start; says which, and how it ended."""


class CalledOffError(Exception):
    """Nobody wants the start any more; the command that ran was ended."""


def place_files(lab: Lab, run: Run, stage: Stage = NEW) -> None:
    """Write the project's files into the worktree of a run that is starting; none is no work.

    A worktree that was there already gets those that it lacks, as a restored one does. One that
    cannot be written there keeps no agent from its work: it is told once.

    Raises:
        SetUpFailedError: one must not be written there; none was.
        CalledOffError: the run is not starting any more.
        SeamError: labsite could not write them.
    """
    if stage is not NEW:
        for why in file_acts.place_again(lab, run.project, Path(run.worktree)):
            _tell_once(lab, run, f"files of the set-up: {why}")
        return
    keep = _Keeper(lab, run, NEW)
    try:
        paths = [one.path for one in file_acts.list_files(run.project)]
        if paths:
            # Until it has passed, nobody has worked in the worktree: it goes with the start.
            names = ", ".join(paths)[: commands.COMMAND_CHARACTERS]
            keep([], text=f"files of the set-up: {names}")
        file_acts.place(lab, run.project, Path(run.worktree))
    except UnfitFileError as error:
        raise SetUpFailedError(f"the set-up of the project failed: {error}") from error
    if paths and not commands.list_commands(run.project, NEW):
        keep([], has_passed=True)


def fetch_large_files(lab: Lab, run: Run) -> None:
    """Put what Git LFS keeps into the worktree of a run; where it is not installed, say so.

    Raises SeamError.
    """
    if why := checkout.fetch_large_files(lab, run.project, Path(run.worktree)):
        _tell_once(lab, run, why)


def _tell_once(lab: Lab, run: Run, text: str) -> None:
    text = lab.mask(text)  # as it is stored
    with transaction.atomic():
        if not Notice.objects.filter(run=run, text=text).exists():
            announce.tell(lab, NoticeKind.RUN_STEP, text, run=run)


def run_commands(lab: Lab, run: Run, goes_on: Callable[[], bool], stage: Stage = NEW) -> None:
    """Run each set-up command in the worktree of a run that is starting; none is no work.

    Every process carries the mark of the run, so that whatever ends the run ends it too.

    Args:
        lab: the outside.
        run: in *starting*, with its worktree.
        goes_on: asked every second or so; once it says no, the command is ended.
        stage: which commands.

    Raises:
        SetUpFailedError: a command failed or took too long; the later ones were not run.
        CalledOffError: `goes_on` said no.
        SeamError: labsite could not run them.
    """
    wanted = commands.list_commands(run.project, stage)
    results: list[dict[str, Any]] = []
    keep = _Keeper(lab, run, stage)
    for number, argv in enumerate(wanted, start=1):
        entry = commands.begin_entry(lab, stage, argv, number)
        text = f"{number} of {len(wanted)}: {shown(argv)[: commands.COMMAND_CHARACTERS]}"
        keep([*results, entry], text=f"{stage.words} {text}")
        found = commands.run_one(lab, run, entry, run.marker(lab.paths), goes_on)
        if found.is_given_up:
            raise CalledOffError
        results.append({**entry, **commands.store_result(found), "is_running": False})
        why = commands.describe_failure(results[-1])
        keep(results, has_passed=not why and number == len(wanted))
        if why:
            raise SetUpFailedError(describe_failure(why, found.tail, stage))


def describe_failure(why: str, tail: str, stage: Stage = NEW) -> str:
    """Return why nothing was started, with the end of what the failed command printed."""
    said = tail.strip()[-TAIL_CHARACTERS:]
    output = f" Its final output: {said}" if said else ""
    return f"the {stage.words} of the project failed: {why}.{output}"


def is_unfinished(run: Run) -> bool:
    """Return whether set-up commands began in the worktree and no agent could start after them."""
    return run.setup is not None and not run.setup["has_passed"] and not run.did_start


def clear_unfinished(lab: Lab, run: Run, repo: Path) -> None:
    """Remove a worktree in which set-up commands alone have written. Idempotent; raises SeamError."""
    path = Path(run.worktree)
    if run.worktree and is_unfinished(run) and path.exists():
        lab.repos.force_remove(repo, path)


class _Keeper:
    """Stores the results so far, as long as the run is starting; a text is told of it."""

    def __init__(self, lab: Lab, run: Run, stage: Stage) -> None:
        self._lab, self._run, self._stage = lab, run, stage

    def __call__(
        self, results: Sequence[dict[str, Any]], *, has_passed: bool = False, text: str = ""
    ) -> None:
        kept = {"has_passed": has_passed, "results": list(results)}
        with transaction.atomic():
            rows = Run.objects.starting().filter(pk=self._run.pk)
            if not rows.update(**{self._stage.name: kept}):
                raise CalledOffError
            if text:
                announce.tell(self._lab, NoticeKind.RUN_STEP, text, run=self._run)
        setattr(self._run, self._stage.name, kept)
