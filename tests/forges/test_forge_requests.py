"""What one project costs its forge, counted there: bounds that must not creep up.

`python -m bench.requests` counts all cases; docs/performance.md has the figures.
"""

from __future__ import annotations

import pytest

from runs import tick
from runs.dispatch import start_requests
from runs.forges import cadence_rules, quota
from runs.models import Asked, StartRequest
from tests.fakes import World
from tests.forge_hours import READY, cost, gitea

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]


@pytest.mark.long
@pytest.mark.parametrize(
    ("case", "most"),
    [
        ("idle", 2),
        ("a pull request waits for its review", 21),
        ("one active run", 36),
        ("one active run, with a webhook", 4),
        ("300 ready issues that wait for a person", 28),
    ],
)
def test_a_quarter_of_an_hour_costs_a_forge_no_more_than_this(
    world: World, case: str, most: int
) -> None:
    found = cost(world, case, before=6, minutes=15)
    assert 0 < found.api <= most, found
    assert found.git <= 4


def test_starting_one_of_300_issues_asks_what_that_one_waits_for(world: World) -> None:
    hours = gitea(world)
    for number in range(300):
        hours.repo.issue(f"issue {number}", labels=[READY])
    hours.repo.items[200].blocked_by.append((hours.repo, hours.repo.items[7]))

    start_requests.request(world.lab, hours.project, by="anna", wanted="250")
    tick.tick(world.lab, force=True)
    assert StartRequest.objects.get().answer == "started"
    asked = [line.path for line in hours.forge.calls("/dependencies")]
    assert asked == ["/repos/acme/shop/issues/250/dependencies"]

    start_requests.request(world.lab, hours.project, by="anna", wanted="200")
    tick.tick(world.lab, force=True)
    assert "blocked by #7" in StartRequest.objects.get(wanted_key="200").text
    assert len(hours.forge.calls("/dependencies")) == 2


@pytest.mark.long
def test_a_project_that_used_up_its_budget_is_asked_less_until_an_hour_later(
    world: World,
) -> None:
    hours = gitea(world, is_auto=True)
    first = hours.passes(30, minutes=10).api
    assert first > 7
    assert sum(quota.polls_of_last_hour(world.clock.now).values()) == first
    Asked.objects.update(calls=cadence_rules.BUDGET)
    assert hours.passes(30, minutes=30).api <= 7
    assert hours.project.asked_why == cadence_rules.BY_BUDGET
    hours.passes(30, minutes=25)
    assert hours.passes(30, minutes=10).api > 7
    assert hours.project.asked_why == ""
