"""Refreshes and pushes: 304 when unchanged, the very parts of the page when not."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from runs.core.states import NoticeKind
from runs.models import Notice, Project, Run
from runs.overview import queries
from runs.run_pages import tabs
from runs.web import fragments
from tests import make
from tests.fakes import World
from tests.web import board_rows as rows
from tests.web.people import text_of

pytestmark = pytest.mark.django_db

AUTH = 2  # session and user
TABS = {
    "terminal": tabs.TERMINAL,
    "changes": tabs.CHANGES,
    "prompt": tabs.PROMPT,
    "raw": tabs.RAW,
    "conversation": tabs.TALK,
    "checks": tabs.CHECKS,
}


@pytest.mark.row("LAB-130", level="contract")
def test_an_unchanged_page_refreshes_with_304_and_few_queries(
    anna: Client, world: World, django_assert_num_queries: Any
) -> None:
    project = rows.full_board(world, 3)
    for page in rows.pages(project)[:2] + rows.pages(project)[4:]:
        tag = re.search(r'hx-ptag="([^"]+)"', text_of(anna.get(page)))
        assert tag is not None
        headers = {"HX-Request": "true", "HX-PTag": tag[1]}
        anna.get(f"{page}live", headers=headers)  # notes that it is open, for the next 40 seconds
        with django_assert_num_queries(AUTH + 2):
            answer = anna.get(f"{page}live", headers=headers)
        assert (answer.status_code, answer.content) == (304, b"")
        assert answer["Cache-Control"] == "no-store"


@pytest.mark.row("LAB-130", level="contract")
def test_a_changed_page_refreshes_with_its_parts_and_a_new_tag(anna: Client, world: World) -> None:
    project = rows.full_board(world, 1)
    for page, topic in (("/", "overview"), (f"/projects/{project.pk}/", f"project:{project.pk}")):
        before = anna.get(f"{page}live")
        rows.tell(world, "something new", NoticeKind.PROJECT_READY, project=project)
        answer = anna.get(f"{page}live", headers={"HX-PTag": before["HX-PTag"]})
        assert answer.status_code == 200
        assert answer["HX-PTag"] != before["HX-PTag"]
        assert "something new" in text_of(answer)
        targets = set(re.findall(r'hx-target="#([\w-]+)" hx-swap="outerMorph"', text_of(answer)))
        pushed = set(fragments.regions(topic, True) or {})
        asked = fragments.ASKED.get(topic.partition(":")[0], {})
        inner = {fragments.WITHIN.get(name) for name in asked}
        assert targets == pushed - inner | set(asked)


@pytest.mark.row("LAB-130", level="contract")
def test_a_look_of_the_worker_changes_its_age_and_nothing_else_of_a_quiet_page(
    world: World,
) -> None:
    """What an idle page costs: one small part for each look, where all of it was sent before."""
    project = rows.a_tracked_project()
    rows.a_tick(world)
    for topic in ("overview", "needs", "chrome", "settings", f"project:{project.pk}"):
        before = fragments.pushed(topic, True)
        world.clock.forward(seconds=30)
        rows.a_tick(world)
        after = fragments.pushed(topic, True)
        assert before is not None
        assert after is not None
        assert after[1] == fragments.mark(topic)
        assert (after[1].rows, after[1].looked != before[1].looked) == (before[1].rows, True)
        changed = {name for name, html in after[0].items() if before[0][name] != html}
        times = {"activity", "settings", "turns"}  # they show moments of their own
        assert changed - times == {"tick-age"}
        assert len(after[0]["tick-age"]) < 200


def test_only_what_a_page_of_ours_asked_for_is_compressed(anna: Client, world: World) -> None:
    rows.full_board(world, 2)
    takes = {"Accept-Encoding": "gzip"}
    asked = anna.get("/live", headers={**takes, "HX-Request": "true"})
    assert asked["Content-Encoding"] == "gzip"
    whole = anna.get("/live", headers=takes)
    assert "Content-Encoding" not in whole.headers
    assert len(asked.content) < len(whole.content) / 3
    for site, is_ours in (("same-origin", True), ("cross-site", False), ("same-site", False)):
        page = anna.get("/", headers={**takes, "Sec-Fetch-Site": site})
        assert ("Content-Encoding" in page.headers) is is_ours


@pytest.mark.long
def test_every_region_is_an_element_of_its_page_with_that_id(anna: Client, world: World) -> None:
    project = rows.full_board(world, 1)
    run = Run.objects.filter(outcome="").get()
    for page, topic in (
        ("/", "overview"),
        (f"/projects/{project.pk}/", f"project:{project.pk}"),
        (f"/runs/{run.pk}/", f"run:{run.pk}"),
        *((f"/runs/{run.pk}/{at}/", f"{tab}:{run.pk}") for at, tab in TABS.items()),
        ("/settings/", "settings"),
        ("/audit/", "audit"),
        (f"/projects/{project.pk}/watch/", f"watches:{project.pk}"),
    ):
        shown = text_of(anna.get(page))
        regions = fragments.regions(topic, True, None)
        assert regions is not None
        for name, html in regions.items():
            assert re.match(rf"\s*<\w+ id=\"{name}\"", html), name
            assert shown.count(f'id="{name}"') == 1, name


def test_a_push_about_a_live_run_asks_neither_tmux_nor_git(world: World) -> None:
    run = make.a_run(rows.a_tracked_project(), "7", worktree="/nowhere", fork_point="abc")
    world.sessions.broken = "tmux must not be asked"
    for tab in tabs.ALL:
        assert "run-head" in (fragments.regions(f"{tab}:{run.pk}", True) or {})
    assert world.repos.asked == []


def test_each_tab_of_a_run_has_its_address_its_mark_and_the_acts(
    anna: Client, world: World
) -> None:
    run = make.a_run(rows.a_tracked_project(), "7")
    world.live(run)
    for at, tab in {"": tabs.STORY, **{f"{at}/": tab for at, tab in TABS.items()}}.items():
        page = text_of(anna.get(f"/runs/{run.pk}/{at}"))
        named = re.findall(r'<a href="([^"]+)" aria-current="page">', page.partition('"tabs"')[2])
        assert named == [f"/runs/{run.pk}/{at}"]
        assert f'hx-ws:connect="/ws/{tab}:{run.pk}"' in page
        assert page.count('id="stop"') == 1
        own = [
            one
            for one in ("steps", "terminal", "changes", "prompt", "raw")
            if f'id="{one}"' in page
        ]
        assert own == {"": ["steps"], "conversation/": [], "checks/": []}.get(at, [at[:-1]])


def test_pushed_parts_hold_no_form_and_no_token(world: World) -> None:
    project = rows.full_board(world, 2)
    for topic in (
        "overview",
        f"project:{project.pk}",
        *(f"{tab}:{Run.objects.filter(outcome='').first().pk}" for tab in tabs.ALL),
        *("settings", "audit", f"watches:{project.pk}"),
    ):
        html = "".join((fragments.regions(topic, True) or {}).values())
        assert "<form" not in html
        assert "csrf" not in html


def test_what_is_gone_has_no_regions(world: World) -> None:
    assert fragments.regions("project:987654321", True) is None
    assert fragments.regions("run:987654321", True) is None
    assert fragments.regions("nonsense", True) is None


def test_a_notice_concerns_the_pages_that_show_it(world: World) -> None:
    project = rows.a_tracked_project()
    run = make.a_run(project, "7")
    rows.tell(world, "first output", run=run)
    assert fragments.topics_of(Notice.objects.get()) == {
        *("overview", "needs", "chrome", "settings"),
        *(f"project:{project.pk}", f"issues:{project.pk}"),
        *(f"{tab}:{run.pk}" for tab in tabs.ALL),
    }


@pytest.mark.skipif(connection.vendor != "sqlite", reason="asks SQLite for its plan")
def test_no_query_of_the_overview_reads_through_all_runs(world: World) -> None:
    rows.full_board(world, 2)
    with CaptureQueriesContext(connection) as asked:
        queries.overview(world.lab)
    plans = []
    for query in asked.captured_queries:
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {query['sql']}")
            plans += [row[3] for row in cursor.fetchall()]
    assert any("run_of_issue" in step for step in plans)
    assert any("notice_news" in step for step in plans), plans
    assert [step for step in plans if step == "SCAN runs_run"] == []


@pytest.mark.long
@pytest.mark.parametrize("count", [1, 50])
def test_pages_cost_a_fixed_number_of_queries(
    anna: Client, world: World, count: int, django_assert_num_queries: Any
) -> None:
    project = rows.full_board(world, count)
    run = Run.objects.filter(outcome="").first()
    ended = Run.objects.exclude(outcome="").first()
    assert run is not None
    assert ended is not None
    costs = {
        # Of these one: what she has hidden.
        "/": 6,
        "/needs/": 5,
        # Of these one: is what was heard of its tracker old? One: its watch session; one: its groups.
        # Three: its plots. One: its head.
        f"/projects/{project.pk}/": 14,
        # Of these two: its timeline.
        f"/runs/{run.pk}/": 7,
        # Of these three: who went on with it, what came after it, and is it being discarded?
        f"/runs/{ended.pk}/": 10,
        **{f"/runs/{run.pk}/{tab}/": 5 for tab in ("terminal", "changes")},
        **{f"/runs/{run.pk}/{tab}/": 6 for tab in ("prompt", "raw")},
        **{f"/runs/{ended.pk}/{tab}/": 8 for tab in ("terminal", "changes")},
        **{f"/runs/{ended.pk}/{tab}/": 9 for tab in ("prompt", "raw")},
        "/projects/new": 4,
        # Of these one: what new projects begin with; one: which versions of agents were tried.
        "/settings/": 9,
    }
    anna.get("/")  # notes that she is here, for the next minutes
    anna.get(f"/runs/{ended.pk}/")  # notes that somebody has opened it, once
    for page, queries_of_page in costs.items():
        with django_assert_num_queries(AUTH + queries_of_page):
            assert anna.get(page).status_code == 200


@pytest.mark.row("LAB-130", level="contract")
@pytest.mark.parametrize(
    "page",
    ["/audit/", "/people/", "/history/night", "/projects/{}/parked/", "/projects/{}/waiting"],
)
def test_a_list_refreshes_with_304_until_something_is_told(
    anna: Client, world: World, page: str
) -> None:
    project = rows.full_board(world, 1)
    address = page.format(project.pk)
    shown = text_of(anna.get(f"{address}?page=1"))
    tag, live = re.search(r'hx-get="([^"]+)"[^>]* hx-ptag="([^"]+)"', shown).groups()[::-1]  # type: ignore[union-attr]
    assert live == f"{address.removesuffix('/')}/live?page=1"
    headers = {"HX-Request": "true", "HX-PTag": tag}
    assert anna.get(live, headers=headers).status_code == 304
    rows.tell(world, "something new", NoticeKind.PROJECT_READY, project=project, by="anna")
    answer = anna.get(live, headers=headers)
    for name in set(re.findall(r'hx-target="#([\w-]+)"', text_of(answer))):
        assert shown.count(f'id="{name}"') == 1, name
    assert answer["HX-PTag"] != tag
    assert len(re.findall("hx-target", text_of(answer))) > len(fragments.CHROME)
    again = {"HX-Request": "true", "HX-PTag": answer["HX-PTag"]}
    assert anna.get(live, headers=again).status_code == 304


def test_what_asks_git_or_a_tracker_is_not_asked_by_each_tick(anna: Client, world: World) -> None:
    project = rows.full_board(world, 1)
    for page in ("parked/", "waiting"):
        live = f"/projects/{project.pk}/{page.removesuffix('/')}/live"
        tag = anna.get(live)["HX-PTag"]
        rows.a_tick(world)
        world.clock.forward(seconds=1)
        rows.a_tick(world)
        answer = anna.get(live, headers={"HX-Request": "true", "HX-PTag": tag})
        assert answer.status_code == 200
        targets = re.findall(r'hx-target="#([\w-]+)"', text_of(answer))
        assert set(targets) == set(fragments.regions(f"issues:{project.pk}", True) or {})


def test_the_reasons_are_not_asked_for_again_by_a_run_of_another_project(
    anna: Client, world: World
) -> None:
    project = rows.full_board(world, 1)
    live = f"/projects/{project.pk}/waiting/live"
    tag = anna.get(live)["HX-PTag"]
    other = make.a_project("another")
    make.a_run(other, "900")
    rows.tell(world, "something new", NoticeKind.PROJECT_READY, project=other, by="anna")
    answer = anna.get(live, headers={"HX-Request": "true", "HX-PTag": tag})
    assert 'hx-target="#waiting"' not in text_of(answer)


@pytest.mark.django_db(transaction=True)
def test_a_project_is_shown_although_the_database_stores_nothing(
    anna: Client, world: World
) -> None:
    project = rows.full_board(world, 1)
    Project.objects.filter(pk=project.pk).update(tracker="memory", tracker_root="demo")

    def locked(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith('UPDATE "runs_project"'):
            raise OperationalError("database is locked")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(locked):
        assert anna.get(f"/projects/{project.pk}/").status_code == 200


def test_acts_are_pushed_to_nobody_who_may_only_look(world: World) -> None:
    rows.full_board(world, 1)
    assert fragments.regions("audit", True) is not None
    assert fragments.regions("audit", False) is None


def test_the_welcome_makes_way_for_the_first_project(anna: Client, world: World) -> None:
    assert 'hx-get="/live?first=1"' in text_of(anna.get("/"))
    assert "HX-Refresh" not in anna.get("/live?first=1").headers
    rows.a_tracked_project()
    assert anna.get("/live?first=1")["HX-Refresh"] == "true"
    assert 'hx-get="/live"' in text_of(anna.get("/"))
