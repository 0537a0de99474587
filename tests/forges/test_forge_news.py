"""How soon a page shows what happened on a forge: with a webhook, without, and while it is open."""

from __future__ import annotations

import pytest
from django.db.models import Q

from runs import tick
from runs.dispatch import explain
from runs.forges import tracker_cache
from runs.models import Project, WatchSession
from runs.watch import switch as auto
from tests import make
from tests.fakes import World
from tests.forge_hours import READY, Hours, gitea
from tests.trackers.forge import faults

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]


def _waiting(world: World, *, is_auto: bool) -> Hours:
    """A pull request of ours waits for its review."""
    hours = gitea(world, is_auto=is_auto)
    hours.branch("afk/7")
    hours.repo.pull("afk/7")
    hours.until(lambda: bool(hours.project.pulls_seen))
    return hours


def _merge(hours: Hours) -> None:
    (pull,) = [one for one in hours.repo.items.values() if one.pull]
    hours.repo.merge(pull, "a" * 40)


@pytest.mark.parametrize("is_auto", [False, True], ids=["by hand", "automatic"])
def test_a_merged_pull_request_leaves_needs_you_at_once_when_a_webhook_tells_of_it(
    world: World, is_auto: bool
) -> None:
    hours = _waiting(world, is_auto=is_auto)
    hours.hook()
    hours.passes(minutes=2)
    _merge(hours)
    hours.tell("pull_request")
    assert not hours.project.pulls_seen


@pytest.mark.parametrize("is_auto", [False, True], ids=["by hand", "automatic"])
def test_without_a_webhook_it_leaves_within_a_minute(world: World, is_auto: bool) -> None:
    hours = _waiting(world, is_auto=is_auto)
    hours.passes(minutes=2)
    _merge(hours)
    assert hours.until(lambda: not hours.project.pulls_seen) <= 60


def test_it_leaves_while_a_run_of_another_issue_is_at_work_without_another_question(
    world: World,
) -> None:
    hours = _waiting(world, is_auto=False)
    hours.live("9")
    before = hours.passes(minutes=2)
    assert before.by["pulls"] <= 5, "the judge's own, once a look"
    _merge(hours)
    assert hours.until(lambda: not hours.project.pulls_seen) <= 30


def _beside_a_run(world: World) -> Hours:
    """With a webhook, a kept branch, and a run of another issue about which the judge asks alone."""
    hours = gitea(world)
    hours.branch("afk/7")
    make.a_run(hours.project, "7", slot=2, outcome="died", fork_point="0" * 40)
    hours.live("9")
    hours.hook()
    hours.passes(15, minutes=12)
    return hours


@pytest.mark.long
def test_a_pull_request_of_a_kept_branch_is_seen_beside_a_run(world: World) -> None:
    hours = _beside_a_run(world)
    hours.repo.pull("afk/7")
    hours.tell("pull_request")
    hours.until(lambda: bool(hours.project.pulls_seen), most=60)


@pytest.mark.long
def test_a_branch_that_was_squashed_into_the_base_is_collected_beside_a_run(world: World) -> None:
    hours = _beside_a_run(world)
    repo = hours.project.repo(world.lab.paths)
    (tip,) = [one.tip for one in world.lab.repos.branches(repo, ("afk/7",))]
    hours.repo.pull("afk/7", "merged", sha=tip)
    hours.until(lambda: not world.lab.repos.branches(repo, ("afk/7",)), most=11 * 60, step=30)


@pytest.mark.long
def test_a_page_that_is_open_shows_a_new_ready_issue_within_a_minute(world: World) -> None:
    """With automatic work off and a webhook that tells of nothing now."""
    hours = gitea(world)
    hours.hook()
    hours.passes(15, minutes=11)
    hours.repo.issue("new", labels=[READY])
    assert hours.passes(15, minutes=4).by["queue"] == 0

    def look() -> bool:
        if world.clock.now.second < 5:  # an open page says once a minute that it is there
            tracker_cache.watch(world.lab, _any())
        return bool(hours.project.queue_seen)

    assert hours.until(look) <= 60 + 45


def test_opening_a_page_asks_in_the_worker_unless_that_was_done_just_now(world: World) -> None:
    hours = gitea(world)
    hours.hook()
    hours.passes(15, minutes=11)
    hours.repo.issue("new", labels=[READY])
    asked = len(hours.forge.log)
    tracker_cache.look_at(world.lab, hours.project.pk)
    assert len(hours.forge.log) == asked, "the page waits for nobody"
    hours.work_off()
    assert [one[1] for one in hours.project.queue_seen] == ["new"]
    asked = len(hours.forge.log)
    tracker_cache.look_at(world.lab, hours.project.pk)
    hours.work_off()
    assert len(hours.forge.log) == asked


def test_an_open_page_does_not_keep_automatic_work_from_its_turn(world: World) -> None:
    """What is asked for the page would be missing from what the session asks for."""
    hours = gitea(world, is_auto=True)
    hours.passes(minutes=1)
    for _ in range(12):
        tracker_cache.watch(world.lab, _any())
        hours.step()
    hours.repo.issue("new", labels=[READY])

    def look() -> bool:
        tracker_cache.look_at(world.lab, hours.project.pk)
        return bool(world.queue.launches)

    assert hours.until(look) <= 50


def test_pages_that_are_opened_while_a_forge_does_not_answer_end_no_session(world: World) -> None:
    hours = gitea(world, is_auto=True)
    hours.passes(minutes=2)
    hours.forge.faults.add(faults.status(502), times=faults.FOREVER)
    for _ in range(3):
        tracker_cache.look_at(world.lab, hours.project.pk)
        hours.step(11)
    session = WatchSession.objects.get()
    assert session.is_open
    assert session.poll_failures == 1, "the page asked once, and its session goes on at its pace"
    hours.forge.faults.clear()
    hours.until(lambda: WatchSession.objects.get().poll_failures == 0, most=120)


def test_what_a_page_asks_for_does_not_take_the_turn_of_the_session_that_it_woke(
    world: World,
) -> None:
    hours = gitea(world, is_auto=True)
    asked = hours.project.queue_asked_at
    hours.until(lambda: hours.project.queue_asked_at != asked)
    world.clock.forward(seconds=15)
    assert WatchSession.objects.get().next_poll_at > world.clock.now, "it is asleep"
    hours.repo.issue("new", labels=[READY])
    tracker_cache.look_at(world.lab, hours.project.pk)
    hours.work_off()  # the task comes before the pass
    tick.tick(world.lab)
    assert world.queue.launches


def test_open_pages_that_say_why_ask_a_forge_once_a_minute_together_and_as_polling(
    world: World,
) -> None:
    hours = gitea(world)
    hours.repo.issue("ready", labels=[READY])
    meter = hours.client.meter
    meter.settle(world.clock())
    world.clock.now = world.clock.now.replace(second=0)
    pages = explain.Shared()

    def asked() -> int:
        before = len(hours.forge.log)
        queue, _ = pages.explain(world.lab, hours.project)
        assert [one.title for one in queue.ready or ()] == ["ready"]
        return len(hours.forge.log) - before

    assert asked() > 0
    (spent,) = meter.settle(world.clock())
    assert all(purpose.is_polling for purpose in spent.calls)
    assert spent.polls
    make.a_run(hours.project, "900")
    world.clock.forward(seconds=59)
    assert asked() == 0, "another viewer, or news of a run"
    auto.switch(world.lab, hours.project, is_on=True, by="anna")
    assert asked() > 0, "somebody did something there"
    world.clock.forward(seconds=1)
    assert asked() > 0
    assert asked() == 0


def test_a_blocker_that_is_closed_in_another_repository_is_seen_at_the_ordinary_pace(
    world: World,
) -> None:
    hours = gitea(world, is_auto=True)
    other = hours.forge.repo("acme/library", roles={"bot": "write"})
    blocker = other.issue("first")
    hours.repo.issue("second", labels=[READY]).blocked_by.append((other, blocker))
    hours.hook()
    hours.passes(15, minutes=5)
    assert Project.objects.get().blocked == 1
    assert not world.queue.launches
    other.close(blocker)
    assert hours.until(lambda: bool(world.queue.launches)) <= 50


def _any() -> Q:
    return Q(name="shop")
