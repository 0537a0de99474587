"""The page of a run's pull request on a forge: its checks, asked for when somebody looks (X-01)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import expect

from runs.models import Run, Settings
from runs.pulls import rules as check_rules
from tests import make
from tests.api.program import Program, denied
from tests.fakes import World
from tests.web.browsing import OpenPage
from tests.web.people import text_of
from tests.web.test_browser_refresh import Counted
from tests.world.memory_tracker import MemoryTracker
from trackers.base import Ability, Check, CheckState, PullState, Unreachable

pytestmark = pytest.mark.django_db

HEAD = "a" * 40
PASSED, FAILED, RUNNING = CheckState.PASSED, CheckState.FAILED, CheckState.RUNNING
LOG = "https://git.example/acme/shop/actions/1"
QUERIES = 8
CHECKS = (Check("build", PASSED), Check("unit tests", FAILED, LOG), Check("browser", RUNNING))


@pytest.fixture
def run(world: World) -> Run:
    Settings.current()
    world.tracker.add_root("demo")
    number = world.tracker.add_pull(
        "demo", "afk/7", title="Add retries", base="main", head_commit=HEAD, number=12
    )
    world.tracker.shelves["demo"].checks[HEAD] = CHECKS
    return make.a_run(
        make.a_project(),
        outcome="succeeded",
        pull_number=number,
        pull_url="https://git.example/acme/shop/pulls/12",
    )


def asked(world: World) -> list[int]:
    return [world.tracker.calls[name] for name in ("pull", "checks")]


@pytest.mark.row("X-01", level="contract")
def test_it_shows_what_was_checked_on_the_head_what_failed_first(
    client: Client, viewer: Any, world: World, run: Run
) -> None:
    client.force_login(viewer)
    assert f'href="/runs/{run.pk}/pull"' in text_of(client.get(f"/runs/{run.pk}/"))
    assert asked(world) == [0, 0], "a page that somebody leaves open asks nobody"

    answer = client.get(f"/runs/{run.pk}/pull")

    page = text_of(answer)
    assert "Add retries" in page and "1 failed, 1 running, 1 passed" in page
    assert page.index("unit tests") < page.index("browser") < page.index("build")
    assert f'href="{LOG}"' in text_of(answer)
    assert (asked(world), answer["Cache-Control"]) == ([1, 1], "no-store")


def test_it_costs_the_same_whatever_there_is_to_show(
    client: Client, viewer: Any, world: World, run: Run, django_assert_num_queries: Any
) -> None:
    client.force_login(viewer)
    many = tuple(Check(f"check {n}", PASSED) for n in range(120))
    for checks in ((), CHECKS, many):
        world.tracker.shelves["demo"].checks[HEAD] = checks
        client.get(f"/runs/{run.pk}/pull")
        with django_assert_num_queries(QUERIES):
            answer = client.get(f"/runs/{run.pk}/pull")
    assert "20 more are on the forge." in text_of(answer)
    assert "all 120 passed" in text_of(answer)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        pytest.param(Unreachable("It answered 500."), "could not be read", id="all"),
        pytest.param(None, "This tracker has no checks.", id="no checks"),
    ],
)
def test_what_the_tracker_does_not_tell_is_said_and_ends_nothing(
    client: Client, viewer: Any, world: World, run: Run, error: Unreachable | None, says: str
) -> None:
    client.force_login(viewer)
    if error is not None:
        world.tracker.fail("demo", error)
    else:
        few = MemoryTracker(frozenset(Ability) - {Ability.CHECKS})
        few.shelves = world.tracker.shelves
        world.lab = replace(world.lab, tracker_for={"memory": few}.get)
    page = text_of(client.get(f"/runs/{run.pk}/pull"))
    assert says in page
    assert str(error or "") in page
    assert Run.objects.get().outcome == "succeeded"


def test_who_may_not_look_and_what_is_not_there(client: Client, viewer: Any, run: Run) -> None:
    assert client.get(f"/runs/{run.pk}/pull").status_code == 302
    assert client.get(f"/runs/{run.pk}/pull/live").status_code == 302
    client.force_login(viewer)
    assert client.post(f"/runs/{run.pk}/pull").status_code == 405
    Run.objects.update(pull_number=None, pull_url="")
    for end in ("pull", "pull/live"):
        assert client.get(f"/runs/{run.pk}/{end}").status_code == 404
        assert client.get(f"/runs/987654321/{end}").status_code == 404


def test_programs_get_the_same(operator: User, world: World, run: Run) -> None:
    program = Program.of(operator, "look")
    found = program.get(f"/runs/{run.pk}/pull").json()
    assert (found["number"], found["state"], found["trouble"]) == (12, "open", "")
    assert found["checks"][0] == {"name": "unit tests", "state": "failed", "url": LOG}
    Run.objects.update(pull_number=None)
    denied(program.get(f"/runs/{run.pk}/pull"), 404, "not_found")
    Run.objects.update(pull_number=12)
    world.tracker.fail("demo", Unreachable("It answered 500."))
    denied(program.get(f"/runs/{run.pk}/pull"), 502, "no_answer")


@pytest.mark.parametrize(
    ("states", "words", "worst"),
    [
        pytest.param([], "no checks yet", None, id="none"),
        pytest.param([PASSED], "passed", PASSED, id="one"),
        pytest.param([PASSED, PASSED], "all 2 passed", PASSED, id="all"),
        pytest.param([PASSED, RUNNING], "1 running, 1 passed", RUNNING, id="running"),
        pytest.param([RUNNING, FAILED, FAILED], "2 failed, 1 running", FAILED, id="failed"),
    ],
)
def test_checks_in_words(states: list[CheckState], words: str, worst: CheckState | None) -> None:
    checks = [Check(f"c{n}", state) for n, state in enumerate(states)]
    assert (check_rules.in_words(checks), check_rules.worst(checks)) == (words, worst)


@pytest.mark.parametrize(
    ("state", "checks", "seconds"),
    [
        pytest.param(PullState.OPEN, [], 30, id="not begun"),
        pytest.param(PullState.OPEN, [FAILED, RUNNING], 30, id="some run"),
        pytest.param(PullState.OPEN, [FAILED, PASSED], 120, id="all ran"),
        pytest.param(PullState.OPEN, None, 120, id="checks not told"),
        pytest.param(None, None, 120, id="nothing told"),
        pytest.param(PullState.MERGED, [RUNNING], None, id="merged"),
        pytest.param(PullState.CLOSED, [], None, id="closed"),
    ],
)
def test_when_it_is_looked_at_again(
    state: PullState | None, checks: list[CheckState] | None, seconds: int | None
) -> None:
    told = None if checks is None else [Check(f"{n}", one) for n, one in enumerate(checks)]
    assert check_rules.again_seconds(state, told) == seconds


@pytest.mark.django_db(transaction=True)
@pytest.mark.row("X-06", level="browser")
def test_it_follows_its_checks_while_somebody_looks_and_asks_nobody_when_it_is_over(
    open_page: OpenPage, viewer: User, world: World, run: Run
) -> None:
    page = open_page(f"/runs/{run.pk}/pull", viewer, clock=True)
    expect(page.locator("#run-pull")).to_contain_text("1 running")
    shelf = world.tracker.shelves["demo"]
    shelf.checks[HEAD] = (Check("build", PASSED),)
    counted = Counted(page)
    counted.during(29)
    assert asked(world) == [1, 1]
    counted.during(3)
    expect(page.locator("#run-pull .pill").nth(1)).to_have_text("passed")
    counted.during(60)
    assert asked(world) == [2, 2]

    shelf.pulls[0]["state"] = "merged"
    page.get_by_role("link", name="Check again").click()
    expect(page.locator("#run-pull .pill").first).to_have_text("merged")
    page.clock.run_for(600_000)
    assert asked(world) == [3, 3]
