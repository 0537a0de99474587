"""A forge's token is in no log, page, address, argument list or traceback, whatever happens (X-05)."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core import serializers
from django.db import connection
from django.test import Client
from django.urls import reverse

from runs import tick
from runs.agents import orders
from runs.forges import acts as forges
from runs.forges import tracker_cache
from runs.forges.trackers import Trackers
from runs.issues import acts as issues
from runs.models import Forge, Notice, Project, Run, Settings
from tests import make
from tests.fakes import START, World
from tests.trackers.forge import Double, Gitea, GitHub, faults
from tests.trackers.forge.visitor import a_client
from trackers.registry import Tools

pytestmark = pytest.mark.django_db(transaction=True)

TOKEN = "tok-4f9c1ac0ffee"
FAULTS = {
    "fine": None,
    "500": faults.status(500),
    "401": faults.status(401),
    "403": faults.status(403),
    "429": faults.status(429),
}


@pytest.fixture(params=[Gitea, GitHub], ids=["gitea", "github"])
def forge(request: pytest.FixtureRequest, world: World) -> Iterator[Double]:
    made: Double = request.param(now=world.clock)
    row = Forge.objects.create(
        name="ours",
        kind=made.style,
        api=made.api,
        web=made.web,
        credential={"token": made.token("bot", TOKEN)},
        created_at=START,
    )
    client = a_client(made, world.lab.paths.answers)
    trackers = Trackers(Tools(now=world.clock, client=lambda: client), lambda: world.clock.passed)
    world.lab = replace(world.lab, tracker_for=trackers.tracker_for, forges=trackers)
    repo = made.repo("acme/shop", roles={"bot": "write"})
    repo.issue("Add retries", number=7, labels=["ready-for-agent"])
    make.a_project(
        "shop",
        tracker=made.style,
        forge=row,
        tracker_root=f"{row.pk}/acme/shop",
        url=f"{made.web}/acme/shop.git",
        is_auto=True,
    )
    Settings.current()
    yield made


def _everything(world: World, caplog: pytest.LogCaptureFixture, client: Client) -> Iterator[str]:
    """Every place where somebody could read it, by a name."""
    project = Project.objects.get()
    formatter = logging.Formatter()
    yield from (formatter.format(record) + repr(record.__dict__) for record in caplog.records)
    for address in (
        reverse("runs:overview"),
        *(reverse(f"runs:{name}", args=[project.pk]) for name in ("project", "waiting", "tracker")),
        *(reverse(f"runs:{name}") for name in ("audit", "forges", "settings")),
        reverse("runs:forge", args=[project.forge_id]),
        reverse("admin:runs_project_change", args=[project.pk]),
    ):
        answer = client.get(address, follow=True)
        assert answer.status_code == 200, address
        yield answer.content.decode()
    yield from (notice.text for notice in Notice.objects.all())
    yield serializers.serialize("json", Project.objects.all())
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')  # noqa: S608
            yield str(cursor.fetchall())
    for path in Path(world.lab.paths.state).rglob("*"):
        if path.is_file():
            yield path.read_bytes().decode("utf-8", "replace")


def _try(act: Callable[[], object]) -> str:
    try:
        act()
    except Exception as error:
        chain = "".join(traceback.format_exception(error))
        return f"{error!r} {error} {chain}"
    return ""


@pytest.mark.any_database
@pytest.mark.row("X-05", level="contract")
@pytest.mark.parametrize("fault", FAULTS)
def test_the_token_of_a_forge_is_nowhere(
    world: World,
    forge: Double,
    fault: str,
    client: Client,
    operator: User,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    client.force_login(operator)
    project = Project.objects.select_related("forge").get()
    run = make.a_run(project, "8")
    world.live(run)
    if (answer := FAULTS[fault]) is not None:
        forge.faults.add(answer, times=99)
    told = [
        _try(lambda: tick.tick(world.lab, force=True)),
        _try(lambda: tracker_cache.refresh(world.lab, project.pk)),
        _try(lambda: issues.comment(world.lab, project, "7", body="Begun.", by="anna")),
        _try(lambda: forges.examine(world.lab, project)),
        _try(lambda: forges.create_ready_label(world.lab, project, by="anna")),
        repr(project.forge) + repr(project.git_token) + repr(vars(project.forge)),
        repr(world.lab.tracker_for(project.tracker)),
    ]
    agent = make.an_agent()
    order = orders.make(world.lab, run, agent, Settings.current())
    told += [repr(order.argv), repr(order.env)]
    for text in (*told, *_everything(world, caplog, client)):
        assert TOKEN not in text
    asked = [f"{line.path}?{line.query}" for line in forge.log]
    assert asked and not any(TOKEN in one for one in asked)
    assert Run.objects.get(pk=run.pk).outcome == ""
