"""Setting a project up on a forge, by its pages, the real adapters and HTTP: nothing in between is fake."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from django.test import Client

from runs.forges import quota
from runs.forges.trackers import Trackers
from runs.models import Forge, Project, QuotaHour, Settings
from tests.fakes import World
from tests.trackers.forge import Double, Gitea, GitHub
from tests.web.people import confirmed, hx, text_of
from trackers.http import over_network
from trackers.registry import Tools

pytestmark = pytest.mark.django_db(transaction=True)

STYLES: dict[str, Callable[..., Double]] = {"gitea": Gitea, "github": GitHub}
READ_ONLY = {
    "gitea": {"issue": "read", "repository": "read", "user": "read"},
    "github": {"issues": "read", "pull_requests": "read", "metadata": "read"},
}


@pytest.fixture(params=STYLES)
def forge(request: pytest.FixtureRequest, world: World) -> Iterator[Double]:
    """A forge on a real socket with the repository acme/shop, and a lab that asks it by HTTP."""
    made = STYLES[request.param](lambda: datetime.now(UTC))
    Settings.current()
    with made.serving():
        client = over_network(world.lab.paths.answers, world.lab.now)
        tools = Tools(now=lambda: datetime.now(UTC), client=lambda: client)
        trackers = Trackers(tools, lambda: world.lab.steady().seconds)
        world.lab = replace(world.lab, tracker_for=trackers.tracker_for, forges=trackers)
        made.repo("acme/shop", roles={"bot": "write"})
        world.repos.urls[f"{made.web}/acme/shop.git"] = "main"
        yield made
        client.close()


@pytest.mark.row("C-42", level="contract")
def test_from_the_clone_address_to_the_first_ready_issue(
    anna: Client, world: World, forge: Double, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    source, token = f"{forge.web}/acme/shop.git", forge.token("bot")
    confirmed(anna)
    if forge.style == "gitea":  # of another host, GitHub has to be named
        first = text_of(anna.post("/projects/new", {"source": source}))
        assert "repository acme/shop. No account there is set up yet." in first
    given = {"kind": forge.style, "name": "Robot", "web": forge.web, "api": forge.api}
    assert anna.post("/forges/new", {**given, "token": token}).status_code == 303
    row = Forge.objects.get()

    told = {"source": source, "tracker": f"forge-{row.pk}"}
    tested = text_of(hx(anna, "/projects/new/test", told, at="/projects/new"))
    assert "shows acme/shop." in tested
    assert "no label “ready-for-agent” yet" in tested
    assert anna.post("/projects/new", told).status_code == 303
    project = Project.objects.get()
    assert (project.tracker, project.tracker_root) == (forge.style, f"{row.pk}/acme/shop")

    page = f"/projects/{project.pk}/tracker/"
    made = hx(anna, f"{page}label", at=page)
    assert "The label ready-for-agent is there." in text_of(made)
    assert "no label" not in text_of(hx(anna, f"{page}test", at=page))
    assert "webhooks" in text_of(anna.get(f"/projects/{project.pk}/"))
    quota.settle(world.lab)
    assert QuotaHour.objects.filter(purpose="setting up").exists()
    shown = "".join(
        text_of(anna.get(one))
        for one in ("/forges/", f"/forges/{row.pk}/", page, f"/projects/{project.pk}/", "/audit/")
    )
    assert token not in shown + tested + caplog.text
    forge.check()


def test_a_token_that_may_not_write_is_told_in_words(
    anna: Client, world: World, forge: Double
) -> None:
    confirmed(anna)
    given = {"kind": forge.style, "name": "Robot", "web": forge.web, "api": forge.api}
    token = forge.token("bot", permissions=READ_ONLY[forge.style])
    anna.post("/forges/new", {**given, "token": token})
    told = {"source": f"{forge.web}/acme/shop.git", "tracker": f"forge-{Forge.objects.get().pk}"}
    anna.post("/projects/new", told)
    page = f"/projects/{Project.objects.get().pk}/tracker/"
    refused = hx(anna, f"{page}label", at=page)
    assert refused.status_code == 409
    assert re.search(r"The label was not made: .+ Nothing else was changed\.", text_of(refused))
    wrong = text_of(anna.post(f"{page}test"))
    assert "missing" in wrong or "could not be tried" in wrong


def test_a_wrong_token_needs_a_person_and_says_so_on_the_card(
    anna: Client, world: World, forge: Double
) -> None:
    confirmed(anna)
    given = {"kind": forge.style, "name": "Robot", "web": forge.web, "api": forge.api}
    anna.post("/forges/new", {**given, "token": "nonsense"})
    told = {"source": f"{forge.web}/acme/shop.git", "tracker": f"forge-{Forge.objects.get().pk}"}
    anna.post("/projects/new", told)
    project = Project.objects.get()
    page = f"/projects/{project.pk}/tracker/"
    assert "missing" in text_of(hx(anna, f"{page}test", at=page))
    card = text_of(anna.get(f"/projects/{project.pk}/"))
    assert "needs you" in card
    assert "nonsense" not in card
