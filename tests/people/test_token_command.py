"""`./lab manage api_token`: prints a token once, and says in a sentence what is wrong."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from runs.models import ApiToken, Notice
from runs.people import api_tokens
from tests import make
from tests.fakes import START, World

pytestmark = pytest.mark.django_db


@pytest.fixture
def anna(world: World) -> User:
    return make.a_user("anna")


def run(*argv: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("api_token", *argv, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_the_token_is_printed_alone_and_works(world: World, anna: User) -> None:
    out, err = run("anna", "--name", "nightly script", "--scope", "act")

    found = api_tokens.find(world.lab, out.strip())
    assert found is not None
    assert (found.user, found.name, found.scope, found.expires_at) == (
        anna,
        "nightly script",
        "act",
        None,
    )
    assert err == ""
    assert out == out.strip() + "\n"
    assert Notice.objects.get().by == "anna"
    assert out.strip() not in Notice.objects.get().text


def test_it_may_look_unless_asked_and_may_end(world: World, anna: User) -> None:
    out, _ = run("anna", "--name", "x", "--days", "7")
    found = ApiToken.objects.get()
    assert (found.scope, found.expires_at) == ("look", START + timedelta(days=7))
    world.clock.forward(days=7)
    assert api_tokens.find(world.lab, out.strip()) is None


def test_who_may_only_look_is_told_so(world: World) -> None:
    make.a_user("vera", operator=False)
    out, err = run("vera", "--name", "x", "--scope", "act")
    assert out.startswith("lab_")
    assert "may only look" in err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["nobody", "--name", "x"], "no user 'nobody'"),
        (["anna\0", "--name", "x"], "no user"),
        (["anna\udcff", "--name", "x"], "no user"),
        (["anna", "--name", "  "], "name of 1 to 100"),
        (["anna", "--name", "x" * 101], "name of 1 to 100"),
        (["anna", "--name", "a\nb"], "name of 1 to 100"),
        (["anna", "--name", "\udcff"], "name of 1 to 100"),
        (["anna", "--name", "x", "--scope", "everything"], "look or act"),
        (["anna", "--name", "x", "--scope", ""], "look or act"),
        (["anna", "--name", "x", "--days", "0"], "1 to 3650"),
        (["anna", "--name", "x", "--days", "-1"], "1 to 3650"),
        (["anna", "--name", "x", "--days", "9" * 5000], "1 to 3650"),
        (["anna", "--name", "x", "--days", "soon"], "1 to 3650"),
        (["gone", "--name", "x"], "not let in"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_no_token(anna: User, argv: list[str], said: str) -> None:
    gone = make.a_user("gone")
    gone.is_active = False
    gone.save()
    with pytest.raises(CommandError) as refused:
        run(*argv)
    assert said in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1
    assert str(refused.value).isascii()
    assert refused.value.returncode == 1
    assert not ApiToken.objects.exists()


def test_a_name_that_lives_is_not_given_twice(anna: User) -> None:
    run("anna", "--name", "nightly")
    with pytest.raises(CommandError, match="has a token called nightly already"):
        run("anna", "--name", "nightly")
    assert ApiToken.objects.count() == 1
