"""An agent that stops without a pull request is asked once for it, in its own session (World: all faked)."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from runs.core.ports import MaybeGiven
from runs.core.states import Outcome, RunState, Wait
from runs.followups.nudge_rules import TOLD, Stopped, is_asked
from runs.lifecycle.verdict import LINGERED, LINGERS_FOR
from runs.models import AgentProfile, Notice, Project, Run, Settings
from tests.fakes import World
from tests.followups.conftest import prints
from tests.transcript import agent_lines as x
from tests.world.stories import look, start, work

pytestmark = pytest.mark.django_db(transaction=True)

DIALOG = "Do you want to proceed?\n❯ 1. Yes\n  2. No\n"


@pytest.mark.parametrize(
    ("change", "asked"),
    [
        ({}, True),
        ({"is_on": False}, False),
        ({"was_asked": True}, False),
        ({"is_well": False}, False),
        ({"can_be_told": False}, False),
        ({"is_adding": True}, False),
    ],
)
def test_who_is_asked(change: dict[str, bool], asked: bool) -> None:
    known = {"is_on": True, "was_asked": False, "is_well": True, "can_be_told": True}
    assert is_asked(Stopped(**{**known, **change})) is asked


def _stops(world: World, run: Run, status: int = 0) -> Run:
    """A one-shot agent says that it is done, and ends."""
    prints(world, run, x.claude_init(), x.claude_result())
    world.sessions.end(run.session, status)
    look(world)
    work(world)
    run.refresh_from_db()
    return run


def _told(run: Run) -> list[str]:
    rows = Notice.objects.filter(run=run, kind="run.step", text=TOLD)
    return list(rows.values_list("text", flat=True))


def test_a_one_shot_agent_is_asked_once_in_its_own_session_and_the_same_run_goes_on(
    world: World, project: Project
) -> None:
    run = _stops(world, start(world, project))
    assert (run.state, run.outcome, run.slot, run.resumes) == (RunState.WORKING, "", 1, 0)
    order = world.sessions.orders[run.session]
    assert order.argv[:4] == ["claude", "--resume", x.SESSION, "-p"]
    assert "labctl pr create" in order.argv[-1]
    assert _told(run) == [TOLD]
    assert not Notice.objects.filter(kind="run.held").exists()
    world.tracker.add_pull("demo", "afk/7", created_at=world.clock())
    look(world)
    run.refresh_from_db()
    assert run.outcome == Outcome.SUCCEEDED


def test_a_second_end_without_a_pull_request_is_a_death_that_tells_that_it_was_asked(
    world: World, project: Project
) -> None:
    run = _stops(world, _stops(world, start(world, project)))
    assert (run.outcome, run.did_start) == (Outcome.DIED, True)
    assert run.reason == (
        "the agent finished (ended with exit status 0), and there is no pull request; "
        f"it had been {TOLD}"
    )
    assert _told(run) == [TOLD]


def test_a_program_that_does_not_exit_after_its_result_is_ended_and_asked(
    world: World, project: Project
) -> None:
    run = start(world, project)
    first = world.sessions.all[run.session]
    prints(world, run, x.claude_init(), x.claude_result())
    look(world)
    world.clock.forward(seconds=LINGERS_FOR.total_seconds())
    look(world)
    assert run.session not in world.sessions.all
    work(world)
    run.refresh_from_db()
    assert (run.state, run.outcome, run.result_subtype) == (RunState.WORKING, "", "")
    assert world.sessions.all[run.session] != first
    assert "--resume" in world.sessions.orders[run.session].argv
    assert Notice.objects.get(run=run, text__endswith=TOLD).text == f"{LINGERED}; {TOLD}"


@pytest.mark.every_case
@pytest.mark.parametrize("why", ["off", "status", "program", "delivered", "stopped"])
def test_nobody_else_is_asked(world: World, project: Project, why: str) -> None:
    if why == "off":
        Settings.current()
        Settings.objects.update(nudges=False)
    if why == "program":
        AgentProfile.objects.update(argv=["tool", "{prompt}"])
    run = start(world, project)
    if why == "delivered":
        world.tracker.add_pull("demo", "afk/7", created_at=world.clock())
    if why == "stopped":
        Run.objects.update(interrupted_at=world.clock())
    _stops(world, run, 1 if why == "status" else 0)
    assert run.outcome
    assert (_told(run), run.nudged_at) == ([], None)


def test_a_program_that_does_not_take_its_session_up_for_it_has_died(
    world: World, project: Project
) -> None:
    run = _stops(world, start(world, project))
    world.sessions.outputs.pop(world.lab.paths.run_folder(run.pk), None)
    world.sessions.end(run.session, 1)
    look(world)
    run.refresh_from_db()
    assert run.outcome == Outcome.DIED
    assert run.reason.endswith(f"it had been {TOLD}")


def test_a_worker_that_dies_after_the_press_asks_once_all_the_same(
    world: World, project: Project
) -> None:
    run = start(world, project)
    prints(world, run, x.claude_init(), x.claude_result())
    world.sessions.end(run.session, 0)
    look(world)
    world.queue.launches.clear()
    world.clock.forward(seconds=30)
    look(world)
    work(world)
    run.refresh_from_db()
    assert (run.state, _told(run)) == (RunState.WORKING, [TOLD])


@pytest.fixture
def interactive(world: World, project: Project) -> Run:
    """A run of an interactive agent whose hooks tell that it works."""
    AgentProfile.objects.update(argv=["claude", "{prompt}"], mode="interactive", output="")
    run = start(world, project)
    _hears(world, run, "UserPromptSubmit")
    return run


def _hears(world: World, run: Run, event: str) -> None:
    folder = world.lab.paths.run_folder(run.pk)
    said = {"at": world.clock.now.timestamp(), "event": event, "session": "s-1"}
    line = json.dumps(said).encode() + b"\n"
    world.sessions.events[folder] = world.sessions.events.get(folder, b"") + line


def _looked(world: World, run: Run, seconds: float = 0) -> Run:
    world.clock.forward(seconds=seconds)
    look(world)
    run.refresh_from_db()
    return run


def test_an_interactive_agent_is_asked_once_before_it_is_said_to_wait(
    world: World, interactive: Run
) -> None:
    run = interactive
    _looked(world, run, 1)
    _hears(world, run, "Stop")
    _looked(world, run, 1)
    assert world.sessions.typed == []
    for _ in range(3):
        _looked(world, run, 8)
        assert run.waits == Wait.NONE
    ((session, words),) = world.sessions.typed
    assert (session, "labctl pr create" in words) == (run.session, True)
    assert _told(run) == [TOLD]
    _hears(world, run, "UserPromptSubmit")
    _looked(world, run, 5)
    _hears(world, run, "Stop")
    _looked(world, run, 12)
    assert run.waits == Wait.IDLE
    assert len(world.sessions.typed) == 1


def test_one_that_does_not_read_it_waits_for_a_person_after_a_while(
    world: World, interactive: Run
) -> None:
    run = interactive
    _hears(world, run, "Stop")
    _looked(world, run, 11)
    _looked(world, run, 31)
    assert (run.waits, len(world.sessions.typed)) == (Wait.IDLE, 1)


def test_nothing_is_typed_into_a_dialog(world: World, interactive: Run) -> None:
    run = interactive
    world.sessions.text[run.session] = DIALOG
    _hears(world, run, "Stop")
    _looked(world, run, 11)
    assert (world.sessions.typed, run.nudged_at) == ([], None)
    assert run.waits == Wait.IDLE


def test_one_that_was_interrupted_by_a_person_is_asked_nothing(
    world: World, interactive: Run
) -> None:
    run = interactive
    Run.objects.update(turn_interrupted_at=world.clock() + timedelta(seconds=1))
    _looked(world, run, 12)
    assert (world.sessions.typed, run.waits) == ([], Wait.IDLE)


def test_what_may_have_arrived_is_not_sent_again(world: World, interactive: Run) -> None:
    run = interactive

    def give(name: str, marker: str, text: str) -> None:
        world.sessions.typed.append((name, text))
        raise MaybeGiven("tmux was cut short")

    world.sessions.say = give  # type: ignore[method-assign]
    _hears(world, run, "Stop")
    for _ in range(3):
        _looked(world, run, 11)
    assert len(world.sessions.typed) == 1
