"""Commits that git of this user signs, where nobody can type a passphrase (World: all faked)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runs.agents import orders
from runs.core.ports import Order, SeamError
from runs.models import AgentProfile, Notice, Project
from tests import make
from tests.fakes import World
from tests.world.stories import start

pytestmark = pytest.mark.django_db(transaction=True)

WHY = "git commit-tree failed: error: gpg failed to sign the data"
OFF = {
    "GIT_CONFIG_KEY_0": "commit.gpgsign",
    "GIT_CONFIG_VALUE_0": "false",
    "GIT_CONFIG_KEY_1": "tag.gpgsign",
    "GIT_CONFIG_VALUE_1": "false",
}


@pytest.fixture
def project(world: World) -> Project:
    world.tracker.add_root("demo")
    return make.a_project(agent=make.an_agent())


def order_of(world: World, project: Project) -> Order:
    run = start(world, project)
    return world.sessions.orders[run.session]


def test_a_run_signs_nothing_where_nobody_could_type_the_passphrase(
    world: World, project: Project
) -> None:
    world.repos.unsigned = WHY
    order = order_of(world, project)
    assert {**order.env, **OFF, "GIT_CONFIG_COUNT": "2"} == order.env
    (told,) = [one.text for one in Notice.objects.all() if "Signing is off" in one.text]
    assert WHY in told


def test_what_can_be_signed_is(world: World, project: Project) -> None:
    order = order_of(world, project)
    assert "GIT_CONFIG_COUNT" not in order.env
    assert not Notice.objects.filter(text__contains="Signing").exists()


def test_settings_of_git_that_the_profile_gives_stay(world: World, project: Project) -> None:
    world.repos.unsigned = WHY
    env = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "a.b", "GIT_CONFIG_VALUE_0": "c"}
    AgentProfile.objects.update(env=env)
    found = order_of(world, project).env
    assert {**found, **env, "GIT_CONFIG_COUNT": "3"} == found
    assert (found["GIT_CONFIG_KEY_1"], found["GIT_CONFIG_KEY_2"]) == (
        "commit.gpgsign",
        "tag.gpgsign",
    )


def test_a_run_starts_where_git_did_not_say(
    world: World, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = order_of(world, project)

    def fail(env: object) -> str:
        raise SeamError("git config gave no answer")

    monkeypatch.setattr(world.repos, "why_unsigned", fail)
    assert orders.without_signing(world.lab, replace(order)) == (order, "")
