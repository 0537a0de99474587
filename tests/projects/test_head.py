"""The head and the tabs that every page of a project has."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from runs.core.states import NoticeKind, ProjectState
from runs.models import Project
from runs.overview import board
from runs.projects import frame as frames
from runs.projects.head_rules import Facts, Kind, Remedy, held_up
from runs.web import fragments
from tests import make
from tests.fakes import START, World
from tests.web import board_rows as rows
from tests.web.people import text_of
from trackers.base import NewPull
from trackers.builtin import store

FINE = {"state": ProjectState.READY.value, "is_auto": True, "streak": 0, "is_streak_full": False}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param(
            {"streak": 3, "is_streak_full": True, "failed_at": START, "failed_issue": "7"},
            [(Kind.PAUSED, Remedy.RESET, START, "labsite", "issue 7")],
            id="three failures",
        ),
        pytest.param(
            {"streak": 3, "is_streak_full": True, "is_auto": False},
            [(Kind.PAUSED, Remedy.RESET, None, "labsite", "nothing would start")],
            id="three failures, off",
        ),
        pytest.param(
            {"is_stalled": True, "stalled_since": START},
            [(Kind.PAUSED, Remedy.RESUME, START, "labsite", "tracker gave no answer")],
            id="tracker away",
        ),
        pytest.param({"is_stalled": True, "is_auto": False}, [], id="tracker away, off"),
        pytest.param(
            {"has_tracker": False}, [(Kind.BLOCKED, Remedy.NONE, None, "", "no tracker")], id="bare"
        ),
        pytest.param(
            {"missing_agent": "Pi", "logged_out_agent": "Pi"},
            [(Kind.BLOCKED, Remedy.NONE, None, "", "Pi is not installed")],
            id="not installed",
        ),
        pytest.param(
            {"logged_out_agent": "Pi"},
            [(Kind.BLOCKED, Remedy.NONE, None, "", "logged out")],
            id="logged out",
        ),
        pytest.param(
            {"hold": "Pi: its limit is used up.", "limit": "The limit of money is reached."},
            [
                (Kind.BLOCKED, Remedy.TRY_AGAIN, None, "", "used up"),
                (Kind.BLOCKED, Remedy.NONE, None, "", "limit of money"),
            ],
            id="held, over its limit",
        ),
        pytest.param(
            {"checks": "No test command measures coverage."},
            [(Kind.BLOCKED, Remedy.SET_CHECKS, None, "", "measures coverage")],
            id="gates that prove nothing",
        ),
        pytest.param({"state": "cloning", "has_tracker": False}, [], id="not cloned"),
    ],
)
def test_a_head_says_what_holds_a_project_up(changed: Any, said: Any) -> None:
    found = held_up(Facts(**{**FINE, **changed}))
    assert len(found) == len(said)
    for one, (kind, remedy, since, by, words) in zip(found, said, strict=True):
        assert (one.kind, one.remedy, one.since, one.by) == (kind, remedy, since, by)
        assert words in one.why


def _routes(found: Any, before: str = "") -> list[str]:
    routes: list[str] = []
    for one in found:
        route = f"{before}{one.pattern}"
        if isinstance(one, URLResolver) and "api/" not in route:
            routes += _routes(one.url_patterns, route)
        elif isinstance(one, URLPattern) and "<int:project_id>/" in route:
            routes.append(route)
    return routes


# Not pages: what only changes something, answers a refresh or a program.
_NO_PAGES = {
    *("live", "frame", "start", "auto", "reset", "prove", "stop-all", "sessions", "retry"),
    "badge.svg",
}


def test_every_address_below_a_project_is_below_one_tab() -> None:
    found = _routes(get_resolver().url_patterns)
    placed = {frames.of_route(route) for route in found}
    assert placed == {"", *(one.key for one in frames.PLACES)}
    nowhere = [route for route in found if not frames.of_route(route)]
    below = {route.partition("<int:project_id>/")[2].partition("/")[0] for route in nowhere}
    assert below == _NO_PAGES
    parts = [part for one in frames.PLACES for part in one.parts]
    assert len(parts) == len(set(parts))


PAGES = {
    "": "Overview",
    "issues/": "Issues",
    "issues/new": "Issues",
    "waiting": "Issues",
    "pulls/": "Pull requests",
    "runs/": "Runs",
    "watch/": "Work that goes on by itself",
    "groups/": "Groups",
    "groups/new": "Groups",
    "workflows/": "Groups",
    "checks/": "Checks",
    "validation/": "Checks",
    "loops/": "Loops",
    "parked/": "Parked",
    "tracker/": "Settings",
    "badge": "Settings",
    "settings/": "Settings",
    "settings/limits/": "Settings",
}


@pytest.mark.django_db
def test_all_pages_have_the_same_head_and_tabs(anna: Client, world: World) -> None:
    project = rows.full_board(world, 1)
    first = Project.objects.get(pk=project.pk)
    ended = make.a_run(first, "3000", outcome="died", ended_at=START - timedelta(hours=1))
    Project.objects.filter(pk=project.pk).update(
        is_auto=True, streak=3, last_failure=ended, parked=4
    )
    store.create_pull(
        project.tracker_root, NewPull("afk/1", "main", "First", "", author="lab"), at=START
    )
    for page, tab in PAGES.items():
        text = text_of(anna.get(f"/projects/{project.pk}/{page}"))
        nav = re.search(r'<nav class="tabs" aria-label="Project">(.*?)</nav>', text, re.S)
        assert nav is not None, page
        assert len(re.findall("<a ", nav[1])) == len(frames.PLACES), page
        current = re.findall(r'aria-current="page">\s*([^<]*?)\s*<', nav[1])
        assert current == [tab], page
        counts = dict(re.findall(r'id="tab-(\w+)" class="count(?: bad)?">([^<]*)', nav[1]))
        assert counts["issues"] == "1", page
        assert (counts["pulls"], counts["runs"], counts["parked"]) == ("1", "1", "4"), page
        assert counts["auto"] == "paused", page
        for piece in ("3 runs in a row failed", "by labsite", "Resume", "1 ready to start"):
            assert piece in re.sub(r"\s+", " ", text), (page, piece)
        head = text[text.index('id="project-head"') :].partition("</div>")[0]
        assert ">idle<" not in head, page  # paused says more
        assert '<span class="dot bad"></span><span class="name">' in text, page
        assert len(re.findall("<h1", text)) == 1, page
        assert 'ws/chrome"' not in text, page


@pytest.mark.django_db
def test_what_cannot_start_is_nowhere_called_ready_to_start(anna: Client, world: World) -> None:
    project = rows.a_tracked_project()
    first, second = (rows.a_ready_issue(project, f"Issue {n}") for n in range(2))
    store.edit_issue(project.tracker_root, second, body=f"## Blocked by\n- #{first}", at=START)
    regions = fragments.regions(f"issues:{project.pk}", True) or {}
    assert "1 ready to start" in regions["project-head"]
    assert "1 blocked issue" in regions["project-head"]
    assert '"count">1' in regions["tab-issues"]
    assert "1 ready" in regions["nav-projects"]


@pytest.mark.django_db
def test_news_reach_the_head_of_every_page_without_a_reload(anna: Client, world: World) -> None:
    project = rows.a_tracked_project()
    at = f"/projects/{project.pk}/frame"
    before = anna.get(at)
    assert anna.get(at, headers={"HX-PTag": before["HX-PTag"]}).status_code == 304
    rows.a_ready_issue(project)
    rows.tell(world, "an issue", NoticeKind.ISSUE_CHANGED, project=project)
    after = text_of(anna.get(at, headers={"HX-PTag": before["HX-PTag"]}))
    assert 'hx-target="#tab-issues"' in after
    assert "1 ready to start" in after


@pytest.mark.django_db
@pytest.mark.parametrize("count", [1, 30])
def test_the_head_costs_one_query(world: World, count: int, django_assert_num_queries: Any) -> None:
    project = rows.full_board(world, count)
    picture = board.load(world.lab)
    with django_assert_num_queries(1):
        frame = frames.of(picture, project.pk)
        assert frame is not None
        frame.tabs("issues")


@pytest.mark.django_db
def test_runs_of_a_project_are_listed_below_its_tabs(anna: Client, world: World) -> None:
    mine, other = rows.a_tracked_project("mine"), rows.a_tracked_project("other")
    make.a_run(mine, "1", outcome="died", ended_at=START)
    make.a_run(other, "2", outcome="died", ended_at=START)
    text = text_of(anna.get(f"/projects/{mine.pk}/runs/?project={other.pk}&outcome=died"))
    assert "#1</span>" in text
    assert "#2</span>" not in text
    assert f'action="/projects/{mine.pk}/runs/"' in text
    assert "No run fits" in text_of(anna.get(f"/projects/{mine.pk}/runs/?outcome=succeeded"))
    assert anna.get("/projects/987654321/runs/").status_code == 404
