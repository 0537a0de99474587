"""Asked for again: before which doors, for how long it counts, and that nothing typed is lost."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from runs.models import AgentProfile
from tests import make
from tests.fakes import World
from tests.web.people import confirmed, hx, text_of

pytestmark = pytest.mark.django_db

GOOD = "correct horse battery"


def answer_at(client: Client, password: str = GOOD, back: str = "/account/tokens/new"):  # type: ignore[no-untyped-def]
    return client.post("/confirm/", {"password": password, "next": back})


def test_the_password_leads_back_and_counts_for_ten_minutes(anna: Client, world: World) -> None:
    asked = anna.get("/account/tokens/new")
    assert asked.url == "/confirm/?next=/account/tokens/new"
    assert 'name="next" value="/account/tokens/new"' in text_of(anna.get(asked.url))
    assert answer_at(anna).url == "/account/tokens/new"
    assert anna.get("/account/tokens/new").status_code == 200
    assert anna.get(asked.url).url == "/account/tokens/new"
    world.clock.forward(minutes=9, seconds=59)
    assert anna.get("/account/tokens/new").status_code == 200
    world.clock.forward(seconds=1)
    assert anna.get("/account/tokens/new").status_code == 302


def test_a_fresh_login_counts(client: Client, world: World, operator: User) -> None:
    client.post(reverse("runs:login"), {"username": "anna", "password": GOOD})
    assert client.get("/account/tokens/new").status_code == 200


def test_a_wrong_password_opens_nothing_and_five_of_them_wait(anna: Client, world: World) -> None:
    for _ in range(5):
        answer = answer_at(anna, "wrong")
        assert answer.status_code == 400
        assert "That is not your password." in text_of(answer)
    answer = answer_at(anna)
    assert (answer.status_code, answer["Retry-After"]) == (429, "180")
    assert "Wait 3 min" in text_of(answer)
    assert anna.get("/account/tokens/new").status_code == 302
    log_in = {"username": "anna", "password": GOOD}
    assert Client().post(reverse("runs:login"), log_in).status_code == 429
    world.clock.forward(minutes=3)
    assert answer_at(anna).status_code == 302


def test_no_password_is_no_try(anna: Client, world: World) -> None:
    for _ in range(8):
        assert "Write your password." in text_of(answer_at(anna, ""))


@pytest.mark.parametrize(
    "back", ["//evil.example/", "https://evil.example", "javascript:alert(1)", ""]
)
def test_it_never_leads_to_another_site(anna: Client, world: World, back: str) -> None:
    assert answer_at(anna, back=back).url == "/"
    assert anna.get("/confirm/", {"next": back}).url == "/"


def test_htmx_is_told_to_leave_the_page_and_comes_back_to_it(anna: Client, world: World) -> None:
    answer = hx(anna, "/account/tokens/new", {"name": "x"}, "/account/")
    assert answer.status_code == 403
    assert answer.headers["HX-Redirect"] == "/confirm/?next=/account/"
    assert answer.content == b""


def test_a_form_that_was_open_too_long_leads_back_to_its_page(anna: Client, world: World) -> None:
    referer = "http://testserver/account/tokens/new"
    answer = anna.post("/account/tokens/new", {"name": "x"}, headers={"Referer": referer})
    assert answer.url == "/confirm/?next=/account/tokens/new"


def test_the_answer_of_another_login_does_not_count(
    anna: Client, world: World, viewer: User
) -> None:
    confirmed(anna)
    anna.force_login(viewer)
    assert anna.get("/account/tokens/new").status_code == 302


@pytest.mark.row("X-10", level="contract")
def test_strangers_are_sent_to_the_login_not_to_the_question(client: Client, world: World) -> None:
    assert client.get("/account/tokens/new").url.startswith("/login/")
    assert client.get("/confirm/").url.startswith("/login/")


def test_pages_of_admin_with_secrets_ask_and_others_do_not(anna: Client, world: World) -> None:
    agent = make.an_agent()
    project = make.a_project()
    at = reverse("admin:runs_agentprofile_change", args=[agent.pk])
    guarded = [
        at,
        reverse("admin:runs_agentprofile_add"),
        reverse("admin:runs_agentprofile_delete", args=[agent.pk]),
        reverse("admin:runs_project_change", args=[project.pk]),
    ]
    for address in guarded:
        assert anna.get(address).url == f"/confirm/?next={address}"
        assert anna.post(address, {"name": "changed"}).url.startswith("/confirm/")
    removed = {"action": "delete_selected", "_selected_action": agent.pk, "post": "yes"}
    answer = anna.post(reverse("admin:runs_agentprofile_changelist"), removed)
    assert answer.url.startswith("/confirm/")
    assert AgentProfile.objects.filter(name=agent.name).exists()
    for name in ("agentprofile_changelist", "run_changelist", "settings_changelist"):
        assert "/confirm/" not in anna.get(reverse(f"admin:runs_{name}")).headers.get(
            "Location", ""
        )
    confirmed(anna)
    assert anna.get(at).status_code == 200


def test_a_new_password_needs_the_question_and_ends_other_sessions(
    anna: Client, operator: User, world: World
) -> None:
    other = Client()
    other.force_login(operator)
    assert anna.get("/admin/password_change/").url == "/account/password"
    assert anna.get("/account/password").url.startswith("/confirm/")
    confirmed(anna)
    for given, says in (
        ({"password": "short", "again": "short"}, "at least 10"),
        ({"password": "a rather long one", "again": "another long one"}, "differ"),
    ):
        answer = anna.post("/account/password", given)
        assert (answer.status_code, says in text_of(answer)) == (400, True)
    given = {"password": "a rather long one", "again": "a rather long one"}
    assert anna.post("/account/password", given).url == "/account/"
    assert "Your password is changed." in text_of(anna.get("/account/"))
    assert other.get("/").status_code == 302
    log_in = {"username": "anna", "password": "a rather long one"}
    assert Client().post(reverse("runs:login"), log_in).status_code == 302
