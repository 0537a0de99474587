"""The plots on their pages: lanes with waits, slots, spending against its limit, weeks, each as a table."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from runs.core.states import NoticeKind
from runs.models import Notice, Project, Run, Settings
from tests import make
from tests.fakes import START, World
from tests.web import board_rows as rows
from tests.web.browsing import OpenPage
from tests.web.looking import looks
from tests.web.people import text_of


def filled(world: World) -> Project:
    rows.a_tick(world)
    Settings.current()
    Settings.objects.update(day_tokens_limit=4_000)
    project = rows.a_tracked_project("billing", day_cost_limit=5)
    today = START.date().isoformat()
    for number in range(8):
        make.a_run(
            project, str(number), slot=1 + number % 3, outcome=("succeeded", "died", "stopped")[number % 3],
            requested_at=START - timedelta(hours=3 * number + 1),
            started_at=START - timedelta(hours=3 * number + 1), ended_at=START - timedelta(hours=2.5 * number),
            took_seconds=600 * (number + 1), spent_days=[[today, 500, "1.5"]], spent_on=START.date(),
        )  # fmt: skip
    run = make.a_run(project, "9", slot=4, started_at=START - timedelta(hours=2))
    told = rows.tell(world, "waits", NoticeKind.RUN_WAITS, run=run)
    Notice.objects.filter(pk=told).update(at=START - timedelta(hours=1))
    return project


@pytest.mark.django_db
def test_the_last_day_is_shown_as_lanes_slots_and_tables(
    client: Any, operator: User, world: World, django_assert_num_queries: Any
) -> None:
    client.force_login(operator)
    assert "Nothing ran" in text_of(client.get("/history/night"))
    project = filled(world)
    with django_assert_num_queries(2 + 4 + 2 + 2):
        page = text_of(client.get("/history/night"))
    assert 'aria-label="Slot 4: 1 run"' in page
    assert 'class="wait"' in page
    assert "billing #9: working" in page
    assert "limit 4 k" in page
    assert "Runs as a table" in page
    shown = text_of(client.get(f"/projects/{project.pk}/"))
    for said in ("Success by week", "Weeks as a table", "limit $5.00", "$12.00"):
        assert said in shown


@pytest.mark.django_db
def test_a_held_run_is_shown_and_takes_no_slot_meanwhile(
    client: Any, operator: User, world: World
) -> None:
    """With one slot: a run is held after an hour, another one runs, then the first goes on."""
    Settings.current()
    Settings.objects.update(session_cap=1)
    client.force_login(operator)
    project = rows.a_tracked_project("billing")
    first = make.a_run(project, "7", started_at=START - timedelta(hours=10))
    held = {"state": "held", "slot": None, "held_at": START - timedelta(hours=9)}
    Run.objects.filter(pk=first.pk).update(**held)
    make.a_run(
        project, "8", slot=1, outcome="died", started_at=START - timedelta(hours=9),
        ended_at=START - timedelta(hours=2),
    )  # fmt: skip
    _at(world, 9, NoticeKind.RUN_HELD, first)
    page = text_of(client.get("/history/night"))
    for said in ('aria-label="Slot not known: 1 run"', "billing #7: held", "at most 1 of 1"):
        assert said in page
    _at(world, 1, NoticeKind.RUN_RESUMED, first)
    Run.objects.filter(pk=first.pk).update(state="working", slot=1, held_at=None)
    page = text_of(client.get("/history/night"))
    assert 'aria-label="Slot 1: 2 runs"' in page
    assert 'aria-label="Slot not known: 1 run"' in page
    assert "at most 1 of 1" in page


def _at(world: World, hours: float, kind: NoticeKind, run: Run) -> None:
    told = rows.tell(world, "x", kind, run=run)
    Notice.objects.filter(pk=told).update(at=START - timedelta(hours=hours))


@pytest.mark.django_db(transaction=True)
def test_history_and_plots_are_accessible_and_fit(
    open_page: OpenPage, operator: User, world: World
) -> None:
    project = filled(world)
    wrong: list[object] = []
    page = open_page("/history/night", operator)
    for name, address in (
        ("night", "/history/night"),
        ("history", "/history/?least=much"),
        ("plots", f"/projects/{project.pk}/"),
        ("badge", f"/projects/{project.pk}/badge"),
    ):
        page.goto(address)
        page.evaluate(
            "document.querySelectorAll('details.reveal').forEach(one => { one.open = true; })"
        )
        wrong += looks(page, name)
    assert wrong == []
