"""What `labctl` asks works on every forge, and the agent holds no token of it (X-01, X-05)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from runs.core import tokens
from runs.forges.trackers import Trackers
from runs.models import Forge, Notice, Run
from tests import make
from tests.fakes import START, World
from tests.trackers.forge import Double, Gitea, GitHub, faults, forgejo
from tests.trackers.forge.visitor import a_client
from tests.web.people import text_of
from trackers.registry import Tools

pytestmark = pytest.mark.django_db(transaction=True)

TOKEN = tokens.new_token()


@pytest.fixture(params=[Gitea, forgejo, GitHub], ids=["gitea", "forgejo", "github"])
def forge(request: pytest.FixtureRequest, world: World) -> Iterator[Double]:
    """A forge with issue 7, on which run 1 works; its branch is pushed."""
    made: Double = request.param(now=world.clock)
    row = Forge.objects.create(
        name="forge",
        kind=made.style,
        api=made.api,
        web=made.web,
        credential={"token": made.token("bot")},
        created_at=START,
    )
    client = a_client(made)
    trackers = Trackers(Tools(now=world.clock, client=lambda: client), lambda: world.clock.passed)
    world.lab = replace(world.lab, tracker_for=trackers.tracker_for, forges=trackers)
    repo = made.repo("acme/shop", roles={"bot": "write"})
    repo.issue("Add retries", number=7, labels=["ready-for-agent"], body="Thrice.")
    repo.issue("Later", number=9)
    project = make.a_project(
        "shop", tracker=made.style, forge=row, tracker_root=f"{row.pk}/acme/shop"
    )
    world.repos.origins[str(project.repo(world.lab.paths))] = {"afk/7": "a" * 40}
    make.a_run(project, agent="Claude", fork_point="f" * 40, token_hash=tokens.hash_token(TOKEN))
    yield made
    made.check()


@pytest.fixture
def agent() -> Client:
    return Client(headers={"Authorization": f"Bearer {TOKEN}"}, enforce_csrf_checks=True)


def _sent(agent: Client, address: str, **content: Any) -> Any:
    return agent.post(address, json.dumps(content), content_type="application/json")


@pytest.mark.row("X-01", "LAB-35", level="contract")
def test_an_agent_reads_comments_and_delivers_through_labsite(
    agent: Client, forge: Double, world: World
) -> None:
    listed = agent.get("/agent/issues").json()["issues"]
    assert [(row["key"], row["title"]) for row in listed] == [("7", "Add retries"), ("9", "Later")]
    assert listed[0]["url"].endswith("/acme/shop/issues/7")

    for _ in range(2):
        assert _sent(agent, "/agent/issues/7/comments", body="Begun.").status_code == 201
    shown = agent.get("/agent/issues/7").json()
    assert [one["body"] for one in shown["comments"]] == [
        f"Begun.\n\n_Claude, run {Run.objects.get().pk}, through labsite_"
    ]

    assert agent.get("/agent/pull").status_code == 404
    made = [
        _sent(agent, "/agent/pull", title="Add retries", body="Done.", base="").json()
        for _ in range(2)
    ]
    assert made[0]["number"] == made[1]["number"]
    assert "Closes #7" in made[0]["body"]
    assert "/acme/shop/pull" in made[0]["url"]
    assert agent.get("/agent/pull").json()["state"] == "open"
    for _ in range(2):
        assert _sent(agent, "/agent/pull/comments", body="Look.").status_code == 201
    assert len(forge.calls("/comments", "POST")) == 2
    assert Notice.objects.filter(kind="pull.opened").count() == 1


@pytest.mark.row("X-05", level="contract")
def test_a_forge_in_trouble_is_a_sentence_to_the_agent(agent: Client, forge: Double) -> None:
    forge.faults.add(faults.status(503), times=99)
    answer = agent.get("/agent/issues")
    assert answer.status_code == 502
    assert answer.json()["text"].endswith(".")
    assert "Traceback" not in text_of(answer)
