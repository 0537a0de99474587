"""Coming in: the first account, login and logout."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client
from django.urls import reverse

from runs.people import setup
from tests.fakes import World
from tests.patience import PATIENCE
from tests.web.people import text_of

pytestmark = pytest.mark.django_db

GOOD = "a rather long secret"


@pytest.fixture
def state(world: World) -> World:
    world.lab.paths.state.mkdir(parents=True, exist_ok=True)
    return world


def _post(client: Client, token: str, name: str = "ada", password: str = GOOD, again: str = ""):  # type: ignore[no-untyped-def]
    address = reverse("runs:setup", args=[token])
    return client.post(address, {"name": name, "password": password, "again": again or password})


def test_the_link_makes_the_operator_once_and_logs_in(client: Client, state: World) -> None:
    token = setup.link_token(state.lab.paths)
    assert token
    page = client.get(setup.link_path(token))
    assert page.status_code == 200
    assert b"This link works once." in page.content
    assert _post(client, token).url == "/"
    user = User.objects.get()
    assert (user.username, user.is_superuser, user.is_active) == ("ada", True, True)
    assert user.check_password(GOOD)
    assert client.session["_auth_user_id"] == str(user.pk)
    assert not state.lab.paths.setup_token.exists()


def test_a_used_link_is_dead(client: Client, state: World) -> None:
    token = setup.link_token(state.lab.paths) or ""
    _post(client, token)
    again = _post(Client(), token, "eve")
    assert again.status_code == 404
    assert "does not work any more" in text_of(again)
    assert User.objects.count() == 1
    assert Client().get(reverse("runs:setup", args=[token])).status_code == 404


def test_a_wrong_token_makes_nothing(client: Client, state: World) -> None:
    setup.link_token(state.lab.paths)
    assert _post(client, "guess").status_code == 404
    assert not User.objects.exists()


def test_without_a_printed_link_there_is_no_way_in(client: Client, state: World) -> None:
    assert _post(client, "x").status_code == 404


def test_the_name_is_kept_as_the_login_page_will_read_it(client: Client, state: World) -> None:
    token = setup.link_token(state.lab.paths) or ""
    assert _post(client, token, "\ufb01ona").status_code == 302
    again = {"username": "\ufb01ona", "password": GOOD}
    assert Client().post("/login/", again).status_code == 302


def test_a_new_link_replaces_the_old_one(client: Client, state: World) -> None:
    old = setup.link_token(state.lab.paths) or ""
    new = setup.link_token(state.lab.paths) or ""
    assert _post(client, old).status_code == 404
    assert _post(client, new).status_code == 302


def test_once_there_is_an_account_no_link_is_made_and_an_old_one_is_dead(
    client: Client, state: World
) -> None:
    token = setup.link_token(state.lab.paths) or ""
    User.objects.create_superuser("made-by-a-script", password=GOOD)
    assert not setup.is_open(state.lab.paths, token)
    assert setup.link_token(state.lab.paths) is None
    assert not state.lab.paths.setup_token.exists()


@pytest.mark.row("X-05", level="contract")
def test_only_a_hash_of_the_token_is_kept_and_only_for_the_owner(state: World) -> None:
    token = setup.link_token(state.lab.paths) or ""
    file = state.lab.paths.setup_token
    assert file.stat().st_mode & 0o077 == 0
    assert token not in file.read_text()


@pytest.mark.parametrize(
    ("name", "password", "again", "says"),
    [
        pytest.param("ada", "short", "", "at least 10 characters", id="short password"),
        pytest.param("ada", "passwordpassword", "another one here", "differ", id="typing error"),
        pytest.param("ada lovelace", GOOD, "", "valid username", id="name with a space"),
        pytest.param("", GOOD, "", "required", id="no name"),
        pytest.param(
            "lovelace-1815", "lovelace-1815", "", "too similar", id="password is the name"
        ),
    ],
)
def test_a_wrong_form_keeps_the_link_and_says_what_to_do(
    client: Client, state: World, name: str, password: str, again: str, says: str
) -> None:
    token = setup.link_token(state.lab.paths) or ""
    answer = _post(client, token, name, password, again)
    assert answer.status_code == 400
    assert says in text_of(answer)
    assert f'value="{password}"' not in text_of(answer).replace(f'value="{name}"', "")
    assert not User.objects.exists()
    assert setup.is_open(state.lab.paths, token)


@pytest.mark.postgres
@pytest.mark.every_case
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "names", [("ada", "eve"), ("ada", "ada")], ids=["two people", "a double click"]
)
def test_two_posts_at_the_same_time_make_one_account(state: World, names: tuple[str, str]) -> None:
    token = setup.link_token(state.lab.paths) or ""
    barrier = threading.Barrier(2)
    answers: list[str] = []

    def press(name: str) -> None:
        barrier.wait(PATIENCE)
        try:
            answers.append(setup.make_operator(state.lab.paths, token, name, GOOD).username)
        except setup.SetupRefused as refused:
            answers.append(refused.text)
        finally:
            connections.close_all()

    people = [threading.Thread(target=press, args=[name]) for name in names]
    for person in people:
        person.start()
    for person in people:
        person.join(PATIENCE)
    assert User.objects.count() == 1
    assert sorted(answers) == sorted([User.objects.get().username, setup.DEAD_LINK])


def test_the_one_who_does_not_get_the_token_leaves_no_account(state: World, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    token = setup.link_token(state.lab.paths) or ""
    state.lab.paths.setup_token.chmod(0o600)
    taken = Path.unlink

    def taken_by_another(self: Path, missing_ok: bool = False) -> None:
        taken(self)
        raise FileNotFoundError(self)

    monkeypatch.setattr(Path, "unlink", taken_by_another)
    with pytest.raises(setup.SetupRefused):
        setup.make_operator(state.lab.paths, token, "eve", GOOD)
    assert not User.objects.exists()


def test_the_login_page_says_how_to_make_the_first_account(client: Client, state: World) -> None:
    assert b"./lab up" in client.get(reverse("runs:login")).content
    User.objects.create_user("ada", password=GOOD)
    assert b"./lab up" not in client.get(reverse("runs:login")).content


def test_login_leads_back_to_the_page_that_was_asked_for(client: Client, state: World) -> None:
    User.objects.create_user("ada", password=GOOD)
    answer = client.get("/admin/runs/run/")
    assert (answer.status_code, answer.url) == (302, "/login/?next=/admin/runs/run/")
    page = client.get(answer.url)
    assert 'name="next" value="/admin/runs/run/"' in text_of(page)
    given = {"username": "ada", "password": GOOD, "next": "/admin/runs/run/"}
    assert client.post(reverse("runs:login"), given).url == "/admin/runs/run/"


def test_login_never_leads_to_another_site(client: Client, state: World) -> None:
    User.objects.create_user("ada", password=GOOD)
    given = {"username": "ada", "password": GOOD, "next": "//evil.example/"}
    assert client.post(reverse("runs:login"), given).url == "/"


@pytest.mark.parametrize("wanted", ["/login/", "/login/?next=/login/", "/login/?next=/login/%3Fx"])
def test_login_never_leads_back_to_itself(client: Client, state: World, wanted: str) -> None:
    User.objects.create_user("ada", password=GOOD)
    given = {"username": "ada", "password": GOOD, "next": wanted}
    assert client.post(reverse("runs:login"), given).url == "/"
    assert client.get(reverse("runs:login"), {"next": wanted}).url == "/"  # now logged in


@pytest.mark.parametrize("port", ["99999", "0", "abc", "-1"])
def test_a_host_with_a_port_that_cannot_be_is_a_bad_request(
    client: Client, state: World, port: str
) -> None:
    answer = client.get(reverse("runs:login"), HTTP_HOST=f"127.0.0.1:{port}")
    assert answer.status_code == (200 if port == "0" else 400)


def test_an_address_that_cannot_be_read_leads_to_no_mistake(client: Client, state: World) -> None:
    client.force_login(User.objects.create_superuser("ada", password=GOOD))
    headers = {"HX-Request": "true", "HX-Current-URL": "http://[", "Referer": "http://["}
    assert client.get("/", headers=headers).status_code == 200
    assert client.post(reverse("runs:logout"), headers=headers).status_code < 500


def test_a_wrong_password_is_told_without_saying_what_was_wrong(
    client: Client, state: World
) -> None:
    User.objects.create_user("ada", password=GOOD)
    pages = [
        client.post(reverse("runs:login"), {"username": name, "password": "wrong"})
        for name in ("ada", "nobody")
    ]
    for page in pages:
        assert page.status_code == 200
        assert "Wrong name or password" in text_of(page)
        assert "wrong" not in text_of(page)


def test_logout_needs_a_post(client: Client, state: World) -> None:
    client.force_login(User.objects.create_user("ada"))
    assert client.get(reverse("runs:logout")).status_code == 405
    assert client.post(reverse("runs:logout")).url == reverse("runs:login")
    assert "_auth_user_id" not in client.session


def test_a_part_of_a_page_is_not_replaced_by_the_login_form(client: Client, state: World) -> None:
    answer = client.get(
        "/admin/", headers={"HX-Request": "true", "HX-Current-URL": "http://testserver/runs/7/?a=b"}
    )
    assert answer.status_code == 401
    assert "HX-Redirect" not in answer.headers
    assert answer.content == b""


def test_an_open_page_whose_log_in_expired_gets_the_form_and_then_a_new_token(
    state: World,
) -> None:
    client = Client(enforce_csrf_checks=True)
    User.objects.create_user("ada", password=GOOD)
    asked = client.get(reverse("runs:login-again"))
    assert asked.status_code == 401
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', text_of(asked))
    assert token
    given = {"username": "ada", "password": "wrong", "csrfmiddlewaretoken": token[1]}
    wrong = client.post(reverse("runs:login-again"), given)
    assert "Wrong name or password" in text_of(wrong)
    right = client.post(reverse("runs:login-again"), {**given, "password": GOOD}, follow=True)
    assert right.json()["name"] == "ada"
    headers = {"X-CSRFToken": right.json()["token"]}
    assert client.post(reverse("runs:logout"), headers=headers).url == reverse("runs:login")
    tries = [Client().post(reverse("runs:login-again"), given) for _ in range(6)]
    assert tries[-1].status_code == 429
    assert "Too many tries. Nothing was changed. Wait 3 min" in text_of(tries[-1])
    assert 'name="password"' in text_of(tries[-1])


def test_a_post_without_login_leads_back_to_its_page_and_not_to_the_post(
    client: Client, state: World
) -> None:
    answer = client.post("/admin/logout/", headers={"Referer": "http://testserver/runs/7/"})
    assert answer.url == "/login/?next=/runs/7/"
    answer = client.post("/admin/logout/", headers={"Referer": "http://evil.example/runs/7/"})
    assert answer.url == "/login/?next=/"


@pytest.mark.row("X-10", level="contract")
def test_a_post_without_csrf_token_has_no_effect_and_says_so(state: World) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.create_user("ada"))
    answer = strict.post(reverse("runs:logout"))
    assert answer.status_code == 403
    assert "Nothing was changed" in text_of(answer)
    assert "_auth_user_id" in strict.session


def test_pages_of_this_door_use_nothing_that_the_policy_forbids(
    client: Client, state: World
) -> None:
    token = setup.link_token(state.lab.paths) or ""
    for address in (reverse("runs:login"), reverse("runs:setup", args=[token]), "/setup/dead/"):
        page = text_of(client.get(address))
        assert " style=" not in page
        assert "<style" not in page
        assert " onclick=" not in page
