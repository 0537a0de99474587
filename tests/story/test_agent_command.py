"""`./lab agent try` as a person or a script starts it: a real process, the product's own worker."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from tests.story.commands import Command, refuses, started

GOOD = (
    "labctl issue view 1; echo hello > hello.txt; git add hello.txt;"
    " git commit -qm 'feat: add a file'; git push -q origin afk/1;"
    " labctl pr create --title 'feat: add a file' --body 'Closes #1'"
)
MADE = """
from runs.models import AgentProfile
AgentProfile.objects.create(name='Scripted', mode={mode!r}, argv=['sh', '-c', {script!r}, 'agent', '{{prompt}}'])
"""
LEFT = (
    "from runs.models import *; print([(t.state, t.note) for t in AgentTrial.objects.all()],"
    " Run.objects.count(), Project.objects.count())"
)
WORKER = "from runs.models import AgentTrial; print(AgentTrial.objects.latest('pk').process)"
LOGGED_OUT = """
import sys
from runs.models import AgentProfile
AgentProfile.objects.create(name='Stranger', argv=[sys.executable, '-c', 'pass', '{prompt}'],
                            login_command=[sys.executable, '-c', 'raise SystemExit(1)'])
"""


@pytest.fixture
def agent(story) -> Iterator[Callable[..., Command]]:
    with started(story, "agent") as go:
        yield go


def made(story, script: str, mode: str = "one_shot") -> None:
    story.shell(MADE.format(script=script, mode=mode))


@pytest.mark.real
@pytest.mark.parametrize("argv", [[], ["try"], ["look", "x"], ["try", "x", "--fast"]])
def test_wrong_arguments_end_it_with_two_before_anything_was_made(tmp_path, argv):
    refuses(tmp_path / "state", "agent", *argv, says="usage: ./lab agent")


def test_an_unknown_profile_ends_it_with_two_and_names_those_that_there_are(story, agent):
    command = agent("try", "nobody")
    assert command.ends() == 2
    assert "There are: Claude Code, Claude Code (print), Codex." in command.err


def test_a_good_agent_ends_it_with_zero_and_a_bad_one_with_one_without_a_product(story, agent):
    made(story, GOOD)
    good = agent("try", "Scripted")
    assert good.ends() == 0, good.out + good.err
    assert "costs one small request" in good.err
    assert "Opened a pull request       ok" in good.out
    assert good.out.splitlines()[-1] == "Scripted: passed"
    story.shell(
        "from runs.models import AgentProfile; AgentProfile.objects.filter(name='Scripted').update(argv=['sh', '-c', 'echo I have no key; exit 3', '{prompt}'])"
    )
    bad = agent("try", "Scripted", "--json")
    assert bad.ends() == 1
    told = [json.loads(line) for line in bad.out.splitlines()]
    # A step is told once it is known, and a busy machine may know of the hooks before the start.
    begun = next(line for line in told if line.get("step") == "started")
    assert begun["state"] == "failed"
    assert "I have no key" in begun["note"]
    assert (told[-1]["state"], len(told)) == ("failed", 11)
    assert story.shell(LEFT).endswith("0 0")


def test_beside_a_running_product_its_worker_does_it_to_an_end_in_words(story, agent, tab):
    """Its version and whether it is logged in are asked for once somebody looks; a press stops a trial,
    and so does the death of the worker."""
    made(story, "sleep 600")
    story.shell(LOGGED_OUT)
    story.up()
    card = tab("/settings/").locator(".agent").filter(has_text="Stranger")
    expect(card).to_contain_text("Python 3.")
    expect(card).to_contain_text("logged out")

    command = agent("try", "Scripted")
    command.says("Logged in")
    assert "No worker runs" not in command.err
    command.press()
    assert command.ends() == 130
    assert "('stopped', 'Stopped by a person.')" in story.shell(LEFT)
    assert list((story.state / "trials").iterdir()) == []

    command = agent("try", "Scripted")
    command.says("Logged in")
    os.kill(int(story.shell(WORKER).split(":")[1]), signal.SIGKILL)
    assert command.ends() == 1
    assert "labsite was interrupted while it tried the agent." in command.out
    assert list((story.state / "trials").iterdir()) == []
