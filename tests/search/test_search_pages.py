"""Search as a page and as the palette's options: what is found, by whom, with how many queries."""

from __future__ import annotations

import html
import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from runs.models import Project
from runs.search import finding, places
from runs.search.places import Reader
from runs.search.rules import Kind
from runs.web import shortcuts
from tests import make
from tests.fakes import START, World
from tests.web import board_rows as rows
from tests.web.people import text_of
from trackers.builtin import store
from trackers.builtin.models import Issue

pytestmark = pytest.mark.django_db

ALL = Reader(can_act=True, is_admin=True)
VIEWER = Reader(can_act=False, is_admin=False)


@pytest.fixture
def house(world: World, operator: User) -> Project:
    """Something of every kind that has to do with retries."""
    rows.a_tick(world)
    demo, other = rows.a_tracked_project("demo"), rows.a_tracked_project("retries")
    for title in ("Write tests", "Add retries to uploads"):
        rows.a_ready_issue(demo, title)
    store.create_issue(
        other.tracker_root, title="Count retries", body="", author="a", labels=[], at=START
    )
    make.a_run(demo, "1", issue_title="Write tests", outcome="died")
    make.a_run(demo, "9", pk=2002, issue_title="Fewer retries", slot=2)
    store.create_pull(
        demo.tracker_root,
        store.NewPull("afk/9", "main", "Fewer retries", "", "bot", "a" * 40, "b" * 40),
        at=START,
    )
    make.a_user("retriever")
    far = make.a_project("far", tracker="github", tracker_root="o/r")
    far.queue_seen, far.pulls_seen = (
        [["44", "Retries there", "https://x/44"]],
        [[45, "afk/44", "Retries", "https://x/45"]],
    )
    far.save()
    return demo


def found(typed: str, reader: Reader = ALL) -> list[tuple[str, str]]:
    return [(hit.kind.value, hit.title) for hit in finding.find(typed, reader)]


def test_a_word_finds_something_of_each_kind(house: Project) -> None:
    assert found("retries") == [
        ("project", "retries"),
        ("pull request", "Retries"),
        ("issue", "Retries there"),
        *found("retries")[3:],
    ]
    rest = found("retries")
    for one in (
        ("pull request", "Fewer retries"), ("issue", "Count retries"), ("run", "Run 2002: Fewer retries"),
        ("page", "Parked work of retries"), ("act", "Start issue 2"), ("act", "Start issue 44"),
        ("act", "Stop run 2002…"), ("act", "Turn on automatic work in retries"),
    ):  # fmt: skip
        assert one in rest
    # An issue without the ready label, and one on which a run works, cannot be started.
    assert ("act", "Start issue 1") not in rest
    assert found("retriever") == [("person", "retriever")]


def test_numbers_projects_and_other_words_find(house: Project) -> None:
    assert found("run 2002")[0] == ("run", "Run 2002: Fewer retries")
    assert found("#2")[0] == ("issue", "Add retries to uploads")
    assert found("demo 2")[0] == ("issue", "Add retries to uploads")
    assert ("issue", "Count retries") not in found("demo retries")
    assert ("issue", "Add retries to uploads") in found("demo retries")
    assert found("afk/9")[0] == ("run", "Run 2002: Fewer retries")
    Project.objects.filter(pk=house.pk).update(is_auto=True, streak=3)
    assert ("act", "Turn off automatic work in demo") in found("pause demo")
    assert ("act", "Resume automatic work in demo") in found("unpause demo")
    assert found("%") == []
    assert found("a_d") == []


@pytest.mark.long
def test_what_somebody_may_not_see_or_do_is_not_found(
    house: Project, client: Client, viewer: User
) -> None:
    for typed in ("", "retries", "demo", "people", "audit", "add", "start", "stop", "1"):
        kinds = {kind for kind, _ in found(typed, VIEWER)}
        assert not kinds & {Kind.ACT.value, Kind.PERSON.value}
    client.force_login(viewer)
    for typed in ("people", "audit", "new", "demo", "settings", "notices"):
        for hit in finding.find(typed, VIEWER):
            if not hit.address:
                row = client.get(_url(hit.page, hit.ids))
                assert row.status_code == 200, hit


def _url(page: str, ids: tuple[int, ...]) -> str:
    from django.urls import reverse

    return reverse(f"runs:{page}", args=ids)


@pytest.mark.long
def test_every_page_that_search_knows_is_there(
    house: Project, client: Client, operator: User
) -> None:
    client.force_login(operator)
    for hit in (*places.pages(ALL), *places.of_project(house, ALL)):
        if hit.kind is not Kind.ACT:
            assert client.get(_url(hit.page, hit.ids)).status_code in (200, 302), hit


def test_the_page_and_the_palette_show_the_same(
    house: Project, client: Client, operator: User
) -> None:
    client.force_login(operator)
    page = text_of(client.get("/search/?q=retries"))
    part = client.get("/search/?q=retries", headers={"X-Lab-Part": "1"})
    options = text_of(part)
    assert "X-Lab-Part" in part["Vary"]
    assert part["Cache-Control"] == "no-store"
    assert "<html" not in options
    shown = finding.find("retries", ALL)
    assert re.findall(r'data-url="([^"]+)"', options) == [
        hit.address or _url(hit.page, hit.ids) for hit in shown
    ]
    titles = [re.escape(html.escape(hit.title)) for hit in shown]
    for text in (page, options):
        at = [re.search(rf">\s*(?:<span class=\"ref\">#\d+</span>\s*)?{one}\s*<", text) for one in titles]  # fmt: skip
        assert all(at)
    sends = [json.loads(html.unescape(one)) for one in re.findall(r'data-sends="([^"]*)"', options)]
    assert [["issue", "2"]] in sends
    assert "Nothing fits" in text_of(client.get("/search/?q=zebra"))


def test_an_act_on_the_page_goes_through_its_own_door(
    house: Project, client: Client, operator: User
) -> None:
    client.force_login(operator)
    forms = re.findall(
        r'<form method="post" action="([^"]+)">(.*?)</form>',
        text_of(client.get("/search/?q=automatic+demo")),
        re.DOTALL,
    )
    assert [address for address, _ in forms] == [f"/projects/{house.pk}/auto"]
    assert 'name="is_on" value="on"' in forms[0][1]
    # One that ends something asks on a page before anything is done.
    (run,) = (
        hit
        for hit in finding.find("stop retries", ALL)
        if hit.kind is Kind.ACT and hit.page == "stop"
    )
    asked = client.post(_url(run.page, run.ids))
    assert 'name="sure"' in text_of(asked)


def test_the_number_of_queries_does_not_grow(
    house: Project, client: Client, operator: User, django_assert_num_queries: Any
) -> None:
    client.force_login(operator)
    with django_assert_num_queries(10):
        finding.find("add 2", ALL)
    Issue.objects.bulk_create(
        Issue(
            root_id=house.tracker_root, number=100 + n, title=f"More retries {n}", author="a",
            created_at=START, updated_at=START + timedelta(n),
        )
        for n in range(200)
    )  # fmt: skip
    for n in range(20):
        make.a_run(house, str(500 + n), slot=10 + n, issue_title=f"Retries {n}")
        rows.a_tracked_project(f"retries-{n}")
    with django_assert_num_queries(10):
        finding.find("add 2", ALL)
    with django_assert_num_queries(1):
        finding.find("", VIEWER)
    # Session and user come on top.
    with django_assert_num_queries(12):
        client.get("/search/?q=add+2", headers={"X-Lab-Part": "1"})


@pytest.mark.parametrize("typed", ["\0", "x" * 5000, "1" * 30, "' OR 1=1 --", "<b>"])
def test_odd_words_are_only_words(client: Client, operator: User, world: World, typed: str) -> None:
    client.force_login(operator)
    page = client.get("/search/", {"q": typed})
    assert page.status_code == 200
    assert 'value="<b>' not in text_of(page)


@pytest.mark.long
def test_the_sheet_lists_every_key_that_leads_somewhere(
    house: Project, client: Client, operator: User
) -> None:
    client.force_login(operator)
    page = text_of(client.get(f"/projects/{house.pk}/issues/"))
    leads = json.loads(html.unescape(re.search(r'data-go="([^"]+)"', page)[1]))  # type: ignore[index]
    for address in leads.values():
        assert client.get(address).status_code == 200
    listed = {one.keys[1] for group in shortcuts.sheet() for one in group.shortcuts if one.keys[0] == "g"}  # fmt: skip
    assert set(leads) == listed
    assert len(leads) == len(shortcuts.GO) + len(shortcuts.GO_IN_PROJECT)
    overview = text_of(client.get("/"))
    assert set(json.loads(html.unescape(re.search(r'data-go="([^"]+)"', overview)[1]))) == {key for key, *_ in shortcuts.GO}  # type: ignore[index]  # fmt: skip
    sheet = text_of(client.get("/shortcuts/"))
    assert "Your account" in sheet and "data-keys-switch" in sheet
