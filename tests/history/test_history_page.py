"""The page *History*: what it shows of its address, and that it does not move under its reader."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from runs.core.states import NoticeKind
from runs.history import finding
from runs.models import Run
from tests import make
from tests.api.program import Program
from tests.fakes import START, World
from tests.web import board_rows as rows
from tests.web.people import text_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def anna(client: Client, operator: Any) -> Client:
    client.force_login(operator)
    return client


def titles(client: Client, query: str = "") -> list[str]:
    return re.findall(r"</span> (T-\w+)</a>", text_of(client.get(f"/history/{query}")))


@pytest.mark.long
def test_it_shows_narrows_sorts_and_pages(anna: Client, world: World) -> None:
    one, two = rows.a_tracked_project("one"), rows.a_tracked_project("two")
    for number in range(finding.PAGE + 10):
        make.a_run(one, str(number + 1), outcome="succeeded", issue_title=f"T-{number}")
    make.a_run(
        two, "1", outcome="died", issue_title="T-dead", cost_usd=Decimal("3.5"), took_seconds=9,
        agent="Claude Code", agent_model="opus",
    )  # fmt: skip
    make.a_run(two, "2", issue_title="T-live")
    assert titles(anna)[:2] == ["T-live", "T-dead"]
    assert titles(anna, f"?project={two.pk}&outcome=died") == ["T-dead"]
    assert titles(anna, "?sort=-cost&least=1") == ["T-dead"]
    page = text_of(anna.get(f"/history/?project={one.pk}&sort=started"))
    assert page.count("T-") == finding.PAGE
    older = re.search(r'rel="next" href="/history/([^"]+)"', page)
    assert older is not None
    rest = text_of(anna.get("/history/" + html.unescape(older[1])))
    assert rest.count("T-") == 10
    assert "First page" in rest
    dead = text_of(anna.get("/history/?text=T-dead"))
    for said in ("$3.50", "Claude Code", "opus", "“T-dead”"):
        assert said in dead
    assert 'aria-sort="descending"' in dead


def test_what_is_wrong_is_told_at_its_field_and_left_out(anna: Client, world: World) -> None:
    make.a_run(rows.a_tracked_project(), "7", outcome="died", issue_title="T-a")
    page = text_of(anna.get("/history/?least=much&project=99&text=T&after=4711"))
    assert 'aria-describedby="wrong-least"' in page
    assert "Write an amount in dollars, like 2.50." in page
    assert 'value="much"' in page
    assert "There is no such project." in page
    assert "The run where this page began is gone; here is the first page." in page
    assert "T-a" in page
    assert titles(anna, "?text=T") == ["T-a"]


def test_empty_lists_say_what_to_do(anna: Client, world: World) -> None:
    assert "There has been no run yet" in text_of(anna.get("/history/"))
    assert "Show all runs" in text_of(anna.get("/history/?text=nothing"))


@pytest.mark.long
@pytest.mark.parametrize("count", [1, 40])
def test_it_costs_a_fixed_number_of_queries(
    anna: Client, world: World, count: int, django_assert_num_queries: Any
) -> None:
    rows.full_board(world, count)
    anna.get("/history/")
    with django_assert_num_queries(2 + 4 + 2 + 2):  # who asks, the frame, the form, the rows
        assert anna.get("/history/").status_code == 200


def test_addresses_of_the_list_of_runs_lead_here(anna: Client, world: World) -> None:
    answer = anna.get("/runs/?outcome=died&project=3&before=7")
    assert answer["Location"] == "/history/?outcome=died&project=3"
    assert anna.get("/runs/")["Location"] == "/history/"
    assert Client().get("/history/")["Location"].startswith("/login/")


def test_a_page_that_is_read_does_not_move_and_tells_of_news(anna: Client, world: World) -> None:
    rows.a_tick(world)
    project = rows.a_tracked_project()
    run = make.a_run(project, "7", issue_title="T-live")
    page = text_of(anna.get("/history/"))
    live, tag = re.search(r'hx-get="([^"]+)"[^>]* hx-ptag="([^"]+)"', page).groups()  # type: ignore[union-attr]
    live, headers = html.unescape(live), {"HX-Request": "true", "HX-PTag": tag}
    assert anna.get(live, headers=headers).status_code == 304
    rows.tell(world, "something else", NoticeKind.PROJECT_READY, project=project)
    assert "history-rows" not in text_of(anna.get(live, headers=headers))
    world.clock.forward(minutes=5)
    now = world.clock.now
    Run.objects.filter(pk=run.pk).update(outcome="died", state="ended", ended_at=now)
    make.a_run(project, "8", outcome="died", issue_title="T-new", requested_at=now, ended_at=now)
    rows.tell(world, "ended", NoticeKind.RUN_ENDED, run=run)
    answer = text_of(anna.get(live, headers=headers))
    assert "2 runs started or ended since this list was made." in answer
    assert "T-live" in answer
    assert '<span class="pill bad">died</span>' in answer
    assert "T-new" not in answer
    assert titles(anna) == ["T-new", "T-live"]


@pytest.mark.long
def test_programs_ask_with_the_same_filters(world: World, operator: Any) -> None:
    project = make.a_project()
    for number in range(3):
        make.a_run(
            project, str(number), outcome="died", took_seconds=number, agent="Claude",
            ended_at=START + timedelta(days=number), cost_usd=Decimal(number),
        )  # fmt: skip
    make.a_run(project, "9")
    world.clock.forward(days=5)
    program = Program.of(operator, "look")

    def found(**query: Any) -> list[str]:
        return [one["issue"] for one in program.get("/runs", **query).json()["items"]]

    assert found() == ["9", "2", "1", "0"]
    assert found(sort="took", agent="Claude") == ["0", "1", "2"]
    assert found(sort="-ended") == ["9", "2", "1", "0"]
    assert found(least=1, most=1.5) == ["1"]
    assert found(since="2026-11-22", until="2026-11-22") == ["1"]
    first = program.get("/runs", sort="-cost", limit=2).json()
    assert first["next"] is not None
    rest = program.get("/runs", sort="-cost", limit=2, cursor=first["next"]).json()
    assert [one["issue"] for one in first["items"] + rest["items"]] == ["2", "1", "0", "9"]
    # A run that ends meanwhile stands where it stood, and a page whose run is gone is no first page.
    world.clock.forward(minutes=1)
    Run.objects.filter(issue_key="9").update(
        outcome="died", state="ended", ended_at=world.lab.now(), cost_usd=Decimal(9)
    )
    assert program.get("/runs", sort="-cost", limit=2, cursor=first["next"]).json() == {
        **rest, "items": [rest["items"][0], program.get("/runs", limit=1).json()["items"][0]]
    }  # fmt: skip
    newest = program.get("/runs", limit=2).json()
    Run.objects.filter(issue_key__in=["1", "2"]).delete()
    lost = program.get("/runs", sort="-cost", cursor=first["next"])
    assert (lost.status_code, "gone" in lost.json()["fields"]["cursor"]) == (422, True)
    left = program.get("/runs", cursor=newest["next"]).json()["items"]
    assert [one["issue"] for one in left] == ["0"]
    for wrong in ({"sort": "id"}, {"least": -1}, {"since": "x"}, {"text": "x" * 201}):
        assert program.get("/runs", **wrong).status_code == 422
