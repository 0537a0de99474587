"""The state folder is renamed away, or removed for good, under a product that runs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess

import pytest

from labsite.database import chosen
from runs.machine import processes
from runs.models import Host, Run
from tests.house.product import is_gone, lab, until
from tests.story.test_bad_days import ASK, IDLE, RUNS
from tests.story.test_main_job import _make_demo
from tests.world.stories import look, press_start, ready

pytestmark = pytest.mark.django_db(transaction=True)


def test_while_the_folder_is_away_nothing_ends_and_nothing_starts(day):
    """The database is elsewhere here, so everything that can be decided wrongly is asked."""
    run = day.run()
    day.real.memory.add_pull("demo", "afk/7")
    ready(day.real, "8")
    state = day.real.paths.state
    away = state.rename(state.with_name("away"))
    for _ in range(2):
        report = look(day.real)
        assert (report.ended, report.started) == (0, 0)
        assert f"the state folder {state} is gone" in Host.objects.get().last_error
        assert press_start(day.real, day.project).answer in ("seam_failed", "start_failed")
    assert not state.exists()
    assert day.again(run).is_active
    assert processes.marked(run.marker(day.real.lab.paths))
    away.rename(state)
    look(day.real)
    assert Host.objects.get().last_error == ""
    assert day.again(run).outcome == "succeeded"
    assert press_start(day.real, day.project).answer == "started"


def test_a_folder_that_was_removed_for_good_is_said_and_nobody_is_called_dead(real):
    """Not the shared check: work was lost, by the person who removed it."""
    project = real.project()
    ready(real)
    run = press_start(real, project).run
    shutil.rmtree(real.paths.state)
    report = look(real)
    assert "is gone" in report.errors[0]
    run.refresh_from_db()
    assert run.is_active
    assert processes.marked(run.marker(real.lab.paths))
    assert not real.paths.state.exists()


def _tmux(story, *argv: str) -> str:  # type: ignore[no-untyped-def]
    done = subprocess.run(
        ["tmux", "-S", str(story.paths.tmux_socket), *argv], capture_output=True, text=True
    )
    return done.stdout


@pytest.mark.any_database
def test_a_running_product_says_so_and_goes_on_when_its_folder_is_back(story):
    """Real processes; one of them is even killed while the folder is away."""
    product = story.up()
    _make_demo(story)
    story.shell(IDLE)
    story.shell(ASK)
    until(lambda: story.shell(RUNS) == "1:working:")
    agent = int(_tmux(story, "list-panes", "-a", "-F", "#{pane_pid}"))
    worker = product.children()["worker"]
    away = story.state.rename(story.state.with_name("away"))
    until(lambda: product.get("/readyz") == 503)
    assert product.get("/login/") in (200, 503)
    assert product.get("/healthz") == 200
    os.kill(worker, signal.SIGKILL)
    until(lambda: "The state folder" in product.log, told=lambda: product.log)
    assert "labsite waits until it is back" in product.log
    until(lambda: is_gone(worker))
    assert not story.state.exists()
    assert not is_gone(agent)
    away.rename(story.state)
    until(lambda: "worker" in product.children(), told=lambda: product.log)
    until(lambda: product.get("/readyz") == 200)
    assert story.shell(RUNS) == "1:working:"
    _tmux(story, "kill-session", "-t", "demo~1~afk-1")
    until(lambda: story.shell(RUNS) == "1:ended:died")
    assert product.log.count("labsite waits until it is back") == 1


@pytest.mark.skipif(bool(chosen()), reason="what is missing here is a file of SQLite")
def test_a_tick_by_hand_without_a_database_is_one_sentence(story):
    (story.state / "lab.sqlite3").rename(story.state / "elsewhere")
    (story.state / "lab.sqlite3").mkdir()
    done = lab("manage", "tick", state=story.state)
    assert done.returncode == 1
    assert "The database cannot be opened" in done.stderr
    assert "Traceback" not in done.stderr
    assert not Run.objects.exists()
