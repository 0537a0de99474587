"""Who may look, who may act, by which method; and titles that want to do harm."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from runs.core.states import NoticeKind
from runs.models import Run, StartRequest
from tests import make
from tests.fakes import World
from tests.web import board_rows as rows
from tests.web.people import text_of

pytestmark = pytest.mark.django_db

EVIL = "<script>alert('x')</script> \"quoted\" $(reboot)\nsecond line {{ settings.SECRET_KEY }}"


@pytest.mark.row("X-10", level="contract")
def test_a_stranger_is_sent_to_the_login_and_nothing_happens(client: Client, world: World) -> None:
    project = rows.full_board(world, 1)
    run = Run.objects.filter(outcome="").get()
    for page in [*rows.pages(project), "/projects/new", "/live", f"/runs/{run.pk}/live"]:
        assert client.get(page).status_code == 302, page
    for action in [*rows.actions(project, run), "/projects/new", "/settings/"]:
        assert client.post(action).status_code == 302, action
    assert not StartRequest.objects.exists()
    run.refresh_from_db()
    assert run.is_active


@pytest.mark.long
@pytest.mark.row("X-10", level="contract")
def test_who_may_only_look_sees_no_buttons_and_cannot_act(vera: Client, world: World) -> None:
    project = rows.full_board(world, 1)
    run = Run.objects.filter(outcome="").get()
    for page in rows.pages(project):
        answer = vera.get(page)
        assert answer.status_code == 200
        main = text_of(answer).split("<main", 1)[1]
        assert "hx-post" not in main.replace('hx-post="/settings/"', "")
    for action in [*rows.actions(project, run), "/projects/new", "/settings/"]:
        assert vera.post(action).status_code == 403, action
    run.refresh_from_db()
    assert run.is_active


@pytest.mark.row("X-10", level="contract")
def test_an_action_without_the_csrf_token_is_refused(operator: Any, world: World) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(operator)
    run = make.a_run(rows.a_tracked_project(), "7")
    assert client.post(f"/runs/{run.pk}/stop").status_code == 403
    run.refresh_from_db()
    assert run.is_active


@pytest.mark.row("LAB-65", level="contract")
def test_every_action_wants_post_and_every_page_get(anna: Client, world: World) -> None:
    project = rows.full_board(world, 1)
    run = Run.objects.filter(outcome="").get()
    for action in rows.actions(project, run):
        assert anna.get(action).status_code == 405, action
    for page in ["/", f"/projects/{project.pk}/", f"/runs/{run.pk}/", "/history/", "/live"]:
        assert anna.post(page).status_code == 405, page


@pytest.mark.row("LAB-65", level="contract")
def test_an_action_on_what_is_not_there_is_404(anna: Client, world: World) -> None:
    for action in (
        "/projects/987654321/start",
        "/projects/987654321/stop-all",
        "/projects/987654321/retry",
        "/runs/987654321/stop",
    ):
        assert anna.post(action).status_code == 404, action


@pytest.mark.long
@pytest.mark.row("X-14", level="contract")
@pytest.mark.parametrize(
    "title",
    [
        pytest.param(EVIL, id="markup, quotes, $(…), newline"),
        pytest.param("x" * 10_000, id="10,000 characters"),
        pytest.param("<script>" * 1250, id="10,000 characters of markup"),
        pytest.param("'\"><img src=x onerror=alert(1)>", id="breaks out of attributes"),
        pytest.param("\u202egnp.exe\u202c \x00\x1b[31m", id="odd characters"),
    ],
)
def test_a_title_is_only_ever_text(anna: Client, world: World, title: str) -> None:
    title = title.replace("\x00", "")
    rows.a_tick(world)
    project = rows.a_tracked_project()
    number = rows.a_ready_issue(project, title)
    live = make.a_run(project, "77", issue_title=title, last_line=title[:300], prompt=title)
    dead = make.a_run(
        project,
        "78",
        outcome="died",
        issue_title=title,
        reason=title,
        last_words=title,
        warning=title,
    )
    rows.tell(world, title, NoticeKind.RUN_ENDED, run=dead, outcome="died")
    assert number
    for page in [
        "/",
        f"/projects/{project.pk}/",
        f"/runs/{live.pk}/",
        f"/runs/{dead.pk}/",
        "/history/",
    ]:
        html = text_of(anna.get(page))
        assert "<script>alert" not in html, page
        assert "<script><script>" not in html, page
        assert "<img" not in html, page
        assert "SECRET_KEY }}" in html or "SECRET_KEY" not in title, page
        for shown in re.findall(
            r'class="title">(.*?)</div>|class="what">(.*?)</span>', html, re.DOTALL
        ):
            assert len("".join(shown)) < 1500
