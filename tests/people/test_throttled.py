"""Guessing at the doors: how often, from where, and what the answer says."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client, RequestFactory
from django.urls import reverse

from labsite.redact import hide_secrets
from runs.models import Tries
from runs.people import client_ip, setup
from tests.fakes import World
from tests.web.people import text_of

pytestmark = pytest.mark.django_db

GOOD = "correct horse battery"


def log_in(name: str, password: str, **headers: str) -> Any:
    given = {"username": name, "password": password}
    return Client().post(reverse("runs:login"), given, headers=headers)


def test_after_five_wrong_passwords_the_answer_says_how_long_to_wait(
    world: World, operator: User
) -> None:
    assert [log_in("anna", "wrong").status_code for _ in range(5)] == [200] * 5
    answer = log_in("anna", GOOD)
    assert (answer.status_code, answer["Retry-After"]) == (429, "180")
    assert "no-store" in answer["Cache-Control"]
    assert "Wait 3 min, then try again." in text_of(answer)
    assert "_auth_user_id" not in answer.wsgi_request.session
    world.clock.forward(minutes=2)
    assert "Wait 1 min" in text_of(log_in("anna", GOOD))
    world.clock.forward(minutes=1)
    assert log_in("anna", GOOD).status_code == 302


def test_the_answer_is_the_same_for_a_name_that_nobody_has(world: World, operator: User) -> None:
    def story(name: str) -> list[tuple[int, str]]:
        answers = [log_in(name, "wrong") for _ in range(6)]
        return [
            (one.status_code, text_of(one).split("</form>")[0].split("<h1")[1].replace(name, "?"))
            for one in answers
        ]

    def told(name: str) -> list[tuple[int, str]]:
        return [(status, text.split('name="username"')[0]) for status, text in story(name)]

    assert told("anna") == told("bert")


def test_a_right_password_forgets_the_mistakes_before_it(world: World, operator: User) -> None:
    for _ in range(3):
        assert [log_in("anna", "wrong").status_code for _ in range(4)] == [200] * 4
        assert log_in("anna", GOOD).status_code == 302


def test_nobody_can_keep_the_owner_of_a_name_out(
    world: World, operator: User, settings: Any
) -> None:
    settings.BEHIND_PROXY = True
    for _ in range(10):
        log_in("anna", "wrong", x_forwarded_for="192.0.2.1")
    assert log_in("anna", GOOD, x_forwarded_for="192.0.2.1").status_code == 429
    assert log_in("anna", GOOD, x_forwarded_for="192.0.2.2").status_code == 302


def test_a_header_is_no_way_around_the_limit(world: World, operator: User) -> None:
    for number in range(5):
        log_in("anna", "wrong", x_forwarded_for=f"192.0.2.{number}")
    assert log_in("anna", "wrong", x_forwarded_for="192.0.2.99").status_code == 429


def test_one_address_may_not_go_through_a_list_of_names(world: World) -> None:
    statuses = [log_in(f"name-{number}", "wrong").status_code for number in range(31)]
    assert statuses == [200] * 30 + [429]


def test_upper_case_is_no_second_name(world: World) -> None:
    names = ["ada", "Ada", "ADA", "aDa", " ada "]
    assert [log_in(name, "wrong").status_code for name in names] == [200] * 5
    assert log_in("adA", "wrong").status_code == 429


def test_a_form_that_is_not_filled_in_is_no_try(world: World) -> None:
    for _ in range(10):
        assert log_in("anna", "").status_code == 200
    assert not Tries.objects.exists()


def test_the_login_of_admin_is_the_same_door(world: World, client: Client, operator: User) -> None:
    answer = client.get("/admin/login/?next=/admin/runs/run/")
    assert answer.url == "/login/?next=/admin/runs/run/"
    answer = client.post("/admin/login/", {"username": "anna", "password": GOOD})
    assert answer.url == "/login/"
    assert "_auth_user_id" not in client.session


def test_set_up_links_cannot_be_guessed_for_ever(world: World, client: Client) -> None:
    world.lab.paths.state.mkdir(parents=True, exist_ok=True)
    token = setup.link_token(world.lab.paths)
    right = reverse("runs:setup", args=[token])
    statuses = [client.get(f"/setup/guess-{number}/").status_code for number in range(31)]
    assert statuses == [404] * 30 + [429]
    assert client.get(right).status_code == 429
    world.clock.forward(minutes=1)
    assert [client.get(right).status_code for _ in range(40)] == [200] * 40


def test_no_log_line_holds_a_one_time_link() -> None:
    for line in ("Not Found: /setup/abc-d_e/", "<WSGIRequest: GET '/invite/MQ/x-y/'>"):
        assert "hidden" in hide_secrets(line)
        assert not {"abc", "MQ", "x-y"} & set(hide_secrets(line).replace("/", " ").split())


@pytest.mark.parametrize(
    ("proxied", "forwarded", "remote", "counted"),
    [
        pytest.param(False, "", "192.0.2.7", "192.0.2.7", id="direct"),
        pytest.param(False, "198.51.100.1", "192.0.2.7", "192.0.2.7", id="direct, header made up"),
        pytest.param(True, "198.51.100.1", "127.0.0.1", "198.51.100.1", id="proxied"),
        pytest.param(True, "6.6.6.6, 198.51.100.1", "127.0.0.1", "198.51.100.1", id="last hop"),
        pytest.param(True, "198.51.100.1:4711", "127.0.0.1", "198.51.100.1", id="with a port"),
        pytest.param(True, "[2001:db8::1]:4711", "127.0.0.1", "2001:db8::/64", id="IPv6, port"),
        pytest.param(True, "", "127.0.0.1", "127.0.0.1", id="the proxy says nothing"),
        pytest.param(True, "6.6.6.6, nonsense", "127.0.0.1", "127.0.0.1", id="nonsense"),
        pytest.param(False, "", "2001:db8::1:2:3:4", "2001:db8::/64", id="one house of IPv6"),
        pytest.param(False, "", "::ffff:192.0.2.7", "192.0.2.7", id="IPv4 in IPv6"),
        pytest.param(False, "", "", "unknown", id="no address at all"),
    ],
)
def test_only_the_last_hop_of_a_proxy_is_believed(
    settings: Any, proxied: bool, forwarded: str, remote: str, counted: str
) -> None:
    settings.BEHIND_PROXY = proxied
    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    request = RequestFactory().get("/", headers=headers, REMOTE_ADDR=remote)
    assert client_ip.address(request) == counted
