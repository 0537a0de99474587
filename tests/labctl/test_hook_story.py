"""The hooks of docs/hooks.md, run as the agents run them: by a shell, in a session that labsite started."""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

import pytest

from labsite.preflight import write_labctl
from runs import tick
from runs.groups import acts as groups
from runs.groups import monitors
from runs.groups.acts import NewWorker
from runs.groups.tasks import NewTask
from runs.groups.terms import MonitorState, TaskStatus
from runs.models import Monitor, Task, Worker
from tests.labctl.session import ROOT
from tests.patience import PATIENCE
from tests.world import stories

PAGE = (ROOT / "docs" / "hooks.md").read_text()
SETTINGS = [json.loads(text)["hooks"] for text in re.findall(r"```json\n(.*?)```", PAGE, re.S)]
# What Claude Code 2.1.197 gave its hooks.
SAID = {
    "session_id": "6b8c8d47-f7d3-49ec-81bf-265ab75c6a97",
    "transcript_path": "/home/anna/.claude/projects/demo/6b8c8d47.jsonl",
    "prompt_id": "2e081003-3d98-4003-bb9d-6158fd5ad951",
    "teammate_name": "ann",
    "team_name": "session-6b8c8d47",
}
TASK = {"task_id": "1", "task_subject": "Read the parser", "task_description": "Read it"}
AGENT = """
import json, os, pathlib, subprocess, sys, time
here = pathlib.Path(os.environ["LAB_RUN_FOLDER"])
while not (here / "go").exists():
    time.sleep(0.02)
for number, (command, said, text) in enumerate(json.loads((here / "go").read_text())):
    if text:
        os.makedirs("out", exist_ok=True)
        pathlib.Path("out/ann.md").write_text(text)
    said["cwd"] = os.getcwd()
    done = subprocess.run(
        ["/bin/sh", "-c", command], input=json.dumps(said), capture_output=True, text=True
    )
    answer = here / f"answer-{number}"
    answer.with_suffix(".part").write_text(json.dumps([done.returncode, done.stdout, done.stderr]))
    answer.with_suffix(".part").rename(answer)
time.sleep(600)
"""


def command(event: str, number: int = 0) -> str:
    return str(next(s for s in SETTINGS if event in s)[event][0]["hooks"][number]["command"])


def wait_for(path: Path) -> list[object]:
    end = time.monotonic() + PATIENCE
    while not path.exists():
        assert time.monotonic() < end, f"{path.name} never came"
        time.sleep(0.02)
    return list(json.loads(path.read_text()))


@pytest.mark.row("RUNE-66", "RUNE-67", "RUNE-68", "RUNE-87", level="real")
def test_a_team_in_a_session_ends_its_group_by_its_hooks(real):
    write_labctl(real.paths, sys.executable, ROOT)
    project = real.project(argv=[sys.executable, "-c", AGENT, "{prompt}"])
    group = groups.make(
        real.lab,
        project,
        "reviewers",
        preset="review",
        new=[NewTask("Read the parser")],
        workers=[NewWorker("ann", "ann.md")],
        output_dir="out",
        by="anna",
    )
    run = stories.start(real, project)
    Worker.objects.filter(group=group, name="ann").update(run=run)
    monitor = monitors.start(real.lab, group, by="anna")
    here = real.paths.run_folder(run.pk)
    (here / "group").write_text("reviewers")

    completed, idle = command("TaskCompleted"), command("TeammateIdle")
    steps = [
        [completed, {**SAID, **TASK, "hook_event_name": "TaskCompleted"}, ""],
        [idle, {**SAID, "hook_event_name": "TeammateIdle"}, ""],
        [idle, {**SAID, "hook_event_name": "TeammateIdle"}, "x" * 60 + "\nSEAL: complete\n"],
    ]
    (here / "go.part").write_text(json.dumps(steps))
    (here / "go.part").rename(here / "go")
    assert wait_for(here / "answer-0") == [0, "", ""]
    code, out, err = wait_for(here / "answer-1")
    assert (code, out) == (2, "")
    assert "out/ann.md" in str(err)
    assert wait_for(here / "answer-2") == [0, "", ""]

    tick.tick(real.lab, project=project.slug)
    assert Task.objects.get(group=group).status == TaskStatus.COMPLETED
    monitor = Monitor.objects.get(pk=monitor.pk)
    assert (monitor.state, monitor.completed, monitor.timed_out) == (
        MonitorState.COMPLETE,
        ["1"],
        False,
    )


def test_the_settings_of_the_page_name_events_and_commands_that_there_are():
    claude, codex = SETTINGS
    assert (set(claude), set(codex)) == ({"TaskCompleted", "TeammateIdle"}, {"Stop"})
    for number in (0, 1):
        assert "labctl hook" in command("Stop", number)
