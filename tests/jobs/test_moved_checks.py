"""A database of the version before: checks that ran then are jobs now."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from runs.models import Job, Run
from tests import make

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres, pytest.mark.long]

BEFORE, AFTER = [("runs", "0081_merge_only_passed")], [("runs", "0082_jobs")]


@pytest.fixture
def runs() -> Iterator[list[Run]]:
    """Two runs in a database of the version before; afterwards it is of this one again."""
    run = make.a_run(make.a_project(), "7")
    found = [run, make.a_run(run.project, "8", slot=2)]
    newest = MigrationExecutor(connection).loader.graph.leaf_nodes("runs")
    MigrationExecutor(connection).migrate(BEFORE)
    try:
        yield found
    finally:
        MigrationExecutor(connection).migrate(newest)


def test_each_check_that_runs_has_its_job_and_no_other_has_one(runs: list[Run]) -> None:
    run, other = runs
    now = timezone.now()
    executor = MigrationExecutor(connection)
    rows = executor.loader.project_state(BEFORE).apps.get_model("runs", "CheckRun").objects
    facts = {"host": "a", "mark": "m", "asked_at": now}
    ended = rows.create(run_id=run.pk, is_running=False, ended_at=now, **facts)
    taken = rows.create(run_id=run.pk, runner="boot:1:1", beat_at=now, trouble="again", **facts)
    waiting = rows.create(run_id=other.pk, **facts)
    executor.migrate(AFTER)
    found = {job.subject: job for job in Job.objects.all()}
    assert set(found) == {taken.pk, waiting.pk} and ended.pk not in found
    job = found[taken.pk]
    assert (job.kind, job.host, job.owner, job.beat_at, job.losses) == (
        *("check_run", "a", "boot:1:1", now, 1),
    )
    assert (found[waiting.pk].owner, found[waiting.pk].project_id) == ("", run.project_id)
