"""Pages show what was heard last of forges, link there, and ask nobody."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from runs.models import Project
from tests import make
from tests.fakes import START, World
from tests.web.people import text_of

pytestmark = pytest.mark.django_db

ISSUE = "https://git.example/ann/shop/issues/7"
PULL = "https://git.example/ann/shop/pulls/9"


@pytest.fixture
def shop(world: World) -> Project:
    make.an_agent()
    return make.a_project(
        "shop",
        tracker="gitea",
        tracker_root="1/ann/shop",
        queue_seen=[["7", "Add <b>retries</b>", ISSUE], ["12", "Later", ""]],
        queue_count=2,
        queue_seen_at=START,
        pulls_seen=[[9, "afk/5", "Sell socks", PULL]],
    )


@pytest.fixture
def anna(client: Client, operator: User) -> Client:
    client.force_login(operator)
    return client


def test_the_overview_lists_issues_and_pull_requests_of_forges(
    anna: Client, shop: Project, world: World
) -> None:
    page = text_of(anna.get("/"))
    assert ISSUE in page and "Add &lt;b&gt;retries&lt;/b&gt;" in page
    assert PULL in page and "Sell socks" in page
    assert not world.tracker.calls
    shop.pulls_seen, shop.queue_seen = [], []
    shop.save()
    page = text_of(anna.get("/"))
    assert PULL not in page and ISSUE not in page


def test_the_overview_makes_no_further_query_for_forges(
    anna: Client, shop: Project, django_assert_num_queries: Any
) -> None:
    anna.get("/")
    # Session and user, then five: nothing to ask a built-in tracker.
    with django_assert_num_queries(7):
        anna.get("/")


def test_a_claimed_issue_has_no_start_button_and_the_projects_page_says_how_old_it_is(
    anna: Client, shop: Project
) -> None:
    make.a_run(shop, "7")
    page = text_of(anna.get(f"/projects/{shop.pk}/"))
    assert "as seen" in page and "All issues" not in page
    assert 'value="12"' in page and 'value="7"' not in page
