"""What the doctor finds beside the runs: folders whose row is settled or gone, and no others."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from labsite.doctor import beside
from runs.core.paths import Paths
from runs.core.states import AttemptState, Claim
from runs.machine import processes
from runs.models import Attempt, CheckRun, Project, Run, Validation
from tests import make
from tests.fakes import START

pytestmark = pytest.mark.django_db


def _attempt(project: Project, number: int, *, settled: bool, **fields: Any) -> Attempt:
    if settled:
        fields |= {"state": AttemptState.FAILED, "ended_at": START, "settled_at": START}
    run = make.a_run(project, str(number), slot=number)
    about = {"project": project, "host": "local", "number": 1, "claim": Claim.DONE}
    return Attempt.objects.create(run=run, mark=f"lab-{number}", began_at=START, **about, **fields)


def _validation(run: Run, number: int, *, settled: bool, **fields: Any) -> Validation:
    state = {"state": "failed", "ended_at": START, "settled_at": START} if settled else {}
    return Validation.objects.create(
        project=run.project, run=run, number=number, count=1, host="local", minutes=30, most_fixers=0,
        mark=f"lab-v{number}", began_at=START, **state, **fields,
    )  # fmt: skip


def test_what_no_row_stands_for_is_told_and_nothing_else(tmp_path: Path) -> None:
    paths, project = Paths(tmp_path), make.a_project()
    works, ended = (_attempt(project, n, settled=n == 2) for n in (1, 2))
    kept = _attempt(project, 3, settled=True, artifacts={"worktree_state": "kept"})
    level, old = (_validation(works.run, n, settled=n == 2) for n in (1, 2))
    fixture = paths.e2e_fixtures / "run-level-77-0"
    _validation(works.run, 3, settled=True, artifacts={"e2e_fixture_path": str(fixture / "tiny")})
    check = CheckRun.objects.create(run=works.run, host="local", asked_at=START, mark="lab-c")
    boot, mine = processes.boot(), processes.name_of(os.getpid()).replace(":", "_")
    dead, here, looked_at = (f"20261123T07000{n}_{p}" for n, p in enumerate(
        (f"{boot}_1_0", mine, f"{boot}_2_0")))  # fmt: skip
    known = [
        *(paths.clean_rooms / str(one.run_id) / one.run.issue_key / "1" for one in (works, kept)),
        paths.clean_rooms / f"run-level-{level.pk}",
        paths.clean_rooms / "by-hand" / "demo" / here,
        paths.clean_rooms / "kept" / "demo" / looked_at,
        paths.reviews / f"{works.pk}-4",
        fixture,
        paths.e2e_fixtures / f"run-level-{level.pk}-1",
        paths.e2e_fixtures / f"{here}-0",
        *(paths.gates / str(one.pk) for one in (works, ended)),
        paths.gates / f"check-{check.pk}",
        paths.gates / "by-hand" / here,
        paths.gates / "by-hand" / looked_at / "kept",
    ]
    stray = [
        f"clean-rooms/{ended.run_id}/{ended.run.issue_key}/1",
        f"clean-rooms/by-hand/demo/{dead}",
        "clean-rooms/999/7/1",
        f"clean-rooms/kept/demo/{dead}",
        f"clean-rooms/run-level-{old.pk}",
        f"e2e-fixtures/{dead}-0",
        f"e2e-fixtures/run-level-{old.pk}-0",
        "gates/999",
        "gates/check-999",
        f"reviews/{ended.pk}-4",
    ]
    for path in (*known, *(tmp_path / one for one in stray)):
        path.mkdir(parents=True)
    assert beside.orphans(paths) == sorted(stray)


def test_a_state_folder_without_any_of_it_has_nothing_to_tell(tmp_path: Path) -> None:
    assert beside.orphans(Paths(tmp_path)) == []
