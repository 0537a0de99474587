"""A project whose repository is gone says so once, and says what to do. On real git."""

from __future__ import annotations

import logging
from datetime import timedelta
from pathlib import Path

import pytest

from runs import sweep
from runs.models import Notice
from runs.projects import origin
from tests import make

pytestmark = pytest.mark.django_db(transaction=True)


def _swept(real, project, times: int = 1) -> None:
    for _ in range(times):
        real.offset += timedelta(minutes=10)
        sweep.ask(real.lab)
        sweep.carry_out(real.lab, project.pk)
    project.refresh_from_db()


def _told() -> list[str]:
    rows = Notice.objects.filter(kind__in=["project.warned", "project.recovered"]).order_by("pk")
    return [row.text for row in rows]


def test_a_repository_that_is_gone_is_said_once_and_so_is_its_return(real, caplog):
    project = real.project()
    origin, away = Path(project.url), real.folder / "away"
    origin.rename(away)

    with caplog.at_level(logging.WARNING, logger="runs.sweep"):
        _swept(real, project, times=3)

    assert [record.step for record in caplog.records] == ["freshen"]
    assert len(_told()) == 1
    text = project.origin_warning
    assert "does not appear to be a git repository" in text
    assert "Nothing here was changed" in text
    assert "remove the project" in text
    assert project.warnings == [text]

    away.rename(origin)
    _swept(real, project, times=2)
    assert project.warnings == []
    assert _told()[1:] == ["git can read origin again"]


def test_another_reason_is_told_again_and_each_sweep_asks_until_it_is_back(world, caplog):
    project = make.a_project(parked=0, swept_at=world.clock.now)
    asked = []
    for error in ("Repository not found", "Repository not found", "Authentication failed", ""):
        world.clock.forward(minutes=10)
        asked.append(sweep.ask(world.lab))
        world.repos.broken_fetch = error
        with caplog.at_level(logging.WARNING, logger="runs.sweep"):
            sweep.carry_out(world.lab, project.pk)
    assert asked == [0, 1, 1, 1]
    assert [record.error for record in caplog.records] == [
        "Repository not found",
        "Authentication failed",
    ]
    assert [text.rpartition(": ")[2] for text in _told()] == [
        "Repository not found",
        "Authentication failed",
        "git can read origin again",
    ]


def test_numbers_in_an_error_are_no_news(world):
    project = make.a_project()
    assert origin.note(world.lab, project, "refused after 3 ms")
    assert not origin.note(world.lab, project, "refused after 11 ms")
    assert origin.note(world.lab, project, "Repository not found")


def test_its_page_and_the_overview_say_it(world, client, operator):
    client.force_login(operator)
    project = make.a_project()
    origin.note(world.lab, project, "Repository <not> found")
    said = "git could not read origin, so no run can start."
    page = client.get(f"/projects/{project.pk}/").content.decode()
    assert said in page
    assert "git said: Repository &lt;not&gt; found" in page
    assert said in client.get("/").content.decode()
