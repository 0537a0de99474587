"""Lists of our own words stand in the statement, so that SQLite uses the indexes that are made for them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.db.models import QuerySet

from runs.core.states import Outcome
from runs.models import Notice, Run
from runs.timeline.models import OUTAGE_KINDS
from tests import make

pytestmark = pytest.mark.django_db
AT = datetime(2026, 11, 1, tzinfo=UTC)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL looks at what is bound")
@pytest.mark.parametrize(
    ("rows", "index"),
    [
        (lambda: Run.objects.unseen().order_by("-pk"), "run_unseen"),
        (
            lambda: Notice.objects.filter(kind__in=OUTAGE_KINDS, at__gt=AT).order_by("at", "id"),
            "notice_outage",
        ),
    ],
)
def test_an_index_on_some_words_is_used_as_the_product_asks(
    rows: Callable[[], QuerySet[Any]], index: str
) -> None:
    # With the parameters bound, not put into the text: that is where it makes a difference.
    assert index in rows().explain()


def test_only_plain_words_are_written_out() -> None:
    project = make.a_project()
    make.a_run(project, "1", outcome=Outcome.DIED)
    odd = "it's; a 'word"
    make.a_run(project, "2", agent=odd)
    assert Run.objects.filter(outcome__in=[Outcome.DIED, "died"]).count() == 1
    assert Run.objects.filter(outcome__in={"died", ""}).count() == 2
    assert Run.objects.filter(agent__in=[odd, "x"]).count() == 1
    assert Run.objects.filter(agent__in=[]).count() == 0
    assert Run.objects.exclude(outcome__in=["died"]).count() == 1
    within = Run.objects.filter(outcome="died").values("outcome")
    assert Run.objects.filter(outcome__in=within).count() == 1
    statement = str(Run.objects.filter(agent__in=[odd, "x"]).query.sql_with_params()[0])
    assert "it's" not in statement
