"""Who did what: the page with its filters, and the same over the API."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from runs.core.states import NoticeKind
from runs.models import Notice, Project
from runs.timeline import audit
from runs.timeline.audit import Wanted
from tests import make
from tests.api.program import Program
from tests.fakes import World
from tests.web import board_rows as rows
from tests.web.people import text_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def acts(world: World) -> Project:
    """Four acts of two people, a day apart each, and what the product did itself."""
    rows.a_tick(world)
    project, other = make.a_project("demo"), make.a_project("other")
    run = make.a_run(project, "7")
    tell = rows.tell
    tell(world, "the product did this", NoticeKind.RUN_ENDED, run=run)
    tell(world, "run asked for", NoticeKind.RUN_STARTING, run=run, by="anna")
    world.clock.forward(days=1)
    tell(world, "issue <b>closed</b>", NoticeKind.ISSUE_CHANGED, project=project, by="bert")
    world.clock.forward(days=1)
    tell(world, "session cap changed", NoticeKind.SETTING_CHANGED, by="anna")
    world.clock.forward(days=1)
    tell(world, "pull request 4 merged", NoticeKind.PULL_MERGED, project=other, by="anna")
    rows.a_tick(world)
    return project


@pytest.fixture
def anna(client: Client, operator: User) -> Client:
    client.force_login(operator)
    return client


def shown(client: Client, query: str = "") -> list[str]:
    html = text_of(client.get("/audit/" + query))
    return re.findall(r'<tr id="act-\d+"><td class="wide">(.*?)</td>', html)


MERGED, CAP, CLOSED, STARTED = (
    "pull request 4 merged",
    "session cap changed",
    "issue &lt;b&gt;closed&lt;/b&gt;",
    "run asked for",
)


@pytest.mark.every_case
@pytest.mark.row("X-11", level="contract")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", [MERGED, CAP, CLOSED, STARTED]),
        ("?by=anna", [MERGED, CAP, STARTED]),
        ("?by=ann", []),
        ("?kind=issue.changed", [CLOSED]),
        ("?kind=nonsense", [MERGED, CAP, CLOSED, STARTED]),
        ("?text=MERGED", [MERGED]),
        ("?text=%237", [STARTED]),
        ("?since=2026-11-23", [MERGED, CAP]),
        ("?until=2026-11-22", [CLOSED, STARTED]),
        ("?since=2026-11-22&until=2026-11-22", [CLOSED]),
        ("?since=yesterday", [MERGED, CAP, CLOSED, STARTED]),
        ("?until=9999-12-31", [MERGED, CAP, CLOSED, STARTED]),
        ("?by=anna&kind=run.starting&since=2026-11-21&until=2026-11-21&text=asked", [STARTED]),
        ("?project=99", []),
        ("?before=99999999999999999999999", [MERGED, CAP, CLOSED, STARTED]),
    ],
)
def test_the_page_shows_what_is_asked_for(
    anna: Client, acts: Project, query: str, expected: list[str]
) -> None:
    assert shown(anna, query) == expected


def test_a_project_is_a_filter_and_nonsense_is_said(anna: Client, acts: Project) -> None:
    assert shown(anna, f"?project={acts.pk}") == [CLOSED, STARTED]
    html = text_of(anna.get("/audit/?since=yesterday&by=anna"))
    assert "since: Enter a valid date. It was left out." in html
    assert 'value="anna"' in html
    assert "Nobody did anything that fits" in text_of(anna.get("/audit/?by=zoe"))


def test_a_kind_reads_as_words_and_is_asked_for_as_programs_know_it(
    anna: Client, acts: Project
) -> None:
    html = text_of(anna.get("/audit/"))
    assert '<option value="person.in">person logged in</option>' in html
    assert '<option value="run.starting">run requested</option>' in html
    assert '<option value="issue.changed">issue changed</option>' in html


def test_an_empty_audit_says_what_will_be_there(anna: Client, world: World) -> None:
    assert "Nobody has done anything yet" in text_of(anna.get("/audit/"))


def test_pages_neither_miss_nor_repeat_what_happened_at_the_same_moment(
    anna: Client, world: World
) -> None:
    for number in range(120):
        rows.tell(world, f"act {number:03}", NoticeKind.ISSUE_CHANGED, by="anna")
    found: list[str] = []
    query = ""
    for _ in range(3):
        found += shown(anna, query)
        older = re.search(r'href="(\?[^"]*before=\d+)"', text_of(anna.get("/audit/" + query)))
        query = older[1].replace("&amp;", "&") if older else ""
    assert found == [f"act {number:03}" for number in reversed(range(120))]
    assert query == ""


def test_paging_goes_on_after_an_act_that_is_gone(world: World) -> None:
    for number in range(3):
        world.clock.forward(seconds=1)
        rows.tell(world, str(number), NoticeKind.ISSUE_CHANGED, by="anna")
    last = Notice.objects.get(text="1")
    last_id = last.pk
    last.delete()
    assert [act.text for act in audit.acts(Wanted(before=last_id), 5)] == ["0"]


@pytest.mark.row("X-10", level="contract")
def test_only_those_who_may_act_see_it(
    client: Client, anna: Client, viewer: User, acts: Project
) -> None:
    vera = Client()
    assert vera.get("/audit/")["Location"].startswith("/login/")
    vera.force_login(viewer)
    answer = vera.get("/audit/")
    assert answer.status_code == 403
    assert "shown to those who may act" in text_of(answer)
    assert "/audit/" not in text_of(vera.get("/settings/"))
    assert "/audit/" in text_of(anna.get("/settings/"))
    assert anna.post("/audit/").status_code == 405


@pytest.mark.parametrize("count", [1, 50])
def test_it_costs_a_fixed_number_of_queries(
    anna: Client, world: World, acts: Project, count: int, django_assert_num_queries: Any
) -> None:
    for number in range(count):
        rows.tell(world, f"act {number}", NoticeKind.ISSUE_CHANGED, project=acts, by="anna")
    anna.get("/audit/")
    with django_assert_num_queries(7):
        assert anna.get("/audit/").status_code == 200


@pytest.mark.skipif(connection.vendor != "sqlite", reason="asks SQLite for its plan")
@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        (Wanted(), "notice_act"),
        (Wanted(by="anna"), "notice_act_by"),
        (Wanted(kind="pull.merged"), "notice_act_kind"),
        (Wanted(project=1), "notice_act_project"),
    ],
)
def test_each_filter_has_an_index_that_is_in_order(
    world: World, wanted: Wanted, index: str
) -> None:
    with CaptureQueriesContext(connection) as asked:
        audit.acts(wanted, 51)
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {asked.captured_queries[0]['sql']}")
        plan = " | ".join(row[3] for row in cursor.fetchall())
    assert re.search(rf"USING INDEX {index}\b", plan), plan
    assert "TEMP B-TREE" not in plan


def test_programs_read_the_same(world: World, acts: Project, operator: User, viewer: User) -> None:
    program = Program.of(operator, "look")
    Notice.objects.filter(text__startswith="token").delete()  # its making is an act too
    first = program.get("/audit?limit=3").json()
    assert [one["text"] for one in first["items"]] == [
        "pull request 4 merged",
        "session cap changed",
        "issue <b>closed</b>",
    ]
    rest = program.get(f"/audit?limit=3&cursor={first['next']}").json()
    assert ([one["by"] for one in rest["items"]], rest["next"]) == (["anna"], None)
    query = "/audit?by=anna&kind=pull.merged&since=2026-11-24&until=2026-11-24"
    assert len(program.get(query).json()["items"]) == 1
    for wrong in ("?kind=x", "?since=x", "?person=anna", "?limit=999"):
        assert program.get("/audit" + wrong).status_code == 422
    refused = Program.of(viewer, "look").get("/audit")
    assert (refused.status_code, refused.json()["code"]) == (403, "not_allowed")


def test_what_an_agent_told_is_in_the_api(world: World, operator: User) -> None:
    run = make.a_run(make.a_project(), "7", agent_state="working", turns=4, cost_usd="0.125")
    other = make.a_run(run.project, "8", slot=2)
    program = Program.of(operator)
    told = program.get(f"/runs/{run.pk}").json()["told"]
    assert (told["state"], told["turns"], told["cost_usd"]) == ("working", 4, 0.125)
    assert told["tokens_out"] is None
    by_id = {one["id"]: one["told"] for one in program.get("/runs").json()["items"]}
    assert by_id[other.pk]["state"] is None
    assert by_id[other.pk]["cost_usd"] is None


def test_a_day_is_a_whole_one(world: World, acts: Project) -> None:
    day = Notice.objects.get(text="session cap changed").at.date()
    assert len(audit.acts(Wanted(since=day, until=day), 9)) == 1
    assert audit.acts(Wanted(until=day - timedelta(days=9)), 9) == []
