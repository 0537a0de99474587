"""What the forge's own log shows: of ten idle minutes with twenty projects, and of a tick with live runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from runs import tick
from runs.forges.trackers import Trackers
from runs.lifecycle import stop
from runs.models import Forge, Project, Run, Settings
from tests import make
from tests.fakes import START, World
from tests.trackers.forge import Double, Gitea, GitHub, faults
from tests.trackers.forge.visitor import a_client
from trackers.registry import Tools

pytestmark = pytest.mark.django_db(transaction=True)

STYLES: dict[str, Callable[..., Double]] = {
    "github": GitHub,
    "gitea": lambda now: Gitea(now, etags=True),
}
PROJECTS = 20
MINUTES = 10


@pytest.fixture(params=STYLES)
def forge(request: pytest.FixtureRequest, world: World) -> Double:
    """A forge with twenty projects that work by themselves; every repository has one old issue."""
    made = STYLES[request.param](world.lab.now)
    row = Forge.objects.create(
        name="forge",
        kind=made.style,
        api=made.api,
        web=made.web,
        credential={"token": made.token("bot")},
        created_at=START,
    )
    client = a_client(made, world.lab.paths.answers)
    trackers = Trackers(
        Tools(now=world.lab.now, client=lambda: client), lambda: world.lab.now().timestamp()
    )
    world.lab = replace(world.lab, tracker_for=trackers.tracker_for, forges=trackers)
    Settings.current()
    for number in range(PROJECTS):
        repo = made.repo(f"acme/shop-{number}", roles={"bot": "write"})
        repo.issue("not ready")
        make.a_project(
            f"shop-{number}",
            tracker=made.style,
            forge=row,
            tracker_root=f"{row.pk}/{repo.full_name}",
            is_auto=True,
        )
    return made


def _pass_by(world: World) -> None:
    """Ten minutes, looked at every fifteen seconds: three times as often as somebody may be asked."""
    for _ in range(MINUTES * 4):
        world.clock.forward(seconds=15)
        tick.tick(world.lab)


# What is counted in ten minutes are calls over HTTP. That a poll is claimed once, which rests on the
# database, is shown on both by tests/watch/test_watch_ends.py.
@pytest.mark.long
@pytest.mark.any_database
@pytest.mark.row("MALA-W-76", "LAB-12", level="contract")
def test_ten_idle_minutes_cost_one_conditional_call_a_project_and_interval(
    world: World, forge: Double
) -> None:
    interval = Settings.current().launch_interval
    _pass_by(world)

    asked = Counter(line.path for line in forge.log)
    most = timedelta(minutes=MINUTES) // interval + 1
    assert len(asked) == PROJECTS
    assert all(path.endswith("/issues") for path in asked)
    assert max(asked.values()) <= most
    assert min(asked.values()) >= most // 2
    first = {line.path for line in forge.log if not line.was_conditional}
    assert [line.was_conditional for line in forge.log].count(False) == len(first) == PROJECTS
    assert sum(line.is_counted for line in forge.log) == (
        PROJECTS if forge.style == "github" else 0
    )
    forge.check()


@pytest.mark.long
@pytest.mark.any_database
@pytest.mark.row("MALA-W-76", level="contract")
def test_nothing_is_asked_where_webhooks_work_and_nothing_is_live(
    world: World, forge: Double
) -> None:
    Project.objects.update(hooked_at=world.lab.now(), issues_hooked_at=world.lab.now())
    _pass_by(world)
    first = len(forge.log)

    _pass_by(world)

    assert first == PROJECTS
    assert len(forge.log) == first
    forge.check()


# What the forge's own log shows of a tick.


@pytest.mark.row("LAB-12", "LAB-32", "LAB-30", "LAB-31", "LAB-33", "LAB-29", level="contract")
def test_three_live_runs_are_one_list_of_all_states_and_each_is_judged_by_its_own(
    world: World, forge: Double
) -> None:
    project, repo = Project.objects.get(name="shop-3"), forge.find_repo("acme/shop-3")
    assert repo is not None
    Project.objects.update(is_auto=False)
    runs = [_live(world, project, str(key), slot=key) for key in (4, 5, 6, 7)]
    for head, state in (
        ("afk/4", "open"),
        ("afk/5", "merged"),
        ("afk/6", "closed"),
        ("afk/7", "closed"),
        ("afk/7", "open"),
        ("afk/63", "open"),
    ):
        repo.pull(head, state)
    assert forge.log == []

    tick.tick(world.lab, force=True)

    assert [(line.path, line.query["state"]) for line in forge.calls("/pulls")] == [
        ("/repos/acme/shop-3/pulls", "all")
    ]
    told = [Run.objects.get(pk=run.pk).outcome for run in runs]
    assert told == ["succeeded", "succeeded", "", "succeeded"]
    forge.check()


@pytest.mark.long
@pytest.mark.row("LAB-48", "LAB-12", level="contract")
def test_a_stopped_run_is_asked_about_no_more(world: World, forge: Double) -> None:
    Project.objects.update(is_auto=False)
    run = _live(world, Project.objects.get(name="shop-3"), "7", slot=1)
    assert stop.stop(world.lab, run, "anna")
    for _ in range(5):
        world.clock.forward(hours=1)
        tick.tick(world.lab, force=True)

    assert forge.calls("/pulls") == []
    assert Run.objects.get().outcome == "stopped"


@pytest.mark.long
@pytest.mark.row("LAB-13", level="contract")
def test_the_project_whose_list_fails_is_left_alone_and_the_other_is_reaped(
    world: World, forge: Double
) -> None:
    Project.objects.update(is_auto=False)
    runs = []
    for number in (3, 4):
        runs.append(_live(world, Project.objects.get(name=f"shop-{number}"), "7", slot=number))
        repo = forge.find_repo(f"acme/shop-{number}")
        assert repo is not None
        repo.pull("afk/7")
    forge.faults.add(faults.status(500), times=faults.FOREVER, path="/acme/shop-3/")

    tick.tick(world.lab, force=True)

    assert [Run.objects.get(pk=run.pk).outcome for run in runs] == ["", "succeeded"]
    assert Project.objects.get(name="shop-3").warning
    assert not Project.objects.get(name="shop-4").warning
    forge.faults.clear()
    world.clock.forward(minutes=10)
    tick.tick(world.lab, force=True)
    assert Run.objects.get(pk=runs[0].pk).outcome == "succeeded"


def _live(world: World, project: Project, key: str, slot: int) -> Run:
    run = make.a_run(project, key, slot=slot)
    world.live(run)
    return run
