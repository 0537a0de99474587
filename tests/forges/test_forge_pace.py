"""A quota that runs short: polling slows and stops before people do, in words, and starts again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from runs import tick
from runs.dispatch import start_requests
from runs.forges import quota
from runs.forges.cadence_rules import BY_QUOTA
from runs.forges.trackers import Trackers
from runs.kept import parked
from runs.models import Forge, Project, Quota, Run, Settings, StartRequest
from tests import make
from tests.fakes import START, World
from tests.trackers.forge import GitHub, faults
from tests.trackers.forge.visitor import a_client
from trackers.http import Client
from trackers.registry import Tools

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]

LIMIT = 60


@pytest.fixture
def forge(world: World) -> GitHub:
    """A GitHub that allows sixty calls an hour, and one project with an issue that may start."""
    made = GitHub(world.clock, limit=LIMIT)
    row = Forge.objects.create(
        name="forge",
        kind="github",
        api=made.api,
        web=made.web,
        credential={"token": made.token("bot")},
        created_at=START,
    )
    client = _client(made, world)
    trackers = Trackers(Tools(now=world.clock, client=lambda: client), lambda: world.clock.passed)
    world.lab = replace(world.lab, tracker_for=trackers.tracker_for, forges=trackers)
    Settings.current()
    Settings.objects.update(agent=make.an_agent())
    repo = made.repo("acme/shop", roles={"bot": "write"})
    repo.issue("Add retries", number=7, labels=["ready-for-agent"])
    make.a_project(
        "shop", tracker="github", forge=row, tracker_root=f"{row.pk}/acme/shop", is_auto=True
    )
    return made


def _client(forge: GitHub, world: World) -> Client:
    """Nothing is kept, so each answer costs; the wall clock of the test is that of everybody."""
    client = a_client(forge)
    client.meter._steady = lambda: world.clock.passed
    client._pause = lambda seconds: None
    return client


@pytest.mark.long
@pytest.mark.row("MALA-W-76", level="contract")
def test_polling_slows_then_stops_and_a_person_is_still_served(world: World, forge: GitHub) -> None:
    Project.objects.update(trusted="nobody")  # so that it is polled and nothing starts
    Settings.objects.update(people_percent=80)
    for _ in range(12 * 20):
        world.clock.forward(seconds=5)
        tick.tick(world.lab)
    project = Project.objects.get()
    assert project.asked_why == BY_QUOTA
    assert project.asked_every is not None and project.asked_every >= 120
    polls = len(forge.calls("/issues"))
    assert polls < 20 * 60 / 45 / 2

    Settings.objects.update(people_percent=95)
    world.clock.forward(seconds=300)
    asked = len(forge.log)
    tick.tick(world.lab, force=True)
    assert len(forge.log) == asked
    row = Quota.objects.get()
    assert (row.limit, row.remaining) == (LIMIT, LIMIT - asked)
    assert (Project.objects.get().asked_every or 0) >= 20 * 60

    start_requests.request(world.lab, Project.objects.get(), by="anna", wanted="7")
    tick.tick(world.lab, force=True)
    assert StartRequest.objects.get().answer == "started"
    assert Run.objects.get().issue_key == "7"


def test_a_limit_that_the_forge_tells_ends_nothing_and_is_waited_for(
    world: World, forge: GitHub
) -> None:
    project = Project.objects.get()
    run = make.a_run(project, "8")
    world.live(run)
    forge.faults.add(faults.limited("600"), times=99)
    tick.tick(world.lab, force=True)
    asked = len(forge.log)
    again = f"{world.clock.now + timedelta(seconds=600):%H:%M} UTC"
    assert again in Project.objects.get().warning
    for _ in range(3):
        world.clock.forward(seconds=60)
        tick.tick(world.lab, force=True)
    assert len(forge.log) == asked
    forge.faults.clear()
    world.clock.forward(minutes=10)
    tick.tick(world.lab, force=True)
    assert len(forge.log) > asked
    assert Project.objects.get().warning == ""
    assert Run.objects.get(pk=run.pk).outcome == ""
    quota.settle(world.lab)


@pytest.mark.row("LAB-121", level="contract")
def test_a_page_of_parked_work_costs_one_call_and_is_shown_without_it(
    world: World, forge: GitHub
) -> None:
    project = Project.objects.get()
    for key in ("3", "4"):
        world.repos.add_worktree(
            project.repo(world.lab.paths), world.lab.paths.worktrees / key, f"afk/{key}", "f" * 40
        )
    (repo,) = forge.repos.values()
    repo.pull("afk/3", "merged")
    found = parked.listing(world.lab, project)
    assert sorted((one.branch, one.pull.state if one.pull else "") for one in found.entries) == [
        ("afk/3", "merged"),
        ("afk/4", ""),
    ]
    asked = len(forge.log)
    parked.listing(world.lab, project)
    assert len(forge.log) == asked + 1
    forge.faults.add(faults.status(502), times=99)
    found = parked.listing(world.lab, project)
    assert [one.pull for one in found.entries] == [None, None]
    assert "502" in found.pulls_error
