"""Downloads, the feed and badges: what they hold, what they hide, and who gets them."""

from __future__ import annotations

import base64
import csv
import dataclasses
import io
import json
from datetime import timedelta
from decimal import Decimal
from typing import Any
from xml.etree import ElementTree

import pytest
from django.contrib.auth.models import User
from django.test import Client

from runs.history import badge, finding
from runs.models import Notice, Project, Run
from tests import make
from tests.api.program import a_token
from tests.fakes import START, World
from tests.web.people import text_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def anna(client: Client, operator: User) -> Client:
    client.force_login(operator)
    return client


@pytest.fixture
def runs(world: World) -> list[Run]:
    world.lab = dataclasses.replace(
        world.lab, mask=lambda text: text.replace("hunter2", "[hidden]")
    )
    one, two = make.a_project("one"), make.a_project("two")
    ended = {"took_seconds": 90, "cost_usd": Decimal("1.5"), "reason": "it said hunter2"}
    return [
        make.a_run(one, "1", outcome="died", issue_title='=HYPERLINK("x")', **ended),
        make.a_run(one, "2", outcome="succeeded", issue_title='a, "b"\n <c> \x07', branch="-x"),
        make.a_run(two, "3", outcome="died", ended_at=START - timedelta(days=1)),
        make.a_run(two, "4"),
    ]


def body(answer: Any) -> str:
    return b"".join(answer.streaming_content).decode()


def test_a_download_holds_what_the_filters_show(
    anna: Client, runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finding, "AT_ONCE", 2)
    answer = anna.get("/history/runs.csv")
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    found = list(csv.DictReader(io.StringIO(body(answer))))
    assert [one["issue"] for one in found] == ["4", "2", "1", "3"]
    assert found[2]["title"] == '\'=HYPERLINK("x")'
    assert (found[1]["branch"], found[1]["title"]) == ("'-x", runs[1].issue_title)
    assert (found[2]["took_seconds"], found[2]["cost_usd"]) == ("90", "1.500000")
    assert found[2]["reason"] == "it said [hidden]"
    assert found[0]["url"] == f"http://testserver/runs/{runs[3].pk}/"
    lines = body(anna.get("/history/runs.ndjson?outcome=died&sort=ended")).splitlines()
    told = [json.loads(line) for line in lines]
    assert [one["issue"] for one in told] == ["3", "1"]
    assert (told[1]["title"], told[0]["cost_usd"]) == ('=HYPERLINK("x")', None)


def test_a_download_of_nonsense_is_refused(anna: Client, runs: list[Run]) -> None:
    answer = anna.get("/history/runs.csv?least=much&outcome=x")
    assert answer.status_code == 400
    assert "least: Write an amount in dollars" in text_of(answer)
    assert Client().get("/history/runs.csv")["Location"].startswith("/login/")


def test_the_feed_tells_what_ended_of_its_filter(runs: list[Run], operator: User) -> None:
    _, token = a_token(operator, "look")
    answer = Client().get("/history/feed.atom", {"token": token, "project": runs[0].project_id})
    assert answer["Content-Type"].startswith("application/atom+xml")
    atom = "{http://www.w3.org/2005/Atom}"
    tree = ElementTree.fromstring(answer.content)  # noqa: S314  (our own)
    titles = [one.findtext(f"{atom}title") for one in tree.iter(f"{atom}entry")]
    assert titles == ['one #2 succeeded: a, "b" <c> \ufffd', 'one #1 died: =HYPERLINK("x")']
    assert "[hidden] · 1 min · $1.50" in text_of(answer)
    assert tree.findtext(f"{atom}title") == "labsite: one"
    assert Client().get("/history/feed.atom", {"token": token, "least": "x"}).status_code == 400


def test_the_feed_is_opened_by_tokens_alone(anna: Client, runs: list[Run], operator: User) -> None:
    def status(client: Client, query: str = "", said: str = "") -> int:
        headers = {"Authorization": said} if said else {}
        return int(client.get(f"/history/feed.atom{query}", headers=headers).status_code)

    look, may_look = a_token(operator, "look", "look")
    _, may_act = a_token(operator, "act", "act")
    stranger = Client()
    basic = base64.b64encode(f"x:{may_act}".encode()).decode()
    assert status(anna) == 401  # logged in, which is not enough
    assert stranger.get("/history/feed.atom")["WWW-Authenticate"].startswith("Basic")
    assert status(stranger, f"?token={may_look}") == 200
    assert status(stranger, f"?token={may_act}") == 401
    assert status(stranger, "", f"Bearer {may_act}") == 200
    assert status(stranger, "", f"Basic {basic}") == 200
    assert status(stranger, "", "Basic ü") == status(stranger, "?token=lab_x") == 401
    type(look).objects.update(revoked_at=START)
    assert status(stranger, f"?token={may_look}") == 401


def test_a_badge_is_there_for_strangers_only_where_it_is_public(
    anna: Client, runs: list[Run]
) -> None:
    project, stranger = runs[0].project, Client()
    at = f"/projects/{project.pk}/badge"
    assert (
        stranger.get(f"{at}.svg").status_code
        == stranger.get("/projects/987654321/badge.svg").status_code
    )
    assert stranger.get(f"{at}.svg").status_code == 404
    assert "private" in anna.get(f"{at}.svg")["Cache-Control"]
    assert "Make public" in text_of(anna.get(at))
    assert anna.post(at, {"is_public": "on"}).status_code == 303
    shown = stranger.get(f"{at}.svg")
    assert (shown["Content-Type"], shown["Cache-Control"]) == (
        "image/svg+xml",
        "public, max-age=120",
    )
    assert "last agent run: succeeded" in text_of(shown)
    assert ElementTree.fromstring(shown.content).tag.endswith("svg")  # noqa: S314
    again = stranger.get(f"{at}.svg", headers={"If-None-Match": shown["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert "50 %" in text_of(stranger.get(f"{at}.svg?show=success"))
    assert Notice.objects.get().text == "badge is public now"
    anna.post(at, {})
    assert stranger.get(f"{at}.svg").status_code == 404


def test_only_those_who_may_act_publish_a_badge(viewer: User, runs: list[Run]) -> None:
    vera = Client()
    vera.force_login(viewer)
    at = f"/projects/{runs[0].project_id}/badge"
    assert "Make public" not in text_of(vera.get(at))
    assert vera.post(at, {"is_public": "on"}).status_code == 403
    assert not Project.objects.filter(is_badge_public=True).exists()


def test_a_badge_without_runs_says_so(world: World) -> None:
    project = make.a_project()
    assert badge.of(project, "", START).value == "none yet"
    assert badge.of(project, "success", START).value == "no runs"
