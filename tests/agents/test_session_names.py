"""In whose name an agent commits."""

from __future__ import annotations

import pytest

from runs.agents import orders
from runs.core.ports import SeamError
from runs.models import Settings
from tests import make
from tests.fakes import World

pytestmark = pytest.mark.django_db

NAMES = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")


def _named(world: World, **profile: object) -> list[str | None]:
    run = make.a_run(make.a_project())
    order = orders.make(world.lab, run, make.an_agent(**profile), Settings.current())
    return [order.env.get(name) for name in NAMES]


def test_the_name_of_the_users_own_git_is_left_to_git(world: World) -> None:
    assert _named(world) == [None] * 4


def test_an_agent_commits_as_labsite_where_git_knows_no_name(world: World) -> None:
    world.repos.named = None
    assert _named(world) == ["labsite", "labsite@localhost"] * 2


def test_a_profile_may_set_another_name(world: World) -> None:
    world.repos.named = None
    found = _named(world, env={"GIT_AUTHOR_NAME": "Robot"})
    assert found == ["Robot", "labsite@localhost", "labsite", "labsite@localhost"]


def test_a_git_that_cannot_be_asked_stops_no_start(world: World, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    def fail(repo: object) -> None:
        raise SeamError("no answer")

    monkeypatch.setattr(world.repos, "committer", fail)
    assert _named(world) == [None] * 4
