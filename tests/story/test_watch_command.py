"""`./lab watch` as a person or a script starts it: a real process, real signals, the code it exits with."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import databases
from tests.house.product import until
from tests.patience import PATIENCE
from tests.story.commands import Command, alive, refuses, started
from tests.story.conftest import Story

SET_UP = """
import shutil, sys
from runs.demo import making as demo
from runs.issues import acts as issues
from runs.models import AgentProfile, Project, Settings
from runs.projects import acts as projects
from runs.wiring import lab
demo.make(lab(), 'anna')
agent = AgentProfile.objects.get(name='Demo agent')
AgentProfile.objects.filter(pk=agent.pk).update(env={{'DEMO_PAUSE': '0'}})
Settings.objects.update_or_create(pk=1, defaults={{'tick_seconds': 5, 'watch_seconds': 5}})
folder = lab().paths.demo / 'splitbill'
source = str(shutil.copytree(folder, folder.with_name({name!r})))
made = projects.add(lab(), name={name!r}, source=source, token='', by='anna')
Project.objects.filter(pk=made.pk).update(agent=agent, checks={checks!r}, **{project!r})
for script in {scripts!r}:
    body = f'demo-agent: {{script}}'
    issues.create(lab(), made, title='Do it', body=body, labels=[made.ready_label], by='anna')
"""
RUNS = "from runs.models import Run; print(' '.join(f'{{r.issue_key}}:{{r.outcome}}' for r in Run.objects.filter(project__slug={!r}).order_by('pk')))"
STUBBORN = """
import sys
from runs.models import AgentProfile, Project
code = 'import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print(1, flush=True); time.sleep(600)'
agent = AgentProfile.objects.create(name='stubborn', argv=[sys.executable, '-c', code, '{prompt}'])
Project.objects.filter(slug='thrice').update(agent=agent)
"""
GATE = """
import os, sys, time
while not os.path.exists({gate!r}): time.sleep(0.05)
os.execvp(sys.argv[1], sys.argv[1:])
"""
GATED = """
import sys
from runs.models import AgentProfile
agent = AgentProfile.objects.get(name='Demo agent')
AgentProfile.objects.filter(pk=agent.pk).update(argv=[sys.executable, '-c', {code!r}, *agent.argv])
"""
PHASE = "from runs.models import WatchSession; print(WatchSession.objects.get(project__slug={!r}).phase)"
WORK = "work"
IDLE = "print here; idle"


def set_up(story, name: str, *scripts: str, checks: str = "", **project: object) -> None:
    """A project with these scripts as its ready issues; the command or the product clones it."""
    known = {"name": name, "scripts": scripts, "checks": checks, "project": project}
    story.shell(SET_UP.format(**known))


@pytest.fixture
def watch(story) -> Iterator[Callable[..., Command]]:
    """Starts the command, which finds no worker there and starts its own."""
    with started(story, "watch") as go:
        yield go


@pytest.fixture(scope="module")
def running(with_anna: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """A product for all tests that need no worker of the command's own; each has its own project."""
    made = Story(databases.copy(with_anna, tmp_path_factory.mktemp("running") / "state"))
    made.up()
    yield made
    made.close()


@pytest.fixture
def beside(running: Story) -> Iterator[Callable[..., Command]]:
    """Starts the command beside the running product."""
    with started(running, "watch") as go:
        yield go


def sessions(story, name: str) -> list[str]:
    return [one for one in story.sessions() if one.startswith(f"{name}~")]


@pytest.mark.real
@pytest.mark.row("MALA-W-40", "MALA-W-41", "MALA-W-42", "MALA-W-43", "MALA-W-69", level="real")
@pytest.mark.parametrize(
    ("argv", "text"),
    [
        *[
            pytest.param(
                [f"--{name}", value], f"Error: --{name} must be at least 1", id=f"{name} {value}"
            )
            for name in ("max-issues", "validate-every")
            for value in ("0", "-1", "x", "1.5", "")
        ],
        pytest.param(["--interval", "5"], "unrecognized arguments: --interval 5", id="no interval"),
        pytest.param(
            ["--disable-validations", "codex-review"],
            "codex-review is called review now",
            id="an old name",
            marks=pytest.mark.row("MALA-V-68", level="real"),
        ),
        pytest.param(
            ["--coverage-threshold", "high"],
            "high is no percentage",
            id="no percentage",
            marks=pytest.mark.row("MALA-V-69", level="real"),
        ),
        pytest.param(
            ["--codex-thinking-mode", "high"],
            "unrecognized arguments: --codex-thinking-mode high",
            id="no thinking mode",
            marks=pytest.mark.row("MALA-V-71", level="real"),
        ),
    ],
)
def test_wrong_arguments_end_it_with_two_before_anything_was_made(tmp_path, argv, text):
    refuses(tmp_path / "state", "watch", "demo", *argv, says=text)


@pytest.mark.row("MALA-W-42", "MALA-W-12", level="real")
def test_an_unknown_project_and_a_second_session_end_it_with_two(story, watch):
    set_up(story, "alone")
    assert watch("nothing").ends() == 2
    first = watch("alone", "--watch")
    first.says("Idle: no ready issues. Polling in 5s...")

    second = Command(story, "watch", "alone")

    assert second.ends() == 2
    assert "open watch session" in second.err
    assert first.process.poll() is None

    # A closed terminal leaves the session open and none of the programs behind.
    first.hang_up()
    assert first.ends() == 129
    assert story.shell(PHASE.format("alone")) == "idle"
    until(lambda: not alive(story))


@pytest.mark.row("MALA-W-01", "MALA-W-67", level="real")
def test_it_works_off_what_is_ready_with_a_worker_of_its_own_and_exits_with_nought(story, watch):
    set_up(story, "alone", WORK, WORK)

    command = watch("alone", "--json")

    assert command.ends() == 0, command.err
    lines = [json.loads(line) for line in command.out.splitlines()]
    assert lines[0] == {"event": "opened", "session": 1, "project": "alone"}
    last = lines[-1]
    assert (last["event"], last["code"], last["reason"]) == ("ended", 0, "queue empty")
    assert (last["completed"], last["failed"], last["validations"]) == (2, 0, ["nothing to check"])
    assert "No worker runs" in command.err
    assert story.shell(RUNS.format("alone")) == "1:succeeded 2:succeeded"
    assert story.sessions() == []
    until(lambda: not alive(story))


@pytest.mark.real
@pytest.mark.row("MALA-W-72", "C-44", level="real")
def test_a_failed_issue_is_code_one_with_its_own_reason(running, beside):
    set_up(running, "failing", WORK, "print here; sleep 12; exit 3")

    command = beside("failing")

    assert command.ends() == 1, command.err
    assert "1: issues failed" in command.out
    assert "2 completed: 1 passed, 1 failed" in command.out


@pytest.mark.real
@pytest.mark.row("MALA-W-68", "MALA-W-35", level="real")
def test_a_failed_validation_is_code_one(running, beside):
    set_up(running, "wrong", WORK, checks="false", fix_attempts=0)

    command = beside("wrong")

    assert command.ends() == 1, command.err
    assert "1: validation failed" in command.out


@pytest.mark.real
@pytest.mark.row("MALA-W-71", "MALA-W-46", "MALA-W-53", level="real")
@pytest.mark.row("MALA-W-70", "MALA-W-57", level="real")
def test_ctrl_c_while_idle_ends_it_at_once_with_130_and_three_failed_polls_with_three(
    running, beside
):
    set_up(running, "idle")
    command = beside("idle", "--watch")
    command.says("Idle: no ready issues. Polling in 5s...")

    command.press()

    assert command.ends() == 130
    assert "validated  never" in command.out

    running.shell(
        "from runs.models import Project; Project.objects.filter(slug='idle').update(tracker_root='nothing')"
    )
    command = beside("idle", "--watch")

    assert command.ends() == 3, command.err
    assert "3: poll failed" in command.out


@pytest.mark.row("MALA-W-45", "MALA-W-71", "C-13", level="real")
def test_ctrl_c_while_it_works_waits_for_the_run_and_its_validation(story, watch):
    go = story.state.parent / "go"
    set_up(story, "alone", WORK, WORK, checks="true")
    story.shell(GATED.format(code=GATE.format(gate=str(go))))
    command = watch("alone", "--watch")
    command.says("issue 1: agent started")

    command.press()
    command.says("Draining")
    go.touch()

    assert command.ends() == 130
    assert story.shell(RUNS.format("alone")) == "1:succeeded"
    assert "validated  passed" in command.out
    assert "started again" not in command.err  # Ctrl-C reached the command alone


@pytest.mark.real
@pytest.mark.row("MALA-W-47", level="real")
def test_ctrl_c_during_a_validation_lets_it_come_to_its_end(running, beside):
    set_up(running, "slow", WORK, checks="sleep 6")
    command = beside("slow", "--watch", "--validate-every", "1")
    command.says("validation 1")

    command.press()

    assert command.ends() == 130
    assert "validated  passed" in command.out


@pytest.mark.real
@pytest.mark.row("MALA-W-50", level="real")
def test_ctrl_c_twice_interrupts_the_runs(running, beside):
    set_up(running, "twice", IDLE)
    command = beside("twice", "--watch")
    command.says("issue 1: first output")

    command.press()
    command.says("Draining")
    command.press()

    assert command.ends() == 130
    assert running.shell(RUNS.format("twice")) == "1:interrupted"
    assert sessions(running, "twice") == []


@pytest.mark.real
@pytest.mark.row("MALA-W-51", level="real")
def test_ctrl_c_three_times_kills_an_agent_that_does_not_listen(running, beside):
    set_up(running, "thrice", WORK)
    running.shell(STUBBORN)
    command = beside("thrice", "--watch")
    command.says("issue 1: first output")

    for said in ("Draining", "Aborting", "Killing"):
        command.press()
        command.says(said)

    assert command.ends() == 130
    assert sessions(running, "thrice") == []


@pytest.mark.real
def test_with_a_running_product_it_starts_nothing_and_killing_it_ends_no_session(running, beside):
    set_up(running, "stays")
    command = beside("stays", "--watch")
    command.says("Idle: no ready issues")
    assert "No worker runs" not in command.err

    command.process.kill()
    command.process.wait(PATIENCE)

    assert running.shell(PHASE.format("stays")) == "idle"
