"""The page of a pull request that was closed unmerged: three ways on, each with its press."""

from __future__ import annotations

import pytest
from django.test import Client

from runs.models import Project
from tests import make
from tests.fakes import World
from tests.web.people import confirmed, text_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def project(world: World) -> Project:
    entry = [5, "afk/7", "Add retries", "https://forge.example/acme/shop/pulls/5"]
    made = make.a_project(tracker="memory", tracker_root="demo", pulls_closed=[entry])
    world.repos.heads[made.repo(world.lab.paths)] = {"afk/7": "a" * 40}
    return made


def test_it_shows_the_ways_on_to_those_who_may_and_the_facts_to_all(
    anna: Client, vera: Client, project: Project
) -> None:
    page = text_of(anna.get(f"/projects/{project.pk}/closed/5/"))
    for words in ("still claims issue 7", "Open its page", "Discard and start again", "Discard it"):
        assert words in page
    seen = text_of(vera.get(f"/projects/{project.pk}/closed/5/"))
    assert "still claims issue 7" in seen
    assert "Discard it" not in seen


def test_what_nobody_has_to_decide_leads_back(anna: Client, project: Project) -> None:
    assert anna.get(f"/projects/{project.pk}/closed/9/")["Location"] == f"/projects/{project.pk}/"
    answer = confirmed(anna).post(f"/projects/{project.pk}/closed/9/decide", {"what": "discard"})
    assert answer.status_code == 303
    project.refresh_from_db()
    assert project.pulls_closed


def test_discarding_frees_the_issue(anna: Client, world: World, project: Project) -> None:
    confirmed(anna).post(f"/projects/{project.pk}/closed/5/decide", {"what": "discard"})
    assert "afk/7" not in world.repos.heads[project.repo(world.lab.paths)]
    project.refresh_from_db()
    assert project.pulls_closed == []


def test_an_unknown_choice_does_nothing(anna: Client, world: World, project: Project) -> None:
    confirmed(anna).post(f"/projects/{project.pk}/closed/5/decide", {"what": "?"})
    assert "afk/7" in world.repos.heads[project.repo(world.lab.paths)]
