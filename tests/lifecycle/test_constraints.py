"""What must never be is refused by the database itself."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from runs.core.states import Outcome, RunState
from runs.models import Run, Settings
from tests import make
from tests.fakes import START

pytestmark = pytest.mark.postgres


def _refused(**changes):
    run = make.a_run(make.a_project())
    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects.filter(pk=run.pk).update(**changes)


@pytest.mark.every_case
@pytest.mark.django_db
@pytest.mark.row("LAB-28", level="contract")
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"outcome": "died"}, id="outcome without end"),
        pytest.param({"ended_at": START}, id="end without outcome"),
        pytest.param({"outcome": "died", "ended_at": START}, id="ended in state working"),
        pytest.param(
            {"outcome": "vanished", "ended_at": START, "state": RunState.ENDED},
            id="unknown outcome",
        ),
        pytest.param({"settled_at": START}, id="settled without outcome"),
    ],
)
def test_half_ended_runs_are_refused(changes):
    _refused(**changes)


@pytest.mark.django_db
@pytest.mark.row("LAB-07", level="contract")
def test_an_issue_has_at_most_one_active_run():
    project = make.a_project()
    make.a_run(project, "7", outcome=Outcome.DIED)
    make.a_run(project, "7")
    with pytest.raises(IntegrityError), transaction.atomic():
        make.a_run(project, "7", slot=2)


@pytest.mark.django_db
def test_there_is_one_row_of_settings():
    Settings.current()
    with pytest.raises(IntegrityError), transaction.atomic():
        Settings.objects.create(pk=2)


@pytest.mark.django_db
def test_only_beads_go_without_a_ready_label():
    make.a_project("words", tracker="beads", ready_label="")
    for tracker in ("builtin", "github", "gitea", ""):
        with pytest.raises(IntegrityError), transaction.atomic():
            make.a_project("numbers", tracker=tracker, ready_label="")
