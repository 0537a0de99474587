"""Pages of pull requests in the built-in tracker."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest
from django.test import Client

from runs.models import Notice, Project
from tests import make
from tests.fakes import START, World
from tests.web.people import text_of
from trackers import registry
from trackers.base import NewPull, PullState
from trackers.builtin import store
from trackers.builtin.models import PullRequest

pytestmark = pytest.mark.django_db

EVIL = "<script>alert('x')</script> $(reboot)"


@pytest.fixture
def project(world: World) -> Project:
    world.lab = dataclasses.replace(world.lab, tracker_for=registry.tracker)
    return make.a_project(tracker="builtin", tracker_root=store.create_root("demo"))


@pytest.fixture
def at(project: Project) -> str:
    return f"/projects/{project.pk}/pulls/"


@pytest.fixture
def anna(client: Client, operator: Any) -> Client:
    client.force_login(operator)
    return client


@pytest.fixture
def vera(viewer: Any) -> Client:
    made = Client()
    made.force_login(viewer)
    return made


def a_pull(
    project: Project, head: str = "afk/1", title: str = "Add retries", body: str = ""
) -> int:
    new = NewPull(head, "main", title, body, "Claude, run 3", head_commit="abc123" + "0" * 34)
    return store.create_pull(project.tracker_root, new, at=START)


def main(answer: Any, status: int = 200) -> str:
    assert answer.status_code == status
    return text_of(answer).partition("<main")[2]


def test_the_list_shows_open_ones_and_behind_a_filter_the_rest(
    anna: Client, project: Project, at: str
) -> None:
    for head in ("afk/1", "afk/2", "afk/3"):
        a_pull(project, head, f"work on {head}")
    PullRequest.objects.filter(number=2).update(state=PullState.MERGED)

    html, ended = main(anna.get(at)), main(anna.get(at + "?state=closed"))

    assert re.findall(r'id="pull-(\d+)"', html) == ["3", "1"]
    assert re.findall(r'id="pull-(\d+)"', ended) == ["2"]
    assert '<span class="pill info">merged</span>' in ended
    assert "An agent opens one" in main(
        anna.get(
            f"/projects/{make.a_project('b', tracker='builtin', tracker_root=store.create_root('b')).pk}/pulls/"
        )
    )


def test_a_pull_request_leads_to_its_issue_and_its_run(
    anna: Client, project: Project, at: str
) -> None:
    store.create_issue(
        project.tracker_root, title="The wish", body="", author="anna", labels=(), at=START
    )
    run = make.a_run(project, "1", outcome="succeeded")
    number = a_pull(project, body="It **retries**.\n\nCloses #1")

    html = main(anna.get(f"{at}{number}/"))

    assert "<strong>retries</strong>" in html
    assert f'href="/projects/{project.pk}/issues/1/"' in html
    assert "The wish" in html
    assert f'href="/runs/{run.pk}/"' in html
    assert "afk/1" in html
    assert "abc123000000" in html
    assert f'href="/runs/{run.pk}/"' in main(anna.get(at))


def test_a_branch_that_belongs_to_no_issue_is_shown_too(
    anna: Client, project: Project, at: str
) -> None:
    for head in ("feature/x", "afk/99"):
        number = a_pull(project, head)
        assert head in main(anna.get(f"{at}{number}/"))


def test_closing_is_told_and_safe_to_repeat(anna: Client, project: Project, at: str) -> None:
    number = a_pull(project)
    assert "Close without merging" in main(anna.get(f"{at}{number}/"))

    html = main(anna.post(f"{at}{number}/close", follow=True))
    again = main(anna.post(f"{at}{number}/close", follow=True))

    assert PullRequest.objects.get().state == PullState.CLOSED
    assert "Close without merging" not in html
    assert "was not open any more" in again
    assert [n.text for n in Notice.objects.all()] == [
        f"pull request {number} closed without a merge"
    ]


@pytest.mark.row("X-14", level="contract")
def test_hostile_text_is_shown_as_text(anna: Client, project: Project, at: str) -> None:
    number = a_pull(project, title=EVIL, body=f"{EVIL} [x](javascript:alert(1))")
    for address in (at, f"{at}{number}/"):
        html = main(anna.get(address))
        assert "<script>alert" not in html
        assert "&lt;script&gt;" in html
        assert 'href="javascript:' not in html


@pytest.mark.parametrize("rows", [1, 50])
def test_the_list_costs_the_same_for_one_row_and_for_fifty(
    anna: Client, project: Project, at: str, rows: int, django_assert_num_queries: Any
) -> None:
    for n in range(1, rows + 1):
        a_pull(project, f"afk/{n}")
        make.a_run(project, str(n), slot=n, outcome="succeeded")
    anna.get(at)
    with django_assert_num_queries(12):
        assert main(anna.get(at)).count(">Run ") == rows


@pytest.mark.row("LAB-130", level="contract")
def test_a_refresh_is_304_until_something_is_told(anna: Client, project: Project, at: str) -> None:
    number = a_pull(project)
    for address, live in ((at, at + "live"), (f"{at}{number}/", f"{at}{number}/live")):
        html = text_of(anna.get(address))
        tag = re.search(r'hx-ptag="([^"]+)"', html)
        assert tag
        assert f'hx-get="{live}"' in html
        assert anna.get(live, headers={"HX-PTag": tag[1]}).status_code == 304
        for region in re.findall(r'hx-target="#([^"]+)"', text_of(anna.get(live))):
            assert f'id="{region}"' in html, (address, region)
    anna.post(f"{at}{number}/close")
    answer = anna.get(f"{at}{number}/live", headers={"HX-PTag": tag[1]})
    assert answer.status_code == 200
    assert '<span class="pill ">closed</span>' in text_of(answer)


@pytest.mark.row("X-10", level="contract")
def test_strangers_and_viewers(client: Client, vera: Client, project: Project, at: str) -> None:
    number = a_pull(project)
    for address in ("", "live", f"{number}/", f"{number}/live"):
        assert client.get(at + address)["Location"].startswith("/login/")
        assert "Close without merging" not in text_of(vera.get(at + address))
        assert vera.get(at + address).status_code == 200
    assert client.post(f"{at}{number}/close").status_code == 302
    assert vera.post(f"{at}{number}/close").status_code == 403
    assert PullRequest.objects.get().state == PullState.OPEN


def test_wrong_methods_and_unknown_things(anna: Client, project: Project, at: str) -> None:
    number = a_pull(project)
    assert anna.get(f"{at}{number}/close").status_code == 405
    assert anna.post(at).status_code == 405
    for address in ("9/", "9/live", f"{'9' * 30}/"):
        assert anna.get(at + address).status_code == 404
    assert anna.post(at + "9/close").status_code == 404
    assert anna.get("/projects/987654321/pulls/").status_code == 404


@pytest.mark.row("LAB-132", level="contract")
def test_closing_answers_both_request_styles(anna: Client, project: Project, at: str) -> None:
    number, other = a_pull(project), a_pull(project, "afk/2")
    scripted = {"HX-Request": "true"}
    html = text_of(anna.post(f"{at}{number}/close", headers=scripted))
    assert 'hx-target="#pull-state"' in html
    refused = anna.post(f"{at}{number}/close", headers=scripted)
    assert refused.status_code == 409
    assert "was not open any more" in text_of(refused)
    plain = anna.post(f"{at}{other}/close")
    assert (plain.status_code, plain["Location"]) == (303, f"{at}{other}/")
