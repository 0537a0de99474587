"""The outer loop: issue after issue through the same watch session and launch pass, a loop run each."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runs.core.states import NoticeKind, Outcome
from runs.forges import mirror
from runs.loops.results import Result
from runs.models import LoopTerms, Notice, Run
from runs.watch import switch as auto
from tests import make
from tests.fakes import World
from tests.loops.desk import Desk, topic
from tests.watch.watch_day import Day
from trackers.base import Ability, TrackerError

pytestmark = pytest.mark.django_db(transaction=True)
DONE = topic("LOOP_COMPLETE")


@pytest.fixture
def day(world: World) -> Day:
    """Automatic work in loops over two issues, the newer one listed first; its tracker is told."""
    agent = make.an_agent("Turner", argv=["turner", "{prompt}"], mode="one_shot")
    fields = {"mirror": "comments", "working_label": "ralph-working", "poll_seconds": 300}
    day = Day(world, "42", "40", parallel=1, **fields)
    day.project.agent = agent
    day.project.save()
    LoopTerms.objects.create(project=day.project, is_on=True)
    world.tracker.abilities -= {Ability.STATUS}  # so that a label tells who works
    assert auto.switch(day.lab, day.project, is_on=True, by="anna")
    day.tick()
    return day


def desk(day: Day) -> Desk:
    """The loop that runs now."""
    written(day)
    return Desk(day.world, Run.objects.active().get())


def written(day: Day) -> None:
    """What is to be told on the tracker is told."""
    while day.world.queue.mirrors:
        mirror.carry_out(day.lab, day.world.queue.mirrors.pop(0))


def labels(day: Day, key: str) -> set[str]:
    return set(day.world.tracker.issue("demo", key).labels)


def said(day: Day, key: str) -> list[str]:
    return [one.body for one in day.world.tracker.issue("demo", key).comments]


def complete(day: Day) -> None:
    """The loop that runs completes in one turn, and its session is gone."""
    found = desk(day)
    found.begin()
    assert found.finish(DONE).do == "end"
    day.world.sessions.all.pop(found.run.session, None)
    day.tick()
    written(day)


@pytest.mark.row("RALPH-41", "RALPH-42", "RALPH-43", "RALPH-53", "RALPH-55", level="contract")
def test_two_issues_are_worked_on_one_after_the_other_with_a_pause_between(day):
    assert day.started == ["40"]
    complete(day)
    ended = Run.objects.get().ended_at
    assert ended is not None
    day.world.tracker.shelves["demo"].issues[1]["labels"] = []
    day.wait(29)
    assert day.active == []
    day.wait(10)
    assert day.active == ["42"]
    runs = list(Run.objects.order_by("pk"))
    assert runs[1].requested_at - ended >= timedelta(seconds=30)
    assert [run.branch for run in runs] == ["afk/40", "afk/42"]
    assert all(run.is_loop for run in runs)
    told = Notice.objects.filter(kind=NoticeKind.LOOP_STEP).values_list("text", flat=True)
    assert "completed #40, looking for the next one" in set(told)


@pytest.mark.row("RALPH-46", "RALPH-48", "RALPH-49", level="contract")
def test_its_tracker_is_told_before_the_first_turn_and_when_it_has_ended(day):
    found = desk(day)
    assert "ralph-working" in labels(day, "40")
    assert "works on this" in said(day, "40")[0]
    found.begin()
    found.finish(DONE)
    written(day)
    assert "ralph-working" not in labels(day, "40")
    assert "succeeded" in said(day, "40")[1]


@pytest.mark.row("RALPH-50", "RALPH-47", "RALPH-54", level="contract")
def test_a_limit_is_told_with_its_code_and_the_next_issue_counts_from_nothing(day):
    LoopTerms.objects.update(max_turns=1)
    complete(day)
    day.wait(40)
    found = desk(day)
    found.begin()
    assert found.finish(topic("build.done")).content["code"] == 2
    written(day)
    assert "reached a limit (loop code 2); a person has to look at it" in said(day, "42")[1]
    assert "ralph-working" not in labels(day, "42")
    assert (found.loop.counters["turns"], LoopTerms._meta.get_field("max_turns").default) == (1, 50)


@pytest.mark.row("RALPH-51", "RALPH-52", "C-30", level="contract")
def test_without_an_issue_it_asks_each_five_minutes_and_calls_no_agent(day):
    complete(day)
    day.wait(60)
    complete(day)
    day.wait(60)
    orders, asked = len(day.world.sessions.orders), day.polls
    day.wait(900, every=5)
    assert day.polls - asked == 3
    assert len(day.world.sessions.orders) == orders
    assert day.session.phase == "idle"


@pytest.mark.row("RALPH-56", "C-31", "C-11", level="contract")
@pytest.mark.parametrize("code", [0, 1])
def test_an_issue_that_was_worked_on_is_not_taken_again(day, code):
    day.world.tracker.shelves["demo"].issues[:] = [
        one for one in day.world.tracker.shelves["demo"].issues if one["key"] == "40"
    ]
    found = desk(day)
    found.begin()
    for _ in range(3 if code else 1):
        last = found.finish(DONE, result=Result(exit_code=code, seconds=1.0))
    assert last.content["code"] == code
    day.world.sessions.all.pop(found.run.session, None)
    day.wait(900, every=30)
    assert day.started == ["40"]


@pytest.mark.row("RALPH-57", level="contract")
def test_a_tracker_that_refuses_the_comment_holds_no_run_up(day):
    day.world.tracker.fail(error=TrackerError("HTTP 500"))
    found = desk(day)
    assert found.run.state == "working"
    steps = Notice.objects.filter(kind=NoticeKind.RUN_STEP).values_list("text", flat=True)
    assert any("the tracker was not told" in text for text in steps)
    day.world.tracker.heal()
    assert found.begin().do == "turn"


@pytest.mark.row("RALPH-58", "RALPH-48", level="contract")
def test_a_worker_that_was_gone_goes_on_where_it_was(day):
    """The runner is a program of its own; the next tick of another worker settles what has ended."""
    found = desk(day)
    found.begin()
    found.finish(DONE)
    day.world.queue.mirrors.clear()
    day.world.sessions.all.pop(found.run.session, None)
    day.wait(60)
    mirror.catch_up(day.lab, day.project)
    written(day)
    assert "ralph-working" not in labels(day, "40")
    found.run.refresh_from_db()
    assert (found.run.outcome, found.run.settled_at is None) == (Outcome.SUCCEEDED, False)
