"""Verbs on people: roles, the way out and in, links, and the last admin, who always stays one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.contrib.sessions.models import Session
from django.db import connections, transaction
from django.test import Client

from runs.models import ApiToken, Notice
from runs.people import acts as people
from runs.people import api_tokens, confirming, invites, passwords
from runs.people.acts import PeopleRefused
from runs.people.roles import Role, role_of
from tests import make
from tests.fakes import START, World
from tests.patience import PATIENCE

pytestmark = pytest.mark.django_db

GOOD = "a rather long secret"


def told() -> list[tuple[str, str]]:
    return list(Notice.objects.order_by("pk").values_list("text", "by"))


@pytest.mark.row("X-10", level="pure")
@pytest.mark.parametrize(
    ("is_admin", "may_act", "role"),
    [
        pytest.param(True, True, Role.ADMIN, id="admins act too"),
        pytest.param(True, False, Role.ADMIN, id="an admin is one whatever else"),
        pytest.param(False, True, Role.OPERATOR, id="acts"),
        pytest.param(False, False, Role.VIEWER, id="looks"),
    ],
)
def test_the_role_follows_from_two_facts(is_admin: bool, may_act: bool, role: Role) -> None:
    assert role_of(is_admin=is_admin, may_act=may_act) == role


@pytest.mark.parametrize(
    ("minutes", "is_fresh"),
    [
        pytest.param(None, False, id="never asked"),
        pytest.param(0, True, id="just now"),
        pytest.param(9.99, True, id="almost ten minutes ago"),
        pytest.param(10, False, id="ten minutes ago"),
        pytest.param(-1, False, id="to come: the clock was set back"),
    ],
)
def test_an_answer_counts_for_ten_minutes(minutes: float | None, is_fresh: bool) -> None:
    at = None if minutes is None else START - timedelta(minutes=minutes)
    assert confirming.is_fresh(START, at) is is_fresh


@pytest.mark.parametrize("role", list(Role))
def test_a_new_person_has_the_role_and_no_password(world: World, role: Role) -> None:
    made = people.add(world.lab, "eve", role, by="anna")
    assert people.role(User.objects.get(pk=made.pk)) == role
    assert (made.is_staff, made.is_superuser) == (role == Role.ADMIN, role == Role.ADMIN)
    assert not made.has_usable_password()
    assert told() == [(f"eve was added as {role}", "anna")]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        pytest.param("eve smith", "valid username", id="a space"),
        pytest.param("", "cannot be blank", id="nothing"),
        pytest.param("x" * 151, "at most 150", id="too long"),
        pytest.param("ANNA", "somebody called", id="only the case differs"),
    ],
)
def test_a_name_that_cannot_be_used_makes_nobody(
    world: World, operator: User, name: str, says: str
) -> None:
    with pytest.raises(PeopleRefused) as refused:
        people.add(world.lab, name, Role.VIEWER, by="anna")
    assert (refused.value.field, says in refused.value.text) == ("name", True)
    assert User.objects.count() == 1
    assert told() == []


def test_a_name_is_kept_as_the_login_page_will_read_it(world: World) -> None:
    """Letters that look like others come in several spellings, and a login uses one of them."""
    made = people.add(world.lab, "\ufb01ona", Role.VIEWER, by="anna")
    assert made.username == "fiona"
    with pytest.raises(PeopleRefused):
        people.add(world.lab, "fiona", Role.VIEWER, by="anna")


def test_a_role_is_changed_told_and_not_told_twice(world: World, operator: User) -> None:
    eve = people.add(world.lab, "eve", Role.VIEWER, by="anna")
    assert people.change_role(world.lab, eve.pk, Role.OPERATOR, by="anna")
    assert not people.change_role(world.lab, eve.pk, Role.OPERATOR, by="anna")
    assert User.objects.get(pk=eve.pk).has_perm("runs.act")
    assert people.change_role(world.lab, eve.pk, Role.VIEWER, by="anna")
    assert not User.objects.get(pk=eve.pk).has_perm("runs.act")
    assert [text for text, _ in told()][1:] == [
        "eve is operator now, and was viewer",
        "eve is viewer now, and was operator",
    ]


def test_a_right_that_came_with_a_group_goes_with_the_role(world: World, operator: User) -> None:
    from django.contrib.auth.models import Group

    group = Group.objects.create(name="night shift")
    group.permissions.add(Permission.objects.get(codename="act"))
    eve = people.add(world.lab, "eve", Role.VIEWER, by="anna")
    eve.groups.add(group)
    assert people.role(eve) == Role.OPERATOR
    people.change_role(world.lab, eve.pk, Role.VIEWER, by="anna")
    assert people.role(eve) == Role.VIEWER


def test_who_is_deactivated_is_out_at_once_and_stays_out_of_old_sessions(
    world: World, operator: User
) -> None:
    eve = make.a_user("eve", operator=False)
    token, text = api_tokens.make(world.lab, eve, "ci", ApiToken.Scope.LOOK)
    hers, other = Client(), Client()
    hers.force_login(eve)
    other.force_login(operator)
    assert people.deactivate(world.lab, eve.pk, by="anna")
    assert not people.deactivate(world.lab, eve.pk, by="anna")
    assert hers.get("/healthz").status_code == 200
    assert hers.get("/").status_code == 302
    assert "_auth_user_id" in other.session
    assert api_tokens.find(world.lab, text) is None
    assert people.reactivate(world.lab, eve.pk, by="anna")
    assert not people.reactivate(world.lab, eve.pk, by="anna")
    assert hers.get("/").status_code == 302
    assert api_tokens.find(world.lab, text) == token
    assert [text for text, _ in told()][1:] == [
        "eve was deactivated",
        "eve was activated again",
    ]


def test_nobody_deactivates_themselves(world: World, operator: User) -> None:
    make.a_user("ada")
    with pytest.raises(PeopleRefused):
        people.deactivate(world.lab, operator.pk, by="anna")


LAST: list[Callable[[World, int], Any]] = [
    lambda world, pk: people.change_role(world.lab, pk, Role.OPERATOR, by="x"),
    lambda world, pk: people.deactivate(world.lab, pk, by="x"),
    lambda world, pk: people.forget_password(world.lab, pk, by="x"),
]


@pytest.mark.parametrize("act", LAST, ids=["demote", "deactivate", "take the password"])
def test_the_last_admin_stays_one(
    world: World, operator: User, act: Callable[[World, int], Any]
) -> None:
    people.add(world.lab, "invited", Role.ADMIN, by="anna")  # cannot log in yet
    gone = make.a_user("gone")
    gone.is_active = False
    gone.save()
    with pytest.raises(PeopleRefused) as refused:
        act(world, operator.pk)
    assert "anna is the only admin who can log in" in refused.value.text
    make.a_user("ada")
    act(world, operator.pk)


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_two_admins_who_demote_each_other_leave_one(world: World) -> None:
    ada, eve = make.a_user("ada"), make.a_user("eve")
    refusals: list[str] = []
    is_done = threading.Event()

    def demote_eve() -> None:
        try:
            people.change_role(world.lab, eve.pk, Role.VIEWER, by="ada")
        except PeopleRefused as refused:
            refusals.append(refused.text)
        finally:
            is_done.set()
            connections.close_all()

    hand = threading.Thread(target=demote_eve)
    with transaction.atomic():
        people.change_role(world.lab, ada.pk, Role.VIEWER, by="eve")
        hand.start()
        # The other one has to wait for us; if it does not, it still sees two admins.
        assert not is_done.wait(1)
    hand.join(PATIENCE)
    assert list(User.objects.filter(is_superuser=True)) == [eve]
    assert len(refusals) == 1


def test_a_link_lets_its_person_choose_a_password_once(world: World, operator: User) -> None:
    eve = people.add(world.lab, "eve", Role.VIEWER, by="anna")
    token = invites.link_token(world.lab, eve)
    assert invites.invited(world.lab, eve.pk, token) == eve
    assert invites.invited(world.lab, operator.pk, token) is None
    assert invites.invited(world.lab, 10**12, token) is None
    assert invites.invited(world.lab, eve.pk, token + "x") is None
    with pytest.raises(passwords.PasswordRefused):
        invites.accept(world.lab, eve.pk, token, "short")
    invites.accept(world.lab, eve.pk, token, GOOD)
    assert User.objects.get(pk=eve.pk).check_password(GOOD)
    assert told()[-1] == ("eve chose a password", "eve")
    with pytest.raises(invites.InviteRefused):
        invites.accept(world.lab, eve.pk, token, "another long secret")


def test_a_link_ends_after_three_days_with_a_newer_one_and_with_its_person(
    world: World, operator: User
) -> None:
    eve = people.add(world.lab, "eve", Role.VIEWER, by="anna")
    old = invites.link_token(world.lab, eve)
    world.clock.forward(days=3)
    assert invites.invited(world.lab, eve.pk, old) is not None
    world.clock.forward(seconds=1)
    assert invites.invited(world.lab, eve.pk, old) is None
    first = invites.link_token(world.lab, eve)
    second = invites.link_token(world.lab, people.forget_password(world.lab, eve.pk, by="anna"))
    assert invites.invited(world.lab, eve.pk, first) is None
    assert invites.invited(world.lab, eve.pk, second) is not None
    people.deactivate(world.lab, eve.pk, by="anna")
    assert invites.invited(world.lab, eve.pk, second) is None
    with pytest.raises(PeopleRefused):
        people.forget_password(world.lab, eve.pk, by="anna")


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_two_who_use_a_link_at_the_same_time_set_one_password(world: World) -> None:
    eve = people.add(world.lab, "eve", Role.VIEWER, by="anna")
    token = invites.link_token(world.lab, eve)
    barrier = threading.Barrier(2)
    chosen: list[str] = []

    def choose(password: str) -> None:
        barrier.wait(PATIENCE)
        try:
            invites.accept(world.lab, eve.pk, token, password)
            chosen.append(password)
        except invites.InviteRefused:
            pass
        finally:
            connections.close_all()

    hands = [threading.Thread(target=choose, args=[f"{GOOD} {n}"]) for n in range(2)]
    for hand in hands:
        hand.start()
    for hand in hands:
        hand.join(PATIENCE)
    assert len(chosen) == 1
    assert User.objects.get(pk=eve.pk).check_password(chosen[0])


def test_a_forgotten_password_ends_the_sessions(world: World, operator: User) -> None:
    eve = make.a_user("eve", operator=False)
    hers = Client()
    hers.force_login(eve)
    people.forget_password(world.lab, eve.pk, by="anna")
    assert not User.objects.get(pk=eve.pk).has_usable_password()
    assert not Session.objects.exists()


def test_sessions_that_are_over_are_forgotten(world: World, operator: User) -> None:
    for days in (-1, 1):
        Session.objects.create(
            session_key=f"key{days}", session_data="", expire_date=START + timedelta(days=days)
        )
    people.forget_ended_sessions(world.lab)
    assert [one.pk for one in Session.objects.all()] == ["key1"]
