"""Held runs and agents, looked at: overview, run, why not running, project."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from runs.models import AgentProfile, Settings
from tests import make
from tests.fakes import World
from tests.web import board_rows as rows
from tests.web.browsing import OpenPage
from tests.web.looking import looks
from tests.world.stories import ready

pytestmark = pytest.mark.django_db(transaction=True)


def test_what_waits_for_an_account_is_accessible_and_fits(
    open_page: OpenPage, operator: User, world: World
) -> None:
    now = world.clock.now
    AgentProfile.objects.all().delete()
    held = {"held_at": now, "holds": 1}
    claude = make.an_agent(
        "Claude Code",
        hold="limit",
        hold_note="You've hit your session limit · resets 5pm (UTC)",
        held_until=now + timedelta(hours=5),
        **held,
    )
    codex = make.an_agent(
        "Codex",
        hold="login",
        hold_note="unexpected status 401 Unauthorized: Incorrect API key provided",
        held_until=now + timedelta(minutes=15),
        **held,
    )
    Settings.current()
    Settings.objects.update(agent=codex)
    project = make.a_project("a-project-with-quite-a-long-name", agent=claude)
    world.tracker.add_root(project.tracker_root)
    ready(world, "8", project.tracker_root)
    runs = [
        make.a_run(
            project,
            key,
            slot=int(key),
            state="held",
            held_at=now,
            started_at=now - timedelta(minutes=12),
            profile=claude,
            agent="Claude Code",
            claimed_at=now,
            last_line="▸ Bash: make test",
            issue_title="Add retries to the client of the payment service",
        )
        for key in ("3", "4")
    ]
    rows.a_tick(world)
    world.clock.forward(minutes=7)
    rows.a_tick(world)
    wrong = []
    for path, name in (
        ("/", "held overview"),
        (f"/runs/{runs[0].pk}/", "held run"),
        (f"/projects/{project.pk}/", "held project"),
        (f"/projects/{project.pk}/waiting", "held waiting"),
    ):
        wrong += looks(open_page(path, operator), name)
    assert wrong == []
