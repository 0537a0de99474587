"""A night of twenty issues with nobody there, and the page of the morning after it."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client

from runs.models import Run
from runs.overview import queries
from tests.fakes import World
from tests.web.browsing import OpenPage
from tests.web.looking import looks
from tests.world.night import Night

pytestmark = pytest.mark.django_db(transaction=True)

BOTTOM = "id => Math.round(document.getElementById(id).getBoundingClientRect().bottom + scrollY)"


@pytest.fixture
def morning(world: World, client: Client, operator: User) -> Night:
    """Anna was here in the evening; eight hours have passed since then."""
    client.force_login(operator)
    client.get("/")
    night = Night(world)
    night.pass_until(timedelta(hours=8))
    return night


def test_a_night_is_told_in_one_screen(open_page: OpenPage, operator: User, morning: Night) -> None:
    assert Counter(Run.objects.values_list("outcome", flat=True)) == {
        "succeeded": 10,
        "died": 3,
        "timed_out": 2,
        "": 1,
    }
    told = [
        f"{row.need.title} {row.need.what.partition(' since ')[0]}"
        for row in queries.overview(morning.world.lab).needs.rows
    ]
    assert told == [
        "billing #7 asks for a permission",
        "gateway reached the limit of money for this project today",
        "docs-site is paused after 3 failed runs in a row",
        "docs-site 3 runs died",
        "billing #4 timed out",
        "gateway #2 timed out",
        "billing 5 pull requests wait for your review",
        "gateway 4 pull requests wait for your review",
        "docs-site #7 waits for your review",
    ]
    # The eighth waits for the one that asks, two for the pause, and one for the money of tomorrow.
    assert Run.objects.count() == 16
    page = open_page("/", operator)
    page.set_viewport_size({"width": 1440, "height": 900})
    bottoms = {one: page.evaluate(BOTTOM, one) for one in ("away", "needs-you", "running")}
    assert max(bottoms.values()) <= 900, bottoms
    assert looks(page, "night") == []
