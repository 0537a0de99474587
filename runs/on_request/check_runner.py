"""Carries out `labctl check`: one command after another in the agent's own worktree.

Whoever does not hold its job any more, or finds it or its run ended, ends its command and leaves.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.db import transaction

from runs.core import database
from runs.core.database import NO_DATABASE
from runs.core.ports import Lab, SeamError
from runs.core.states import JobKind, RunState
from runs.jobs import runner as jobs
from runs.jobs.runner import HeldJob, LostError
from runs.models import CheckRun
from runs.on_request import checks
from runs.telemetry import log_context
from runs.validation import clean_room, reports, specs
from runs.validation.command_rules import Check, Checked
from runs.validation.report_files import ReportFile
from runs.validation.specs import Command, Kind

logger = logging.getLogger(__name__)


def _never() -> bool:
    return False


def carry_out(lab: Lab, check_id: int, is_stopping: Callable[[], bool] = _never) -> None:
    """Run the commands of a check that waits for it. Safe to call twice.

    Once this process `is_stopping` the command is ended and the check let go, as if not begun.
    """
    with transaction.atomic():
        job = jobs.claim(lab, JobKind.CHECK_RUN, check_id)
        if job is None:
            return
        row = CheckRun.objects.select_related("run__project").get(pk=check_id)
    rows = CheckRun.objects.filter(pk=check_id, is_running=True)
    with (
        HeldJob(lab, checks.CHECK_RUNS, job, rows, is_stopping) as held,
        log_context.about(**log_context.of(row.run)),
    ):
        held.wanted = rows.filter(run__outcome="").exclude(
            run__state__in=(RunState.HELD, RunState.CHECKING)
        )
        _go_through(lab, row, held)


def _go_through(lab: Lab, row: CheckRun, held: HeldJob) -> None:
    try:
        lab.checks.end(row.mark)  # what a killed predecessor left running
        tree = _run_all(lab, row, held)
        _close(lab, row, held, tree=tree)
    except SeamError as error:
        _close(lab, row, held, str(error))
    except LostError:
        logger.info("a check was taken away", extra={"check": row.pk})
    except NO_DATABASE as error:
        logger.warning("a check was not stored", extra={"error": str(error)})
        database.renew_connection()
    except Exception as error:
        logger.exception("a check failed by a mistake of ours")
        mistake = f"labsite made a mistake ({type(error).__name__}); it is in the log"
        _close(lab, row, held, mistake)
    with contextlib.suppress(*NO_DATABASE):
        held.release()


def _close(lab: Lab, row: CheckRun, held: HeldJob, trouble: str = "", tree: str = "") -> None:
    """End the check unless somebody else has it, or has ended it."""
    with contextlib.suppress(LostError), held.guard():
        checks.close(lab, row, trouble, tree=tree)


def _run_all(lab: Lab, row: CheckRun, held: HeldJob) -> str:
    """Every command, whatever the others gave: an agent wants to know all that fails at once.

    The tree of the files, if it was the same before and after each; empty otherwise.
    """
    commands = [specs.command_from_json(one) for one in row.commands]
    row.results = []
    place = Path(row.run.worktree)
    if not place.is_dir():
        raise SeamError(f"the worktree of the run is not there any more: {place}")
    trees = [_tree(lab, place)]
    is_prepared = True
    for command in commands:
        row.results.append(_begun(lab, command, len(row.results) + 1))
        if not is_prepared:
            row.results[-1] |= {"is_running": False, "skipped": "the dependencies failed"}
            held.store(results=row.results)
            continue
        held.store(results=row.results)
        junit = ReportFile(lab, place, reports.junit_path(command.argv))
        found = lab.checks.run(_check(lab, row, command, place), held.is_held)
        if found.is_given_up:
            raise LostError
        trees.append(_tree(lab, place))
        tree = trees[-1] if trees[-1] == trees[-2] else ""
        row.results[-1] |= {**_stored(found), "is_running": False, "tree": tree}
        if command.kind is Kind.TEST and found.status == 0:
            row.results[-1] |= _find_tests(lab, row, junit)
        held.store(results=row.results)
        if command.kind is Kind.DEPS and checks.is_failure(row.results[-1]):
            is_prepared = False
    return trees[0] if len(set(trees)) == 1 else ""


def _find_tests(lab: Lab, row: CheckRun, junit: ReportFile) -> dict[str, Any]:
    """Return what is known of the tests of the command that passed, as the clean room sees it."""
    known = clean_room.read_tests(lab, junit)
    entry = {**row.results[-1], **known}
    return {**known, "no_tests": clean_room.describe_no_tests(lab, row.folder(lab.paths), entry)}


def _check(lab: Lab, row: CheckRun, command: Command, place: Path) -> Check:
    """As a clean room runs it: what it prints is kept apart and, in its order, together."""
    entry = row.results[-1]
    return Check(
        argv=command.argv,
        cwd=place,
        folder=row.folder(lab.paths),
        name=str(entry["stdout"]),
        errors=str(entry["stderr"]),
        whole=str(entry["name"]),
        mark=row.mark,
        limit=timedelta(minutes=command.minutes),
        lock=lab.paths.test_mutex(row.run.project_id) if command.use_test_mutex else None,
    )


def _begun(lab: Lab, command: Command, number: int) -> dict[str, Any]:
    """A result while its command runs, in the shape that those of validations have."""
    return {
        **_stored(Checked(None, 0.0)),
        **{"attempt": 1, "name": f"{number}.txt", "argv": list(command.argv), "is_running": True},
        **{"command": command.name, "kind": command.kind.value, "allow_fail": command.allow_fail},
        **{"stdout": f"{number}.out.txt", "stderr": f"{number}.err.txt", "tests": None},
        **{"skipped": "", "no_tests": "", "tree": "", "began_at": lab.now().isoformat()},
    }


def _stored(found: Checked) -> dict[str, Any]:
    """The end of standard error has a file of its own."""
    kept = asdict(found)
    del kept["error_tail"]
    return kept


def _tree(lab: Lab, place: Path) -> str:
    """Git that could not say makes no proof, and keeps no command from running."""
    try:
        return lab.repos.worktree_tree(place)
    except SeamError as error:
        logger.info("the tree of a worktree could not be told", extra={"error": str(error)})
        return ""
