"""The numbers behind the plots over the API, the same as the tables of the pages."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from runs.models import Run
from tests import make
from tests.api.program import Program
from tests.fakes import START, World
from tests.history.test_plots import filled
from tests.web import board_rows as rows
from tests.web.people import text_of

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


@pytest.fixture
def program(operator: User, world: World) -> Program:
    return Program.of(operator)


def asked(program: Program, path: str) -> Any:
    answer = program.get(path)
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_each_plot_has_its_table(program: Program, world: World) -> None:
    project = filled(world)
    night = asked(program, "/plots/night")
    waiting = next(one for one in night["spans"] if one["slot"] == 4)
    assert waiting["run"] == Run.objects.get(issue_key="9").pk
    assert waiting["until"] is None
    assert waiting["waits"] == [{"since": _told(hours=1), "until": None}]
    slots = asked(program, "/plots/slots")
    assert slots["most"] == max(step["slots"] for step in slots["steps"])
    spending = asked(program, "/plots/spending")
    assert spending["day_tokens_limit"] == 4000
    assert spending["days"][0] == {
        "day": START.date().isoformat(), "tokens": 4000, "cost_usd": 12.0, "runs": 8,
    }  # fmt: skip
    own = asked(program, f"/projects/{project.pk}/plots/spending")
    assert (own["day_cost_limit"], own["days"]) == (5.0, spending["days"])
    weeks = asked(program, f"/projects/{project.pk}/plots/weeks")["weeks"]
    assert len(weeks) == 12
    assert sum(week["runs"] for week in weeks) == 6  # those that were stopped do not count
    assert weeks[-1] == {
        "monday": weeks[-1]["monday"], "runs": 0, "good": 0, "success_percent": None,
        "median_minutes": None,
    }  # fmt: skip
    assert program.get("/projects/987654321/plots/weeks").status_code == 404


def test_what_nobody_told_is_null(program: Program, world: World) -> None:
    days = asked(program, "/plots/spending")["days"]
    assert len(days) == 14
    assert asked(program, "/plots/night")["spans"] == []


def test_the_plots_of_a_project_follow_what_they_show(anna: Client, world: World) -> None:
    project = filled(world)
    at = f"/projects/{project.pk}/"
    assert 'data-asks="own"' in text_of(anna.get(at))
    tag = anna.get(f"{at}live")["HX-PTag"]
    ask = {"HX-Request": "true", "HX-PTag": tag}
    assert anna.get(f"{at}live", headers=ask).status_code == 304
    # Another look of the worker changes the page, and nothing that its plots show.
    world.clock.forward(seconds=1)
    rows.a_tick(world)
    answer = anna.get(f"{at}live", headers=ask)
    assert answer.status_code == 200
    assert 'hx-target="#project-plots"' not in text_of(answer)
    make.a_run(project, "10", outcome="died", ended_at=world.clock.now)
    world.clock.forward(seconds=1)
    rows.a_tick(world)
    changed = anna.get(f"{at}live", headers=ask)
    assert 'hx-target="#project-plots"' in text_of(changed)


def _told(**ago: float) -> str:
    return f"{START - timedelta(**ago):%Y-%m-%dT%H:%M:%S}Z"
