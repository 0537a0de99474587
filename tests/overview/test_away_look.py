"""What happened while somebody was away, looked at: runs, groups and a workflow that waits."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from runs.core.states import NoticeKind
from tests.fakes import World
from tests.overview.test_away import a_monitor, ended, goes_away, investigates
from tests.web import board_rows as rows
from tests.web.browsing import OpenPage
from tests.web.looking import looks

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_card_of_what_happened_is_accessible_and_fits(
    open_page: OpenPage, operator: User, world: World, client: Client, settings: Any
) -> None:
    rows.a_tick(world)
    project = rows.a_tracked_project("a-project-with-quite-a-long-name")
    client.force_login(operator)
    goes_away(client, world, hours=8)
    now = world.clock.now
    ended(project, world, "2", "succeeded", pull_number=4, issue_title="Add retries to the client")
    ended(project, world, "3", "died", issue_title="Read_a_name_that_cannot_be_broken_anywhere" * 2)
    rows.tell(world, "paused after 3 failed runs", NoticeKind.AUTO_PAUSED, project=project)
    a_monitor(project, "wave", "timed out", now, completed=["1"], incomplete=["2", "3", "4"])
    a_monitor(project, "broken", "error", now, error="no such table: " + "very_long_word" * 9)
    investigates(a_monitor(project, "again", "running", now), 1, now)
    for number in range(8):
        a_monitor(project, f"more-{number}", "complete", now, completed=["1"])
    world.clock.forward(hours=1)
    rows.a_tick(world)
    assert looks(open_page("/", operator), "away") == []
