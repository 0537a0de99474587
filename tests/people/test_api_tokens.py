"""Personal tokens of the HTTP API: hashed, shown once, ended by revocation, expiry and their owner."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connections

from runs.models import ApiToken, Notice
from runs.people import api_tokens
from tests.fakes import START, World
from tests.make import a_user
from tests.patience import PATIENCE

pytestmark = pytest.mark.django_db


def test_only_a_hash_is_stored_and_the_text_finds_the_token(world: World) -> None:
    token, text = api_tokens.make(world.lab, a_user(), "ci", ApiToken.Scope.LOOK)
    stored = ApiToken.objects.values().get()
    assert text not in map(str, stored.values())
    assert text.startswith(token.hint)
    assert api_tokens.find(world.lab, text) == token
    assert api_tokens.find(world.lab, text + "x") is None


@pytest.mark.row("X-10", level="contract")
def test_a_revoked_token_is_dead_and_revoking_again_says_so(world: World) -> None:
    token, text = api_tokens.make(world.lab, a_user(), "ci", ApiToken.Scope.ACT)
    assert api_tokens.revoke(world.lab, token, by="anna") is True
    assert api_tokens.revoke(world.lab, token, by="anna") is False
    assert api_tokens.find(world.lab, text) is None
    assert [n.by for n in Notice.objects.all()] == ["anna", "anna"]
    assert text not in "".join(n.text for n in Notice.objects.all())


def test_a_person_has_one_living_token_of_a_name_whoever_asks(world: World) -> None:
    """Of two with one name nobody knows which to revoke."""
    anna = a_user()
    token, _ = api_tokens.make(world.lab, anna, "ci", ApiToken.Scope.LOOK)
    with pytest.raises(api_tokens.NameTaken, match="token called ci already"):
        api_tokens.make(world.lab, anna, "ci", ApiToken.Scope.LOOK)
    api_tokens.make(world.lab, a_user("eve"), "ci", ApiToken.Scope.LOOK)
    api_tokens.revoke(world.lab, token, by="anna")
    api_tokens.make(world.lab, anna, "ci", ApiToken.Scope.LOOK)
    assert ApiToken.objects.filter(user=anna, revoked_at=None).count() == 1


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_two_who_make_a_token_of_a_name_at_the_same_time_make_one(world: World) -> None:
    anna = a_user()
    both, refused = threading.Barrier(2), []

    def make() -> None:
        try:
            both.wait(PATIENCE)
            api_tokens.make(world.lab, anna, "ci", ApiToken.Scope.LOOK)
        except api_tokens.NameTaken:
            refused.append(1)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=make) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert ApiToken.objects.count() == 1
    assert len(refused) == 1


@pytest.mark.row("X-10", level="contract")
def test_a_token_ends_at_its_time_and_with_its_owner(world: World) -> None:
    user = a_user()
    soon = START + timedelta(hours=1)
    _, text = api_tokens.make(world.lab, user, "ci", ApiToken.Scope.LOOK, soon)
    _, lasting = api_tokens.make(world.lab, user, "cron", ApiToken.Scope.LOOK)
    assert api_tokens.find(world.lab, text) is not None
    world.clock.forward(hours=1)
    assert api_tokens.find(world.lab, text) is None
    assert api_tokens.find(world.lab, lasting) is not None
    user.is_active = False
    user.save()
    assert api_tokens.find(world.lab, lasting) is None
