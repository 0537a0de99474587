"""What pages say of limits: how much is used, what cannot hold, and at Start too."""

from __future__ import annotations

import html
import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from runs.models import Project, Run, Settings
from tests import make
from tests.fakes import START, World
from tests.web.people import text_of

pytestmark = pytest.mark.django_db

TODAY = "2026-11-21"
NO_COST = "Claude Code tells no cost, so a limit of money cannot hold for it."


@pytest.fixture
def client(operator: User) -> Client:
    client = Client()
    client.force_login(operator)
    return client


@pytest.fixture
def project(world: World) -> Project:
    settings = Settings.current()
    settings.run_tokens_limit, settings.day_cost_limit = 500_000, 5
    settings.save()
    agent = make.an_agent("An agent of its own", argv=["claude", "{prompt}"])
    return make.a_project(agent=agent)


def page(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return html.unescape(" ".join(re.sub("<[^>]*>", " ", text_of(answer)).split()))


def test_a_runs_page_shows_each_limit_and_what_cannot_hold(client, world, project):
    run = make.a_run(project, agent="Claude Code", tokens_in=415_000, tokens_out=0)
    shown = page(client, f"/runs/{run.pk}/")
    assert "Tokens for one run 83 % 415,000 of 500,000 tokens" in shown
    assert "Money for all projects today 0 %: $0.00 of $5.00" in shown
    assert NO_COST in shown


def test_a_run_without_limits_has_no_card_of_them(client, world):
    run = make.a_run(make.a_project())
    assert "Limits of tokens and money" not in page(client, f"/runs/{run.pk}/")


def test_a_project_says_at_start_and_in_its_facts_what_cannot_hold(client, world, project):
    Project.objects.update(day_tokens_limit=1000)
    Run.objects.filter(pk=make.a_run(project).pk).update(
        spent_days=[[TODAY, 900, None]], spent_on=TODAY
    )
    shown = page(client, f"/projects/{project.pk}/")
    said = "An agent of its own tells no cost, so a limit of money cannot hold for it."
    assert shown.count(said) == 2
    assert "Tokens for this project today 90 % 900 of 1,000 tokens" in shown


def test_the_settings_show_the_limits_and_for_which_agents_they_cannot_hold(client, world, project):
    shown = page(client, "/settings/")
    assert "Tokens and money of a run 500,000 tokens" in shown
    assert "Of all runs on a day of UTC $5.00" in shown
    assert "An agent of its own tells no cost" in shown


def test_the_overview_shows_what_was_used_today(client, world, project):
    make.a_run(project, spent_days=[[TODAY, 4_900_000, "1.20"]], spent_on=TODAY, started_at=START)
    assert "Used today 4.9 M tokens $1.20" in page(client, "/")
