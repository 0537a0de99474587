"""The pages on people: who sees them, what they say, and the way of a new person in."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.test import Client
from django.urls import reverse

from runs.models import ApiToken, Notice
from runs.people import acts as people
from runs.people import api_tokens, invites
from runs.people.roles import Role
from tests import make
from tests.fakes import World
from tests.web.people import confirmed, hx, text_of

pytestmark = pytest.mark.django_db

GOOD = "a rather long secret"


@pytest.fixture
def admin(anna: Client, world: World) -> Client:
    return confirmed(anna)


def link_in(answer: Any) -> str:
    found = re.search(r'id="link">http://testserver(/invite/[^<]+)<', text_of(answer))
    assert found
    return found[1]


def test_a_new_person_is_added_chooses_a_password_and_is_in(admin: Client, world: World) -> None:
    answer = admin.post("/people/new", {"name": "eve", "role": "operator"})
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    link = link_in(answer)
    eve = Client()
    page = text_of(eve.get(link))
    assert "You log in as <b>eve</b>" in page
    done = eve.post(link, {"password": GOOD, "again": GOOD})
    assert done.url == "/"
    assert eve.get("/").status_code == 200
    assert eve.get("/people/").status_code == 403
    assert people.role(User.objects.get(username="eve")) == Role.OPERATOR
    for again in (eve.get(link), eve.post(link, {"password": GOOD, "again": GOOD})):
        assert again.status_code == 404
        assert "does not work any more" in text_of(again)
    link_text = link.split("/")[3]
    assert link_text not in str(list(Notice.objects.values()))
    assert link_text not in text_of(admin.get("/people/"))


@pytest.mark.parametrize(
    ("given", "field", "says"),
    [
        pytest.param({"name": "", "role": "viewer"}, "name", "Write a name.", id="no name"),
        pytest.param({"name": "a b", "role": "viewer"}, "name", "valid username", id="a space"),
        pytest.param({"name": "anna", "role": "viewer"}, "name", "already", id="taken"),
        pytest.param({"name": "eve", "role": "king"}, "role", "valid choice", id="no such role"),
        pytest.param({"name": "eve"}, "role", "required", id="no role"),
    ],
)
def test_what_is_wrong_is_said_at_its_field_and_nobody_is_made(
    admin: Client, given: dict[str, str], field: str, says: str
) -> None:
    answer = admin.post("/people/new", given)
    assert answer.status_code == 400
    assert says in text_of(answer).split(f'id="id_{field}_error"')[1].split("</p>")[0]
    assert User.objects.count() == 1


@pytest.mark.parametrize(
    ("password", "again", "says"),
    [
        pytest.param("short", "short", "at least 10 characters", id="short"),
        pytest.param(GOOD, "another one here", "differ", id="typing error"),
        pytest.param("", "", "required", id="nothing"),
        pytest.param("eve-1815-eve", "eve-1815-eve", "too similar", id="the name"),
    ],
)
def test_a_password_that_cannot_be_used_keeps_the_link(
    admin: Client, password: str, again: str, says: str
) -> None:
    name = "eve-1815-eve" if "1815" in password else "eve"
    link = link_in(admin.post("/people/new", {"name": name, "role": "viewer"}))
    answer = Client().post(link, {"password": password, "again": again})
    assert answer.status_code == 400
    assert says in text_of(answer)
    assert Client().get(link).status_code == 200


def test_a_link_that_an_earlier_version_made_still_works(world: World) -> None:
    """What signs links is no name of a module that may move."""

    class Earlier(PasswordResetTokenGenerator):
        key_salt = "runs.work.invites"

        def _now(self) -> Any:
            return world.lab.now().replace(tzinfo=None)

    people.add(world.lab, "eve", Role.VIEWER, by="anna")
    eve = User.objects.get(username="eve")
    assert invites.invited(world.lab, eve.pk, Earlier().make_token(eve)) == eve


def test_the_list_shows_everybody_with_role_and_state(admin: Client, world: World) -> None:
    make.a_user("vera", operator=False)
    out = make.a_user("otto", operator=False)
    people.deactivate(world.lab, out.pk, by="anna")
    people.add(world.lab, "ines", Role.OPERATOR, by="anna")
    page = text_of(admin.get("/people/")).split("<tbody")[1]
    rows = {
        name: page.split(f">{name}</a>")[1].split("</tr>")[0]
        for name in ("anna", "vera", "otto", "ines")
    }
    assert ">admin<" in rows["anna"]
    assert ">you<" in rows["anna"]
    assert ">viewer<" in rows["vera"]
    assert ">deactivated<" in rows["otto"]
    assert ">operator<" in rows["ines"]
    assert ">no password yet<" in rows["ines"]


@pytest.mark.parametrize("rows", [1, 11])
def test_the_list_takes_the_same_number_of_queries_whatever_its_length(
    admin: Client, world: World, rows: int, django_assert_num_queries: Any
) -> None:
    for number in range(rows):
        make.a_user(f"person-{number}", operator=False)
    admin.get("/people/")
    with django_assert_num_queries(7):
        admin.get("/people/")


def test_role_way_out_and_way_in_are_told_with_the_name(admin: Client, world: World) -> None:
    eve = make.a_user("eve", operator=False)
    at = f"/people/{eve.pk}/"
    assert admin.post(f"{at}role", {"role": "operator"}).status_code == 303
    assert admin.post(f"{at}role", {"role": "nonsense"}).status_code == 303
    assert admin.post(f"{at}deactivate").status_code == 303
    assert "deactivated" in text_of(admin.get(at))
    assert admin.post(f"{at}activate").status_code == 303
    link = link_in(admin.post(f"{at}link"))
    assert Client().get(link).status_code == 200
    assert list(Notice.objects.order_by("pk").values_list("text", "by")) == [
        ("eve is operator now, and was viewer", "anna"),
        ("eve was deactivated", "anna"),
        ("eve was activated again", "anna"),
        ("a new link was made for eve to choose a password", "anna"),
    ]


def test_the_last_admin_is_told_why_nothing_happens(
    admin: Client, operator: User, world: World
) -> None:
    at = f"/people/{operator.pk}/"
    for act, given in (("role", {"role": "viewer"}), ("link", {}), ("deactivate", {})):
        answer = hx(admin, f"{at}{act}", given, at)
        assert answer.status_code == 409
        assert "only admin" in text_of(answer) or "yourself" in text_of(answer)
    operator.refresh_from_db()
    assert (operator.is_superuser, operator.is_active) == (True, True)
    assert not Notice.objects.exists()


def test_an_admin_who_steps_down_is_led_away_from_the_page(
    admin: Client, operator: User, world: World
) -> None:
    make.a_user("ada")
    answer = admin.post(f"/people/{operator.pk}/role", {"role": "operator"})
    assert answer.url == "/"
    assert "anna is operator now." in text_of(admin.get("/"))
    assert admin.get("/people/").status_code == 403


def test_an_admin_sees_tokens_without_their_text_and_revokes_them(
    admin: Client, world: World
) -> None:
    eve = make.a_user("eve", operator=False)
    token, text = api_tokens.make(world.lab, eve, "nightly", ApiToken.Scope.LOOK)
    page = text_of(admin.get(f"/people/{eve.pk}/"))
    assert "nightly" in page
    assert token.hint in page
    assert text not in page
    other = make.a_user("ada")
    wrong = f"/people/{other.pk}/tokens/{token.pk}/revoke"
    assert admin.post(wrong).status_code == 404
    assert admin.post(f"/people/{eve.pk}/tokens/{token.pk}/revoke").status_code == 303
    assert api_tokens.find(world.lab, text) is None
    assert Notice.objects.latest("pk").by == "anna"


@pytest.mark.row("X-10", level="contract")
def test_pages_on_people_are_for_admins_only(
    vera: Client, viewer: User, client: Client, world: World
) -> None:
    at = f"/people/{viewer.pk}/"
    for address in ("/people/", "/people/new", at):
        answer = vera.get(address)
        assert answer.status_code == 403
        assert "Only admins may do this." in text_of(answer)
        assert client.get(address).url.startswith("/login/")
    for action in ("role", "deactivate", "activate", "link", "tokens/1/revoke"):
        assert hx(vera, f"{at}{action}", {"role": "admin"}, "/").status_code == 403
        assert client.post(f"{at}{action}").url.startswith("/login/")
    assert people.role(User.objects.get(pk=viewer.pk)) == Role.VIEWER


def test_people_who_are_not_there_are_404(admin: Client) -> None:
    assert admin.get("/people/999/").status_code == 404
    for action in ("role", "deactivate", "activate", "link"):
        assert admin.post(f"/people/999/{action}", {"role": "viewer"}).status_code == 404


def test_who_manages_people_is_asked_again_first(
    anna: Client, operator: User, world: World
) -> None:
    assert anna.get("/people/").status_code == 200
    for address in ("/people/new", f"/people/{operator.pk}/"):
        assert anna.get(address).url == f"/confirm/?next={address}"
    eve = make.a_user("eve", operator=False)
    answer = anna.post(f"/people/{eve.pk}/role", {"role": "admin"})
    assert answer.url.startswith("/confirm/")
    assert people.role(User.objects.get(pk=eve.pk)) == Role.VIEWER


def test_people_are_not_changed_in_admin_where_nothing_is_told(admin: Client) -> None:
    assert admin.get("/admin/auth/user/").status_code == 404


@pytest.mark.row("X-10", level="contract")
def test_a_deactivated_person_cannot_log_in_and_is_not_told_why(world: World) -> None:
    eve = make.a_user("eve", operator=False)
    make.a_user("ada")
    people.deactivate(world.lab, eve.pk, by="ada")
    given = {"username": "eve", "password": "correct horse battery"}
    answer = Client().post(reverse("runs:login"), given)
    assert "Wrong name or password" in text_of(answer)
