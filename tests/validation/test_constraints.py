"""What the database refuses of validations and fixers, whoever writes."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, transaction

from runs.models import Fixer, Validation, WatchSession
from tests import make
from tests.fakes import START

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


def a_session() -> WatchSession:
    return WatchSession.objects.create(project=make.a_project(), opened_at=START)


def a_validation(session: WatchSession, **fields: Any) -> Validation:
    kept: dict[str, Any] = {"number": 1, "count": 1, "minutes": 30, "most_fixers": 2, **fields}
    return Validation.objects.create(
        session=session, project=session.project, host="local", began_at=START, **kept
    )


def a_fixer(row: Validation, **fields: Any) -> Fixer:
    kept = {"number": 1, "session": "demo~fix", "branch": "lab/fix-1-1", **fields}
    return Fixer.objects.create(
        validation=row, project=row.project, host="local", asked_at=START, **kept
    )


@pytest.mark.every_case
@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"number": 2, "count": 2}, id="a second one that runs"),
        pytest.param({"number": 1, "count": 2, "state": "passed", "ended_at": START}, id="number"),
        pytest.param({"number": 2, "count": 1, "state": "passed", "ended_at": START}, id="count"),
        pytest.param({"number": 2, "count": 2, "state": "passed"}, id="ended without a moment"),
        pytest.param(
            {"number": 2, "count": 2, "state": "green", "ended_at": START}, id="unknown state"
        ),
    ],
)
def test_a_validation_that_cannot_be_is_refused(fields: dict[str, Any]) -> None:
    session = a_session()
    a_validation(session)
    with pytest.raises(IntegrityError), transaction.atomic():
        a_validation(session, **fields)


@pytest.mark.every_case
@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"ended_at": START}, id="running with an end"),
        pytest.param({"settled_at": START}, id="settled while it runs"),
    ],
)
def test_a_validation_that_runs_has_no_end(fields: dict[str, Any]) -> None:
    session = a_session()
    with pytest.raises(IntegrityError), transaction.atomic():
        a_validation(session, **fields)


@pytest.mark.every_case
@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"number": 2}, id="a second one that works"),
        pytest.param({"number": 1, "end": "delivered", "ended_at": START}, id="number"),
        pytest.param({"number": 2, "end": "delivered"}, id="ended without a moment"),
        pytest.param({"number": 2, "ended_at": START}, id="a moment without an end"),
        pytest.param({"number": 2, "settled_at": START}, id="settled while it works"),
    ],
)
def test_a_fixer_that_cannot_be_is_refused(fields: dict[str, Any]) -> None:
    row = a_validation(a_session())
    a_fixer(row)
    with pytest.raises(IntegrityError), transaction.atomic():
        a_fixer(row, **fields)


def test_a_project_that_goes_takes_them_along() -> None:
    row = a_validation(a_session())
    a_fixer(row)
    row.project.delete()
    assert not Validation.objects.exists()
    assert not Fixer.objects.exists()
