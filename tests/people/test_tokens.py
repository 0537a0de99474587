"""One's own tokens: made, shown once, never kept where they could be read, revoked."""

from __future__ import annotations

import logging
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client

from runs.models import ApiToken, Notice
from runs.people import api_tokens
from tests import make
from tests.fakes import START, World
from tests.web.people import confirmed, text_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def mine(anna: Client, world: World) -> Client:
    return confirmed(anna)


def make_one(client: Client, **given: str) -> Any:
    return client.post(
        "/account/tokens/new", {"name": "ci", "scope": "look", "days": "90", **given}
    )


def text_in(answer: Any) -> str:
    found = re.search(r'id="token">(lab_[^<]+)<', text_of(answer))
    assert found
    return found[1]


@pytest.mark.row("X-05", level="contract")
def test_a_token_is_shown_once_and_kept_nowhere(
    mine: Client, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    answer = make_one(mine)
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    text = text_in(answer)
    found = api_tokens.find(world.lab, text)
    assert found is not None
    assert (found.user.username, found.name, found.scope) == ("anna", "ci", "look")
    assert found.expires_at == START + timedelta(days=90)
    pages = [text_of(mine.get(page)) for page in ("/account/", "/", "/account/tokens/new")]
    kept = str(list(Notice.objects.values())) + str(
        [s.get_decoded() for s in Session.objects.all()]
    )
    cookies = str(answer.cookies) + str(mine.cookies)
    assert all(text not in place for place in (*pages, kept, cookies, caplog.text))
    assert found.hint in pages[0]


def test_a_double_press_makes_one_token_of_a_name(mine: Client) -> None:
    make_one(mine)
    answer = make_one(mine)
    assert answer.status_code == 400
    assert "You have a token called ci already." in text_of(answer)
    assert ApiToken.objects.count() == 1


@pytest.mark.parametrize(
    ("given", "says"),
    [
        pytest.param({"name": ""}, "Write a name.", id="no name"),
        pytest.param({"name": "x" * 101}, "at most 100", id="a long name"),
        pytest.param({"scope": "rule"}, "valid choice", id="no such scope"),
        pytest.param({"days": "9999999999"}, "valid choice", id="a span that is not offered"),
    ],
)
def test_what_is_wrong_is_said_and_no_token_is_made(
    mine: Client, given: dict[str, str], says: str
) -> None:
    answer = make_one(mine, **given)
    assert answer.status_code == 400
    assert says in text_of(answer)
    assert not ApiToken.objects.exists()


def test_acting_is_offered_to_those_who_may_act_only(mine: Client, vera: Client) -> None:
    confirmed(vera)
    assert 'value="act"' in text_of(mine.get("/account/tokens/new"))
    assert 'value="act"' not in text_of(vera.get("/account/tokens/new"))
    assert make_one(vera, scope="act").status_code == 400
    assert make_one(vera).status_code == 200
    assert make_one(mine, scope="act", days="0").status_code == 200
    assert ApiToken.objects.get(user__username="anna").expires_at is None


def test_a_token_is_revoked_by_its_owner_and_nobody_else(
    mine: Client, vera: Client, world: World
) -> None:
    text = text_in(make_one(mine))
    token = ApiToken.objects.get()
    assert vera.post(f"/account/tokens/{token.pk}/revoke").status_code == 404
    assert api_tokens.find(world.lab, text) is not None
    for _ in range(2):
        assert mine.post(f"/account/tokens/{token.pk}/revoke").status_code == 303
    assert api_tokens.find(world.lab, text) is None
    assert "You have no tokens." in text_of(mine.get("/account/"))
    assert [n.text for n in Notice.objects.filter(text__contains="revoked")] == ["token ci revoked"]


def test_the_page_says_when_tokens_end_and_teaches_the_first_one(
    mine: Client, world: World, operator: User
) -> None:
    assert "You have no tokens." in text_of(mine.get("/account/"))
    api_tokens.make(world.lab, operator, "old", ApiToken.Scope.LOOK, START + timedelta(hours=1))
    api_tokens.make(world.lab, make.a_user("eve"), "not mine", ApiToken.Scope.LOOK)
    world.clock.forward(hours=2)
    page = text_of(mine.get("/account/"))
    assert ">expired<" in page
    assert "not mine" not in page


@pytest.mark.row("X-10", level="contract")
def test_making_and_changing_need_post_and_login(mine: Client) -> None:
    assert mine.get("/account/tokens/1/revoke").status_code == 405
    stranger = Client()
    for address in ("/account/", "/account/tokens/new", "/account/password"):
        assert stranger.get(address).url.startswith("/login/")
    assert stranger.post("/account/tokens/1/revoke").url.startswith("/login/")
