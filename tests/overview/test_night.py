"""Four nights with nobody there, and the page of the morning after each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import expect

from runs.models import Project, Run
from runs.overview import queries
from tests.fakes import World
from tests.web.browsing import OpenPage
from tests.web.looking import DESK, PHONE, looks, picture
from tests.world import night as nights
from tests.world.night import Night, Outage, Plans

pytestmark = pytest.mark.django_db(transaction=True)

HEIGHT = "document.documentElement.scrollHeight"
BOTTOM = "id => Math.round(document.getElementById(id).getBoundingClientRect().bottom)"
IN_SIGHT = """id => { const box = document.getElementById(id).getBoundingClientRect();
  return box.height > 0 && box.top >= 0 && box.bottom <= innerHeight; }"""

OUTAGES = {
    "forge-down": [
        "billing and docs-site gave no answer from Nov 22, 00:00 to Nov 22, 04:00. 1 start waited. "
        "Nothing was lost."
    ]
}

Passes = Callable[..., Night]


@pytest.fixture
def passes(world: World, client: Client, operator: User) -> Passes:
    """Anna was here at ten in the evening; eight hours pass, so many minutes a look."""

    def night(plans: Plans, outage: Outage | None = None, minutes: float = 5) -> Night:
        world.clock.jump(hours=10)
        client.force_login(operator)
        client.get("/")
        made = Night(world, plans, timedelta(minutes=minutes))
        made.pass_until(timedelta(hours=8), outage)
        return made

    return night


def told(world: World) -> list[str]:
    """The list of what needs somebody, in its order."""
    rows = queries.overview(world.lab).needs.rows
    return [f"{row.need.title} {row.need.what}" for row in rows]


def outcomes() -> dict[str, int]:
    return dict(Counter(Run.objects.values_list("outcome", flat=True)))


def test_a_busy_night_of_forty_runs_is_one_screen(
    open_page: OpenPage, operator: User, passes: Passes
) -> None:
    morning = passes(nights.BUSY, minutes=10)
    assert outcomes() == {"succeeded": 24, "died": 12, "timed_out": 3, "": 1}
    assert told(morning.world) == [
        "docs-site is paused after 3 failed runs in a row",
        "gateway reached the limit of money for this project today",
        "search 3 runs timed out",
        "billing 5 runs died",
        "storefront 3 runs died",
        "search #4 died",
        "docs-site 3 runs died",
        "gateway 5 pull requests wait for your review",
    ]
    page = open_page("/", operator)
    page.set_viewport_size({"width": DESK, "height": 900})
    picture(page, "busy")
    assert page.evaluate(HEIGHT) <= 900
    assert page.evaluate(IN_SIGHT, "running")
    last = Project.objects.get(name="docs-site").last_failure_id
    look = page.get_by_role("link", name="Open run docs-site")  # beside Resume
    expect(look).to_have_attribute("href", f"/runs/{last}/")
    page.set_viewport_size({"width": PHONE, "height": 844})
    picture(page, "busy")
    assert page.evaluate(HEIGHT) <= 3 * 844
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    assert page.evaluate(IN_SIGHT, "running-line")
    page.evaluate("scrollTo(0, 0)")
    assert looks(page, "night") == []


@pytest.mark.parametrize(
    ("name", "plans", "outage", "minutes", "expected"),
    [
        (
            "quiet",
            nights.QUIET,
            None,
            20,
            [
                "billing 4 pull requests wait for your review",
                "docs-site #4 waits for your review",
                "docs-site #3 waits for your review",
            ],
        ),
        (
            "asked",
            nights.ASKED,
            None,
            20,
            [
                "storefront #2 asks for a permission since 02:20 UTC",
                "docs-site #4 waits for your review",
                "docs-site #3 waits for your review",
                "storefront #4 waits for your review",
            ],
        ),
        (
            "forge-down",
            nights.OUTAGE,
            # A run that had delivered meanwhile is not ended by it, and found as soon as it answers.
            Outage(timedelta(hours=2), timedelta(hours=6)),
            10,  # what begins within a quarter of an hour after it had waited for its end
            [
                "docs-site #1 died",
                "billing #7 waits for your review",
                "docs-site #5 waits for your review",
                "docs-site #4 waits for your review",
            ],
        ),
    ],
)
def test_a_morning_after(
    open_page: OpenPage,
    operator: User,
    passes: Passes,
    name: str,
    plans: Plans,
    outage: Outage | None,
    minutes: float,
    expected: list[str],
) -> None:
    morning = passes(plans, outage, minutes=minutes)
    assert told(morning.world) == expected
    assert "timed_out" not in outcomes()
    page = open_page("/", operator)
    assert page.locator("#away .outage").all_inner_texts() == OUTAGES.get(name, [])
    for width, height in ((DESK, 900), (PHONE, 844)):
        page.set_viewport_size({"width": width, "height": height})
        picture(page, name)
