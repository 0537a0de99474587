"""Changes of a run that works: asked of git once for all who look, pushed, and for nobody not at all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.test import Client

from runs.models import Run
from runs.run_pages import tabs
from runs.run_pages.live_changes import LiveChanges
from runs.web import feed, fragments
from tests import make
from tests.fakes import World
from tests.web import board_rows as rows
from tests.web.people import text_of


@pytest.fixture
def run(world: World, tmp_path: Path) -> Run:
    return make.a_run(rows.a_tracked_project(), "7", worktree=str(tmp_path), fork_point="a" * 40)


def times(world: World) -> int:
    return list(world.repos.asked).count("changes")


@pytest.mark.django_db
def test_all_who_look_within_seconds_share_one_answer(run: Run, world: World) -> None:
    live = LiveChanges()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: live.of(world.lab, run), range(20)))
    assert times(world) == 1
    assert all(one is found[0] for one in found)
    world.clock.forward(seconds=3)
    live.of(world.lab, run)
    assert times(world) == 2
    world.clock.forward(seconds=-60)  # set back: what is known may be of any age
    live.of(world.lab, run)
    assert times(world) == 3


@pytest.mark.django_db
def test_open_pages_cost_git_one_look_and_nobody_none(anna: Client, run: Run, world: World) -> None:
    at = f"/runs/{run.pk}/changes/"
    page = text_of(anna.get(at))
    assert 'data-asks="own"' in page  # it is told, and does not ask by the clock
    ask = {"HX-Request": "true", "HX-PTag": page.partition('hx-ptag="')[2].partition('"')[0]}
    for _ in range(5):
        assert anna.get(f"{at}live", headers=ask).status_code == 304
    assert times(world) == 1
    for kind in set(tabs.ALL) - {tabs.CHANGES}:
        world.clock.forward(seconds=10)
        fragments.mark(f"{kind}:{run.pk}")
    assert times(world) == 1


@pytest.mark.django_db
def test_what_an_agent_edits_changes_the_mark_by_which_the_page_is_rung(
    anna: Client, run: Run, world: World
) -> None:
    topic = f"{tabs.CHANGES}:{run.pk}"
    before = fragments.mark(topic)
    assert fragments.pushed(topic, True)[1].rows == before.rows  # type: ignore[index]
    world.clock.forward(seconds=5)
    assert fragments.mark(topic).rows == before.rows
    world.repos.broken_history = "git diff failed"  # it says something else now
    world.clock.forward(seconds=5)
    changed = fragments.mark(topic)
    assert changed.rows != before.rows
    assert fragments.pushed(topic, True)[1].rows == changed.rows  # type: ignore[index]


@pytest.mark.django_db
def test_what_was_found_between_two_looks_is_told_by_the_next_one(run: Run, world: World) -> None:
    live = LiveChanges()
    before = live.look(world.lab, run)
    world.repos.broken_history = "git diff failed"
    world.clock.forward(seconds=3)
    live.of(world.lab, run)  # somebody has opened the page
    assert live.known(world.lab, run) == before  # as the others were told
    assert live.look(world.lab, run) != before


@pytest.mark.django_db
def test_of_a_run_that_has_ended_nothing_is_looked_at_by_the_clock(run: Run, world: World) -> None:
    Run.objects.filter(pk=run.pk).delete()
    ended = make.a_run(run.project, "8", outcome="died", worktree=run.worktree, fork_point="a" * 40)
    fragments.mark(f"{tabs.CHANGES}:{ended.pk}")
    assert times(world) == 0


@pytest.mark.parametrize(
    ("other", "is_news"),
    [
        ('<p>a <time datetime="T1" data-ago>3 min ago</time></p>', False),
        ('<p>a <time datetime="T2" data-ago>2 min ago</time></p>', True),
        ('<p>b <time datetime="T1" data-ago>2 min ago</time></p>', True),
    ],
)
def test_an_age_that_grew_is_no_news(other: str, is_news: bool) -> None:
    shown = '<p>a <time datetime="T1" data-ago>2 min ago</time></p>'
    assert (feed.shape(shown) != feed.shape(other)) is is_news
