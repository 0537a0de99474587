"""The command that follows a session, without its process: what it says when things go from under it."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from labsite.follow import Presses, follow
from runs.core.refusal import ActRefused
from runs.core.states import NoticeKind
from runs.lifecycle import stop
from runs.models import Project, Run
from runs.timeline import announce
from runs.timeline.queries import PAGE
from runs.watch import acts as watches
from runs.watch import switch as auto
from runs.watch.command import Command, HumanLines, JsonLines, State, Summary, Told
from runs.watch.follower import CODE_GONE, Follower, step_of
from runs.watch.session import Request
from tests.fakes import World
from tests.watch.watch_day import BATCH, WATCH, Day

pytestmark = pytest.mark.django_db(transaction=True)


class Lines:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.states: list[State] = []
        self.summaries: list[Summary] = []

    def opened(self, session: int, project: str) -> None:
        self.texts.append(f"session of {project}")

    def told(self, one: Told) -> None:
        self.texts.append(one.text)

    def state(self, state: State) -> None:
        self.states.append(state)

    def summary(self, summary: Summary) -> None:
        self.summaries.append(summary)


@pytest.fixture
def day(world: World) -> Day:
    return Day(world, "1", "2")


def test_a_project_that_is_deleted_meanwhile_is_said_in_one_sentence(
    day: Day, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = Lines()
    follower = Follower.open("demo", WATCH, lines)
    day.tick()
    assert follower.news() is None
    assert follower.news() is None
    Project.objects.filter(pk=day.project.pk).delete()
    assert follower.news() == CODE_GONE == 1
    said = capsys.readouterr()
    assert (
        (said.out + said.err)
        .strip()
        .endswith("The project was removed, and its watch session with it.")
    )
    assert lines.summaries == []


def test_another_session_of_the_project_is_never_told_as_its_own(day: Day) -> None:
    lines = Lines()
    follower = Follower.open("demo", BATCH, lines)
    day.tick()
    day.ends("1").tick().ends("2").tick()
    day.ready("3")
    day.opens(WATCH)
    assert follower.news() == 0
    assert [line.completed for line in lines.summaries] == [2]
    assert not [text for text in lines.texts if f"watch session {day.session.pk} " in text]
    assert [text for text in lines.texts if "(exit code 0)" in text]


def test_a_project_that_is_cloned_is_waited_for_and_an_unknown_one_is_named(day: Day) -> None:
    Project.objects.update(state="cloning")
    assert Follower.open("DEMO", WATCH, Lines()) is None
    with pytest.raises(ActRefused, match=r"no project other\. There is: demo"):
        Follower.open("other", WATCH, Lines())
    assert watches.open_of(day.project) is None


@pytest.mark.row("MALA-W-52", "C-13", level="contract")
def test_each_press_asks_for_more_however_late_it_comes(day: Day) -> None:
    """No clock is asked: what counts is how often it was pressed."""
    presses = Presses()
    follower = Follower.open("demo", WATCH, Lines())
    day.tick()
    asked = []
    for wait in (0, 6, 600, 1):
        day.world.clock.forward(seconds=wait)
        assert presses.take() == 0
        presses.count += 1
        follower.press(presses.take())
        asked.append(Request(day.session.request).name)
    assert asked == ["DRAIN", "ABORT", "KILL", "KILL"]
    assert day.tick().end == (130, "interrupted")


def test_two_presses_at_once_are_the_second(day: Day) -> None:
    presses = Presses()
    presses.count += 2
    assert step_of(presses.take()) is Request.ABORT
    assert presses.take() == 0


class NoPrograms:
    """Somebody else runs a worker."""

    def prepare(self) -> None: ...
    def tend(self) -> None: ...


@pytest.mark.row("MALA-W-71", level="contract")
def test_who_presses_before_the_session_is_open_opens_none(day: Day) -> None:
    Project.objects.update(state="cloning")
    presses = Presses()
    presses.count += 1
    programs: Any = NoPrograms()
    assert follow(Command("demo", WATCH, Lines()), programs, presses) == 130
    assert watches.open_of(day.project) is None


def _away(*_: Any) -> Any:
    raise OperationalError("the server closed the connection")


def test_what_was_pressed_while_the_database_was_away_is_asked_with_the_next_news(day: Day) -> None:
    follower = Follower.open("demo", WATCH, Lines())
    assert follower is not None
    day.tick()
    with connection.execute_wrapper(_away), pytest.raises(OperationalError):
        follower.press(1)
    assert Request(day.session.request) is Request.NONE
    assert follower.news() is None
    assert Request(day.session.request) is Request.DRAIN


class ComesBack:
    """Cannot be read once, and has ended then."""

    left, lost, failed = "", "", 1
    asked = 0

    def begin(self) -> ComesBack:
        return self

    def press(self, times: int) -> int | None:
        return None

    def news(self) -> int | None:
        self.asked += 1
        if self.asked == 1:
            raise OperationalError("the server closed the connection")
        return 0


def test_a_database_that_goes_away_ends_no_command() -> None:
    programs: Any = NoPrograms()
    command = ComesBack()
    assert follow(command, programs, Presses()) == 0
    assert command.asked == 2


def test_what_was_told_in_heaps_is_told_to_the_end_before_the_summary(day: Day) -> None:
    lines = Lines()
    follower = Follower.open("demo", BATCH, lines)
    day.tick()
    with transaction.atomic():
        for number in range(2 * PAGE):
            kind = NoticeKind.VALIDATION_STEP
            announce.tell(day.lab, kind, f"step {number}", project=day.project, watch_id=day.session.pk)  # fmt: skip
    day.ends("1").tick().ends("2").tick()
    assert follower.news() == 0
    assert f"step {2 * PAGE - 1}" in lines.texts
    assert "(exit code 0)" in lines.texts[-1]


def test_a_terminal_says_once_what_holds_a_session_up(day: Day) -> None:
    out = StringIO()
    follower = Follower.open("demo", BATCH, HumanLines(out))
    day.project.agent.login_command = ["agent", "status"]
    day.project.agent.save()
    day.world.login.answer = False
    for _ in range(3):
        day.wait(60, every=10)
        assert follower.news() is None
    said = "Something is ready, and nothing starts. Test agent is not logged in.\n"
    assert out.getvalue().count(said) == 1


def test_a_batch_whose_only_run_was_stopped_was_interrupted(world: World) -> None:
    day = Day(world, "1")
    out = StringIO()
    follower = Follower.open("demo", BATCH, HumanLines(out))
    day.tick()
    assert stop.stop(day.lab, Run.objects.get(), "anna")
    day.wait(130, every=10)
    assert follower.news() == 130
    assert "130: interrupted" in out.getvalue()
    assert "0 completed: 0 passed, 0 failed, 1 stopped by a person" in out.getvalue()


def test_a_paused_project_is_said_at_once_with_what_to_do(day: Day) -> None:
    day.project.streak = 3
    day.project.save()
    out, machine = StringIO(), StringIO()
    follower = Follower.open("demo", BATCH, HumanLines(out))
    assert follower.news() is None  # nobody made a tick yet
    said = "demo is paused: 3 runs in a row failed. Nothing starts until you press Resume"
    assert said in out.getvalue()

    again = Follower(day.session, JsonLines(machine), 0)
    for _ in range(3):
        day.wait(60, every=20)
        assert follower.news() is None
        assert again.news() is None
    assert out.getvalue().count(said) == 1
    states = [json.loads(line) for line in machine.getvalue().splitlines()]
    assert [one["paused"].startswith(said) for one in states if one["event"] == "state"] == [True]

    assert auto.reset(day.lab, day.project, by="anna")
    day.wait(70, every=10)
    assert day.active == ["1", "2"]
    assert again.news() is None
    assert json.loads(machine.getvalue().splitlines()[-1])["paused"] == ""


def test_a_killed_session_with_completions_is_not_said_to_have_none(day: Day) -> None:
    out = StringIO()
    follower = Follower.open("demo", BATCH, HumanLines(out))
    day.tick()
    day.ends("1")
    follower.press(3)
    day.tick()
    assert follower.news() == 130
    assert "130: interrupted" in out.getvalue()
    assert "validated  never\n" in out.getvalue()
