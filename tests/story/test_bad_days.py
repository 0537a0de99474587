"""What holds when the machine misbehaves: kill -9 in the middle, restarts, an agent that outlives all."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.house.product import ROOT, environment, until
from tests.patience import PATIENCE
from tests.real import git
from tests.story.test_main_job import _make_demo

IDLE = """
import sys
from runs.models import AgentProfile, Project, Settings
profile = AgentProfile.objects.create(name='idle', argv=[sys.executable, '-c', 'import time; time.sleep(600)', '{prompt}'])
Project.objects.update(agent=profile)
Settings.objects.update_or_create(pk=1, defaults={'tick_seconds': 5})
"""
ASK = "from runs.wiring import lab; from runs.models import Project; from runs.dispatch import start_requests as starts; starts.request(lab(), Project.objects.get(), 'anna')"
RUNS = "from runs.models import Run; print(' '.join(f'{r.issue_key}:{r.state}:{r.outcome}' for r in Run.objects.order_by('pk')))"
ANSWERS = "from runs.models import StartRequest; print([(r.answer, r.text) for r in StartRequest.objects.all()])"
TOLD = "from runs.models import Notice; print(Notice.objects.filter(kind='run.ended').count())"
PULL = """
from datetime import datetime, UTC
from trackers.base import NewPull
from trackers.builtin import store
from runs.models import Project
store.create_pull(Project.objects.get().tracker_root, NewPull('afk/1', 'main', 't', 'Closes #1', 'x'), at=datetime.now(UTC))
"""


@pytest.mark.row("LAB-08", "LAB-135", "LAB-136", "LAB-11", level="real")
def test_agents_outlive_the_product_and_the_worker_alone_settles_each_once(story):
    """What comes back after the product is its worker: no web process, and no browser."""
    story.up()
    _make_demo(story)
    story.shell(IDLE)
    for _ in range(2):
        story.shell(ASK)
    until(
        lambda: len(story.sessions()) == 2 and story.shell(RUNS) == "1:working: 2:working:",
        told=lambda: f"{story.shell(RUNS)}; {story.shell(ANSWERS)}; {story.product.log[-3000:]}",
    )
    story.product.press_ctrl_c()
    assert story.product.wait() == 0
    assert story.sessions() == ["demo~1~afk-1", "demo~2~afk-2"]
    subprocess.run(
        ["tmux", "-S", str(story.paths.tmux_socket), "kill-session", "-t", "demo~2~afk-2"],
        check=True,
    )
    worker = subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), "run_huey", "-w", "4", "-d", "0.2", "-m", "1.0"],
        env=environment(story.state),
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: story.shell(RUNS) == "1:working: 2:ended:died")
        assert story.sessions() == ["demo~1~afk-1"]
        assert story.shell(TOLD) == "1"
        story.shell(ASK)
        until(lambda: story.shell(RUNS) == "1:working: 2:ended:died 3:working:")
        story.shell(PULL)
        until(lambda: story.sessions() == ["demo~2~afk-3"])
        assert story.shell(RUNS) == "1:ended:succeeded 2:ended:died 3:working:"
        assert story.shell(TOLD) == "2"
    finally:
        worker.terminate()
        worker.wait(PATIENCE)


@pytest.mark.row("X-07", "X-13", level="browser")
def test_an_open_page_outlives_the_web_process_and_a_killed_worker_leaves_nothing_half_made(
    story, tab
):
    flag, program = story.state.parent / "slow", story.state.parent / "bin" / "git"
    fetching = story.state.parent / "fetching"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\ncase "$*" in *" fetch "*) while [ -e {flag} ]; do touch {fetching}; sleep 0.2; done;; esac\n'
        f'exec {shutil.which("git")} "$@"\n'
    )
    program.chmod(0o755)
    story.more = {"PATH": f"{program.parent}:{os.environ['PATH']}"}
    story.up()
    _make_demo(story)
    story.shell(IDLE)
    _an_open_page_outlives_the_web_process_and_shows_a_worker_that_is_gone(story, tab)
    _a_worker_killed_in_the_middle_of_a_launch_or_a_reap_leaves_nothing_half_made(
        story, flag, fetching
    )


def _an_open_page_outlives_the_web_process_and_shows_a_worker_that_is_gone(story, tab) -> None:  # type: ignore[no-untyped-def]
    page = tab("/")
    page.evaluate("window.stayed = true")
    expect(page.locator("#link-state")).to_have_text("live")
    os.kill(story.product.children()["web"], signal.SIGKILL)
    story.shell(ASK)
    until(lambda: story.sessions() == ["demo~1~afk-1"])
    expect(page.locator("article.run")).to_have_count(1)
    expect(page.locator("#activity")).to_contain_text("agent started")
    expect(page.locator("#activity")).to_contain_text("(slot 1)")
    expect(page.locator("#link-state")).to_have_text("live")
    assert page.evaluate("window.stayed === true")

    last = "from runs.models import Host; print(Host.objects.values_list('last_tick_at').first())"
    before = story.shell(last)
    until(lambda: story.shell(last) != before)
    page.goto(f"{story.url}/settings/")
    os.kill(story.product.children()["worker"], signal.SIGSTOP)
    try:
        expect(page.locator("#worker-late")).to_contain_text("worker")
    finally:
        os.kill(story.product.children()["worker"], signal.SIGCONT)
    expect(page.locator("#worker-late")).not_to_contain_text("worker")


def _a_worker_killed_in_the_middle_of_a_launch_or_a_reap_leaves_nothing_half_made(
    story, flag: Path, fetching: Path
) -> None:  # type: ignore[no-untyped-def]
    """The fetch is slow on purpose, so that the first kill falls into it. At the second one the outcome
    is stored, and the process dies before anything else: the next worker goes on."""
    repo = story.paths.repos / "demo.git"
    flag.touch()
    story.shell(ASK)
    until(fetching.exists, told=lambda: story.product.log)
    until(lambda: story.shell(RUNS) == "1:working: 2:starting:")  # the fetch begins before that
    os.kill(story.product.children()["worker"], signal.SIGKILL)
    flag.unlink()
    until(lambda: story.shell(RUNS) == "1:working: 2:ended:failed")
    assert git(repo, "for-each-ref", "--format=%(refname)", "refs/heads/afk") == "refs/heads/afk/1"
    assert story.sessions() == ["demo~1~afk-1"]
    story.shell(ASK)
    until(lambda: story.shell(RUNS) == "1:working: 2:ended:failed 2:working:")
    assert story.sessions() == ["demo~1~afk-1", "demo~2~afk-2"]

    stopped = story.product.children()["worker"]
    # Not in the middle of a write: what is stopped there keeps everybody else from writing.
    story.shell(
        "import os, signal; from django.db import transaction\n"
        f"with transaction.atomic(): os.kill({stopped}, signal.SIGSTOP)"
    )
    story.shell(
        "from runs.models import Run; from runs.wiring import lab; from runs.lifecycle import outcomes;"
        "from runs.core.states import Outcome;"
        "outcomes.record(lab(), Run.objects.latest('pk'), Outcome.SUCCEEDED, 'pull request 4 is open')"
    )
    os.kill(stopped, signal.SIGKILL)
    until(lambda: story.sessions() == ["demo~1~afk-1"])
    settled = "from runs.models import Run; r = Run.objects.latest('pk'); print(r.worktree_fate, r.settled_at is not None)"
    until(lambda: story.shell(settled) == "removed True")
