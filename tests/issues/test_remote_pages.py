"""Pages of issues and pull requests of a project whose tracker is a forge, or beads: the way there."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern

from runs.forges import acts as forges
from runs.issues.urls import issue_patterns, pull_patterns
from runs.models import Forge, Project, Settings
from tests import make
from tests.fakes import START, World
from tests.web.browsing import OpenPage
from tests.web.looking import look
from tests.web.people import hx, text_of
from tests.world.memory_tracker import MemoryTracker
from trackers.base import Ability

pytestmark = pytest.mark.django_db

WEB = "https://git.example"
ISSUES, PULLS = "/projects/1/issues/", "/projects/1/pulls/"
PARTS = {"number": "7", "file_number": "1", "commit": "a" * 40}


@pytest.fixture
def project(world: World) -> Project:
    Settings.current()
    some = {"memory": world.tracker, "gitea": world.tracker, "github": world.tracker}
    world.lab = dataclasses.replace(world.lab, tracker_for=some.get)
    forge = forges.add(
        world.lab, name="Robot", kind="gitea", web=WEB, credential={"token": "tok"}, by="anna"
    )
    return make.a_project(
        pk=1,
        tracker="gitea",
        tracker_root=f"{forge.pk}/lab/shop",
        forge=forge,
        queue_seen=[
            ["3", "Add <b>retries</b>", f"{WEB}/lab/shop/issues/3"],
            ["4", "Odd", "javascript:alert(1)"],
        ],
        queue_count=40,
        queue_seen_at=START,
        pulls_seen=[[8, "afk/3", "Retries", f"{WEB}/lab/shop/pulls/8"]],
        pulls_seen_at=START,
    )


def beads(world: World) -> None:
    few = MemoryTracker([Ability.STATUS])
    world.lab = dataclasses.replace(world.lab, tracker_for={"beads": few}.get)
    Project.objects.update(tracker="beads", tracker_root="/home/me/shop", forge=None)


def test_issues_of_a_forge_are_listed_as_last_seen_and_lead_there(
    vera: Client, world: World, project: Project
) -> None:
    page = text_of(vera.get(ISSUES))
    assert f'<a href="{WEB}/lab/shop/issues/3" rel="noreferrer">' in page
    assert "Add &lt;b&gt;retries&lt;/b&gt;" in page
    assert "javascript:" not in page
    assert "the first 2 of 40" in page
    assert "as seen" in page
    assert f'href="{WEB}/lab/shop/issues" rel="noreferrer">Open on Gitea or Forgejo' in page
    pulls = text_of(vera.get(PULLS))
    assert f'<a href="{WEB}/lab/shop/pulls/8" rel="noreferrer">' in pulls
    assert "<code>afk/3</code>" in pulls


@pytest.mark.parametrize(
    ("kind", "address", "leads_to"),
    [
        pytest.param("gitea", f"{ISSUES}7/", f"{WEB}/lab/shop/issues/7", id="an issue"),
        pytest.param("gitea", f"{PULLS}7/", f"{WEB}/lab/shop/pulls/7", id="a pull request"),
        pytest.param("gitea", f"{PULLS}7/files", f"{WEB}/lab/shop/pulls/7", id="its files"),
        pytest.param("github", f"{PULLS}7/", f"{WEB}/lab/shop/pull/7", id="on GitHub"),
    ],
)
def test_one_of_them_leads_to_its_page_there(
    vera: Client, world: World, project: Project, kind: str, address: str, leads_to: str
) -> None:
    Project.objects.update(tracker=kind)
    Forge.objects.update(kind=kind)
    answer = vera.get(address)
    assert answer.status_code == 200
    assert f'href="{leads_to}" rel="noreferrer"' in text_of(answer)


def _addresses() -> list[Any]:
    found = []
    for start, patterns in ((ISSUES, issue_patterns), (PULLS, pull_patterns)):
        for one in patterns:
            assert isinstance(one, URLPattern)
            route = str(one.pattern)
            for name, value in PARTS.items():
                route = route.replace(f"<int:{name}>", value).replace(f"<str:{name}>", value)
            found.append(pytest.param(start + route, id=str(one.name)))
    return found


@pytest.mark.row("X-01", level="contract")
@pytest.mark.parametrize("address", _addresses())
def test_nothing_is_done_here_that_belongs_there(
    anna: Client, world: World, project: Project, address: str
) -> None:
    assert anna.get(address).status_code in (200, 405)
    told = {"title": "x", "comment": "x", "state": "closed"}
    for answer in (hx(anna, address, told), anna.post(address, told)):
        if answer.status_code == 405:
            continue
        assert answer.status_code in (409, 303)
        if answer.status_code == 409:
            assert f"are on {WEB}. Nothing was changed here; do it there." in text_of(answer)
    assert world.tracker.calls.total() == 0


def test_who_may_only_look_is_told_that_first(vera: Client, world: World, project: Project) -> None:
    assert vera.post(f"{ISSUES}new", {"title": "x"}).status_code == 403


@pytest.mark.row("X-01", level="contract")
def test_beads_have_no_pull_requests_and_no_tab_for_them(
    vera: Client, world: World, project: Project
) -> None:
    assert 'id="tab-pulls"' in text_of(vera.get("/projects/1/"))
    beads(world)
    Project.objects.update(queue_seen=[["bd-a1b2", "Add retries", ""]])
    page = text_of(vera.get(ISSUES))
    assert '<span class="ref">#bd-a1b2</span>Add retries' in page
    assert "Open on" not in page
    assert 'id="tab-pulls"' not in page
    assert 'id="tab-pulls"' not in text_of(vera.get("/projects/1/"))
    assert "Beads has no pull requests." in text_of(vera.get(PULLS))


def test_before_the_first_look_that_is_said(vera: Client, world: World, project: Project) -> None:
    Project.objects.update(queue_seen=[], pulls_seen=[], queue_seen_at=None, pulls_seen_at=None)
    assert "labsite has not looked there yet." in text_of(vera.get(ISSUES))
    Project.objects.update(queue_seen_at=START, pulls_seen_at=START)
    assert "No open issue carried the label" in text_of(vera.get(ISSUES))
    assert "No pull request of a run was open." in text_of(vera.get(PULLS))


@pytest.mark.parametrize("count", [1, 11])
def test_the_page_asks_a_fixed_number_of_questions(
    vera: Client, world: World, project: Project, count: int, django_assert_num_queries: Any
) -> None:
    Project.objects.update(queue_seen=[[str(n), "t", ""] for n in range(count)])
    vera.get(ISSUES)
    with django_assert_num_queries(12):
        assert vera.get(ISSUES).status_code == 200


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_the_pages_are_accessible_and_fit(
    open_page: OpenPage, operator: User, world: World, project: Project, width: int, scheme: str
) -> None:
    page = open_page(ISSUES, operator, width=width, color_scheme=scheme)
    wrong = look(page, "issues elsewhere", scheme, width)
    for name, address in {"pulls elsewhere": PULLS, "issue elsewhere": f"{ISSUES}7/"}.items():
        page.goto(address)
        wrong += look(page, name, scheme, width)
    assert wrong == []
