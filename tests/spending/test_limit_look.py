"""The pages that tell of limits, looked at: accessible, fitting, light and dark, at a desk and on a phone."""

from __future__ import annotations

import pytest

from runs.models import Settings
from tests import make
from tests.web import board_rows as rows
from tests.web.looking import looks

pytestmark = pytest.mark.django_db(transaction=True)

TODAY = "2026-11-21"


def test_pages_with_limits(open_page, operator, world):
    settings = Settings.current()
    settings.run_tokens_limit, settings.day_cost_limit = 500_000, 5
    settings.save()
    agent = make.an_agent("Claude in a terminal", argv=["claude", "{prompt}"])
    project = make.a_project(agent=agent, day_tokens_limit=400_000)
    told = {"turns": 12, "tokens_in": 412_000, "tokens_cached": 390_000, "tokens_out": 3_000}
    more = {"context_tokens": 88_000, "context_window": 258_400, "agent_model": "opus"}
    spent = {"spent_days": [[TODAY, 415_000, None]], "spent_on": TODAY}
    run = make.a_run(project, agent="Claude in a terminal", **told, **more, **spent)
    world.live(run)
    rows.a_tick(world)
    wrong = []
    for name, address in (
        ("limits-overview", "/"),
        ("limits-run", f"/runs/{run.pk}/"),
        ("limits-project", f"/projects/{project.pk}/"),
        ("limits-settings", "/settings/"),
    ):
        page = open_page(address, operator)
        wrong += looks(page, name)
        page.close()
    assert wrong == []
