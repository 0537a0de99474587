"""A project on beads under the whole product: from ready to reap without any forge."""

from __future__ import annotations

import os
import sys

import pytest
from playwright.sync_api import expect

from tests.house.product import until
from tests.real import IDENTITY, a_checkout, git
from tests.story.test_bad_days import ASK, RUNS
from tests.trackers.bd import Beads, environ

AGENT = """
import os, pathlib, subprocess, time
os.environ.update({identity!r})
say = lambda *argv: print(subprocess.run(argv, capture_output=True, text=True).stdout, flush=True)
say("labctl", "issue", "view")
subprocess.run(["labctl", "done"])
pathlib.Path("work.txt").write_text("work")
subprocess.run(["git", "add", "-A"])
subprocess.run(["git", "commit", "-q", "-m", "feat: retry (bd-a1.2)"])
subprocess.run(["git", "push", "-q", "origin", os.environ["LAB_BRANCH"]])
go = pathlib.Path({folder!r}, "go")
while not go.exists(): time.sleep(0.05)
subprocess.run(["labctl", "done"])
time.sleep(600)
"""
ADD = "from runs.wiring import lab; from runs.projects import acts as projects; projects.add(lab(), name='demo', source={source!r}, token='', by='anna')"
STATE = "from runs.models import Project; print(Project.objects.get().state)"
SET_UP = """
from runs.models import AgentProfile, Project, Settings
profile = AgentProfile.objects.create(name='scripted', argv=[{python!r}, {script!r}, '{{prompt}}'])
Project.objects.update(agent=profile, tracker='beads', tracker_root={root!r})
Settings.objects.update_or_create(pk=1, defaults={{'tick_seconds': 5}})
"""


@pytest.mark.row("X-04", "C-07", "C-53", level="browser")
def test_an_issue_of_beads_becomes_a_finished_run(story, tab):
    home = story.state.parent
    place = Beads(home / "issues")
    place.issue("bd-a1.2", "Retry uploads", labels=["ready-for-agent"], description="Try thrice.")
    place.issue("bd-b3", "Waits for it", labels=["ready-for-agent"], priority=0)
    place.blocks("bd-a1.2", "bd-b3")
    origin = home / "origin.git"
    checkout = a_checkout(home / "checkout", origin)
    script = home / "agent.py"
    script.write_text(AGENT.format(identity=IDENTITY, folder=str(home)))
    story.more = {"PATH": environ(os.environ)["PATH"]}
    story.up()
    story.shell(ADD.format(source=str(checkout)))
    until(lambda: story.shell(STATE) == "ready")
    story.shell(SET_UP.format(python=sys.executable, script=str(script), root=place.root))

    story.shell(ASK)

    until(lambda: story.sessions() == ["demo~1~afk-bd-a1__2"])
    page = tab("/runs/1/terminal/")
    expect(page.locator("#terminal")).to_contain_text("Try thrice.")
    expect(page.locator("#terminal")).to_contain_text("Not done yet")
    page.get_by_role("link", name="Story", exact=True).click()
    until(lambda: git(origin, "for-each-ref", "refs/heads/afk").endswith("afk/bd-a1.2"))
    expect(page.locator("#steps")).to_contain_text("1 committed")
    assert story.shell(RUNS) == "bd-a1.2:working:"
    (home / "go").touch()
    until(lambda: story.shell(RUNS) == "bd-a1.2:ended:succeeded")
    expect(page.locator("#steps")).to_contain_text(", pushed, named in")
    expect(page.locator("main")).to_contain_text("names the issue, and origin has afk/bd-a1.2")
    expect(page.locator("#steps")).to_contain_text("slot free")

    assert story.sessions() == []
    assert not (story.paths.worktrees / "demo.bd-a1.2").exists()
    tip = git(story.paths.repos / "demo.git", "rev-parse", "refs/heads/afk/bd-a1.2")
    assert git(origin, "rev-parse", "refs/heads/afk/bd-a1.2") == tip
    assert place.shown("bd-a1.2")["status"] == "open"
    assert not place.has_daemon
