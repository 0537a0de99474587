"""An interactive agent that has opened its pull request may finish its answer before it is ended."""

from __future__ import annotations

import json
import os
import signal
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from runs.kept.teardown_rules import CLOSING
from runs.lifecycle import stop
from runs.machine import processes
from runs.models import Run
from tests import make
from tests.agents.script import Say, Shell, Wait
from tests.world.stories import look

pytestmark = pytest.mark.django_db(transaction=True)


def _told(world, run, *events):  # type: ignore[no-untyped-def]
    folder = world.lab.paths.run_folder(run.pk)
    lines = [json.dumps({"event": name, "at": world.clock().timestamp()}) for name in events]
    before = world.sessions.events.get(folder, b"")
    world.sessions.events[folder] = before + "".join(f"{line}\n" for line in lines).encode()


def _delivered(world, *events) -> Run:  # type: ignore[no-untyped-def]
    run = make.a_run(make.a_project(), "7", slot=7)
    world.tracker.add_root("demo")
    world.live(run)
    _told(world, run, *events)
    world.tracker.add_pull("demo", "afk/7")
    look(world)
    run.refresh_from_db()
    assert run.outcome == "succeeded"
    return run


def _is_open(world, run) -> bool:  # type: ignore[no-untyped-def]
    look(world)
    run.refresh_from_db()
    return run.settled_at is None


def test_one_that_is_in_a_turn_is_ended_once_that_is_over(world):
    run = _delivered(world, "UserPromptSubmit")
    assert _is_open(world, run)
    _told(world, run, "Stop")
    assert not _is_open(world, run)
    assert run.session not in world.sessions.all


def test_one_that_never_comes_to_an_end_is_ended_after_a_minute(world):
    run = _delivered(world, "UserPromptSubmit")
    world.clock.forward(seconds=(CLOSING - timedelta(seconds=1)).total_seconds())
    assert _is_open(world, run)
    world.clock.forward(seconds=2)
    assert not _is_open(world, run)


@pytest.mark.parametrize("events", [(), ("UserPromptSubmit", "Stop"), ("SessionStart",)])
def test_one_that_idles_or_tells_nothing_is_ended_at_once(world, events):
    assert _delivered(world, *events).settled_at is not None


def test_claude_code_says_its_last_words_after_the_pull_request(house):
    """The model answers the last call only once the run has been counted a success."""
    delivered = threading.Event()
    house.model.script(
        Shell("echo more >> hello.txt && git commit -qam 'feat: more' && git push -q origin afk/1"),
        Shell('labctl pr create --title "More" --body "Closes #1"'),
        Wait(delivered),
        Say("That was my last word."),
    )
    run = house.start(house.project(house.profile()))
    house.until(run, lambda run: run.outcome)
    assert (run.outcome, run.settled_at) == ("succeeded", None)
    delivered.set()
    house.until_over(run)
    assert "That was my last word." in run.last_words
    assert run.worktree_fate == "removed"


def test_the_last_screen_is_kept_though_its_session_could_not_be_ended_at_once(world):
    """What a program shows that is ending is not what it did: Claude Code 2.1.332 clears its screen."""
    run = make.a_run(make.a_project(), "7", slot=7)
    world.live(run)
    world.sessions.text[run.session] = "● All that it did\n✻ Churned for 2s · done 1:50 PM"
    world.sessions.broken_kill = "tmux is busy"
    assert stop.stop(world.lab, run, by="anna")
    world.sessions.text[run.session] = "Resume this session with:\nclaude --resume 2169c137"
    world.sessions.broken_kill = ""
    look(world)
    run.refresh_from_db()
    assert run.settled_at is not None
    assert run.last_words.startswith("● All that it did")
    assert run.last_line == "● All that it did"


def test_claude_code_that_was_ended_leaves_what_it_showed(house):
    """2.1.332 would draw on the terminal's second screen, of which nothing is left."""
    house.model.script(Say("\n\n".join(f"Line {number}" for number in range(60))))
    run = house.start(house.project(house.profile()))
    house.until(run, lambda run: run.turn_ended_at)
    house.until(run, lambda run: "Line 59" in house.screen(run))
    for pid in processes.marked(run.marker(house.real.paths)):
        if Path(f"/proc/{pid}/comm").read_text().startswith("claude"):
            os.kill(pid, signal.SIGTERM)
    house.until_over(run)
    assert run.outcome == "died"
    assert "Line 20" in run.last_words, house.told(run)
    assert "Line 59" in run.last_words
