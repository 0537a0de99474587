"""Which runs fit, in which order, page after page; and that each page is found by an index."""

from __future__ import annotations

import itertools
import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs.core.states import Outcome
from runs.history import finding
from runs.history.filters import Place, Sort, Wanted
from runs.lifecycle import outcomes
from runs.models import Run
from tests import make
from tests.fakes import START, World

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]

NOW = START + timedelta(days=10)


def at(**later: float) -> Any:
    return START + timedelta(**later)


def keys(wanted: Wanted, place: Place | None = None, limit: int = 50) -> list[str]:
    return [run.issue_key for run in finding.page(wanted, place or Place(), NOW, limit).runs]


@pytest.fixture
def runs(world: World) -> list[Run]:
    """Two that work, a start that failed, and four that ended."""
    one, two = make.a_project("one"), make.a_project("two")
    ended = {"outcome": "succeeded", "started_by": "anna", "agent": "Claude", "model": "opus"}
    return [
        make.a_run(one, "a", ended_at=at(days=3), took_seconds=60, cost_usd=Decimal(2), **ended),
        make.a_run(two, "b", slot=2),
        make.a_run(two, "c", ended_at=at(days=1), took_seconds=600, **ended),
        make.a_run(one, "d", outcome="failed", started_at=None, ended_at=at(days=2)),
        make.a_run(one, "e", slot=3, agent="Codex", issue_title="Retry 100% of it"),
        make.a_run(
            one, "f", outcome="died", ended_at=at(days=2), took_seconds=60, cost_usd=Decimal("0.5"),
            agent_model="opus", branch="afk/odd", issue_title="Mend the _rest",
        ),
        make.a_run(two, "g", outcome="died", ended_at=at(days=2), took_seconds=5, cost_usd=Decimal(2)),
    ]  # fmt: skip


@pytest.mark.long
@pytest.mark.every_case
@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        (Sort.ENDED, "ebagfdc"),
        (Sort.ENDED_UP, "cdfgabe"),
        (Sort.STARTED, "gfedcba"),
        (Sort.STARTED_UP, "abcdefg"),
        (Sort.TOOK, "cfagdeb"),
        (Sort.TOOK_UP, "gafcdeb"),
        (Sort.COST, "gafdceb"),
        (Sort.COST_UP, "fagdceb"),
    ],
)
def test_pages_of_each_order_neither_miss_nor_repeat(
    runs: list[Run], sort: Sort, expected: str
) -> None:
    assert "".join(keys(Wanted(sort=sort))) == expected
    for limit in (1, 2, 3):
        found, place = "", Place(at=NOW)
        for _ in range(9):
            page = finding.page(Wanted(sort=sort), place, NOW, limit)
            found += "".join(run.issue_key for run in page.runs)
            if page.last is None:
                break
            place = Place(page.last, NOW)
        assert found == expected


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Wanted(outcome="died"), "fg"),
        (Wanted(outcome="active"), "be"),
        (Wanted(agent="Claude"), "ac"),
        (Wanted(agent="claud"), ""),
        (Wanted(model="opus"), "acf"),
        (Wanted(person="anna"), "ac"),
        (Wanted(text="RETRY 100%"), "e"),
        (Wanted(text="_rest"), "f"),
        (Wanted(text="odd"), "f"),
        (Wanted(text="#c"), "c"),
        (Wanted(since=at(days=2).date()), "adfg"),
        (Wanted(until=at(days=2).date()), "cdfg"),
        (Wanted(since=at(days=2).date(), until=at(days=2).date(), outcome="died"), "fg"),
        (Wanted(least=Decimal(1)), "ag"),
        (Wanted(most=Decimal(1)), "f"),
        (Wanted(least=Decimal("0.5"), most=Decimal("0.5")), "f"),
    ],
)
def test_filters_leave_out_what_does_not_fit(
    runs: list[Run], wanted: Wanted, expected: str
) -> None:
    assert "".join(sorted(keys(wanted))) == expected


def test_a_project_is_a_filter(runs: list[Run]) -> None:
    assert sorted(keys(Wanted(project=runs[0].project_id))) == ["a", "d", "e", "f"]


def test_a_list_stays_as_it_was_when_its_reader_opened_it(runs: list[Run], world: World) -> None:
    before = keys(Wanted(), limit=3)
    opened, rest = NOW, keys(Wanted(), Place(runs[0].pk, NOW))
    Run.objects.filter(issue_key="b").update(
        outcome="died", state="ended", ended_at=NOW + timedelta(hours=1), took_seconds=1
    )
    make.a_run(runs[0].project, "z", slot=9, requested_at=NOW + timedelta(hours=1))
    make.a_run(
        runs[0].project, "y", outcome="died", requested_at=NOW, ended_at=NOW + timedelta(hours=2)
    )
    later = NOW + timedelta(days=1)
    found = finding.page(Wanted(), Place(at=opened), later, 4)
    assert [run.issue_key for run in found.runs] == ["y", *before]  # begun by then, and new with it
    assert keys(Wanted(), Place(runs[0].pk, opened)) == rest
    assert [run.issue_key for run in finding.page(Wanted(), Place(), later).runs][:4] == list(
        "zeyb"
    )
    assert finding.news(Wanted(), opened) == 3
    assert finding.news(Wanted(outcome="active"), opened) == 1
    assert finding.news(Wanted(), later) == 0


def test_a_page_behind_a_run_that_is_gone_is_the_first(runs: list[Run]) -> None:
    found = finding.page(Wanted(), Place(10_000), NOW)
    assert (found.is_lost, len(found.runs)) == (True, 7)


def test_all_runs_come_some_at_a_time(runs: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "AT_ONCE", 3)
    pieces = list(finding.every(Wanted(), NOW))
    assert [len(piece) for piece in pieces] == [3, 3, 1]
    assert [run.issue_key for run in itertools.chain(*pieces)] == list("ebagfdc")


def test_all_runs_come_once_though_one_is_removed_meanwhile(
    runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finding, "AT_ONCE", 2)
    found: list[str] = []
    for piece in finding.every(Wanted(), NOW):
        found += [run.issue_key for run in piece]
        Run.objects.filter(pk=piece[-1].pk).delete()
    assert found == list("ebagfdc")


@pytest.mark.parametrize(("sort", "expected"), [(Sort.STARTED, "dcba"), (Sort.STARTED_UP, "fg")])
def test_in_the_order_of_starts_a_page_is_known_without_its_run(
    runs: list[Run], sort: Sort, expected: str
) -> None:
    gone = runs[4].pk
    runs[4].delete()
    found = finding.page(Wanted(sort=sort), Place(gone), NOW)
    assert "".join(run.issue_key for run in found.runs) == expected
    assert not found.is_lost


def test_how_long_a_run_took_is_stored_with_its_outcome(world: World) -> None:
    run = make.a_run(make.a_project(), "7", rested_seconds=30, started_at=world.clock.now)
    unstarted = make.a_run(run.project, "8", slot=2, started_at=None)
    world.clock.forward(seconds=100)
    assert outcomes.record(world.lab, run, Outcome.DIED, "x")
    outcomes.record(world.lab, unstarted, Outcome.FAILED, "x")
    assert (run.took_seconds, unstarted.took_seconds) == (70, None)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="asks SQLite for its plan")
@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        (Wanted(), "run_ended"),
        (Wanted(sort=Sort.ENDED_UP), "run_ended"),
        (Wanted(since=at(days=1).date()), "run_ended"),
        (Wanted(project=1), "run_ended_project"),
        (Wanted(outcome="died"), "run_ended_how"),
        (Wanted(agent="Claude"), "run_ended_agent"),
        (Wanted(person="anna"), "run_ended_by"),
        (Wanted(sort=Sort.TOOK), "run_by_took"),
        (Wanted(sort=Sort.COST_UP), "run_by_cost"),
        (Wanted(sort=Sort.COST, least=Decimal(1)), "run_by_cost"),
    ],
)
@pytest.mark.parametrize("is_later", [False, True])
def test_each_order_and_filter_is_read_by_an_index_in_order(
    runs: list[Run], wanted: Wanted, index: str, is_later: bool
) -> None:
    place = Place(runs[0].pk, NOW) if is_later else Place()
    with CaptureQueriesContext(connection) as asked:
        finding.page(wanted, place, NOW)
    plans = []
    for one in asked.captured_queries:
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {one['sql']}")
            plans.append(" | ".join(row[3] for row in cursor.fetchall()))
    known = [plan for plan in plans if re.search(rf"USING (COVERING )?INDEX {index}\b", plan)]
    assert known, plans
    # The rows of one page are sorted again, and nothing else.
    assert all(plan.count("TEMP B-TREE") <= 1 for plan in known), known
    assert not any(re.search(r"SCAN runs_run(?! USING)", plan) for plan in plans), plans
