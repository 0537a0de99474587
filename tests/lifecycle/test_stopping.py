"""The neutral Stop (LAB-46 to LAB-52), on real tmux and git."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connections

from runs import tick
from runs.lifecycle.stop import stop
from runs.models import Notice, Project, Run, Settings
from runs.stop_project import stop_project
from tests.real import git
from tests.world.stories import look, press_start, start

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.row("LAB-46", "LAB-50", level="real")
def test_stop_ends_the_session_and_keeps_worktree_branch_and_claim(real):
    project = real.project()
    run = start(real, project)
    (Path(run.worktree) / "half.txt").write_text("half")
    assert stop(real.lab, run, "anna")
    run.refresh_from_db()
    assert (run.outcome, run.worktree_fate) == ("stopped", "kept")
    assert real.session_names() == []
    assert (Path(run.worktree) / "half.txt").exists()
    assert real.repos.claims(project.repo(real.paths)) == {"7"}
    assert press_start(real, project).answer == "nothing_ready"
    ended = Notice.objects.get(kind="run.ended")
    assert (ended.by, ended.outcome) == ("anna", "stopped")


@pytest.mark.row("LAB-50", level="real")
def test_stop_keeps_even_a_clean_worktree(real):
    run = start(real, real.project())
    stop(real.lab, run, "anna")
    for _ in range(2):
        look(real)
    assert Path(run.worktree).is_dir()


@pytest.mark.row("LAB-48", "LAB-47", level="real")
def test_a_stopped_run_is_never_classified_later(real):
    run = start(real, real.project())
    Project.objects.update(streak=1)
    stop(real.lab, run, "anna")
    asked = real.memory.calls["pulls"]
    real.offset = timedelta(minutes=105)
    for _ in range(3):
        look(real)
    run.refresh_from_db()
    assert run.outcome == "stopped"
    assert Project.objects.get().streak == 1
    assert real.memory.calls["pulls"] == asked
    assert list(Notice.objects.filter(kind="run.ended").values_list("outcome", flat=True)) == [
        "stopped"
    ]


def test_stopping_twice_answers_that_it_had_ended(real):
    run = start(real, real.project())
    assert stop(real.lab, run, "anna")
    assert not stop(real.lab, run, "bert")
    assert Notice.objects.filter(kind="run.ended").get().by == "anna"


@pytest.mark.row("LAB-49", level="real")
@pytest.mark.parametrize("first", ["reap", "stop"])
def test_whoever_ends_a_run_first_decides_and_the_other_changes_nothing(real, first):
    """Both orders, forced: the second one acts while the first is between outcome and kill."""
    run = start(real, real.project())
    (Path(run.worktree) / "half.txt").write_text("half")
    real.offset = timedelta(minutes=46)
    late = []

    class ActsInBetween:
        def __getattr__(self, name):  # type: ignore[no-untyped-def]
            return getattr(real.sessions, name)

        def kill(self, *args) -> None:  # type: ignore[no-untyped-def]
            if not late:
                late.append(first)
                if first == "reap":
                    assert not stop(real.lab, Run.objects.select_related("project").get(), "anna")
                else:
                    assert tick.tick(real.lab, force=True).ended == 0
            real.sessions.kill(*args)

    between = replace(real.lab, sessions=ActsInBetween())
    if first == "reap":
        tick.tick(between, force=True)
    else:
        stop(between, Run.objects.select_related("project").get(), "anna")
    look(real)
    assert late
    run = Run.objects.get()
    assert run.outcome == ("timed_out" if first == "reap" else "stopped")
    assert (Path(run.worktree) / "half.txt").exists()
    assert Notice.objects.filter(kind="run.ended").count() == 1
    assert Notice.objects.filter(kind="run.reaped").count() == 1
    assert real.session_names() == []


@pytest.mark.row("LAB-51", level="real")
def test_stop_all_is_neutral_for_every_run_of_one_project(real):
    project, other = real.project(), real.project("other")
    for key in ("7", "8"):
        start(real, project, key)
    spared = start(real, other, "1")
    assert stop_project(real.lab, project, "anna") == 2
    for _ in range(3):
        look(real)
    assert set(Run.objects.filter(project=project).values_list("outcome", flat=True)) == {"stopped"}
    assert set(Project.objects.values_list("streak", flat=True)) == {0}
    assert real.session_names() == [spared.session]


@pytest.mark.row("LAB-49", level="real")
def test_stop_and_reap_exclude_each_other(real):
    """Thirty over-budget ticks race three stops; dirty worktrees stay, and each run has one outcome."""
    project = real.project()
    runs = [start(real, project, key) for key in ("1", "2", "3")]
    for run in runs:
        (Path(run.worktree) / "half.txt").write_text("half")
    Settings.objects.filter(pk=1).update(run_budget_minutes=1)
    real.offset = timedelta(minutes=2)
    go = threading.Barrier(4)
    problems = []

    def ticks() -> None:
        go.wait()
        for _ in range(30):
            tick.tick(real.lab, force=True)

    def stopper(run: Run) -> None:
        go.wait()
        stop(real.lab, run, "anna")

    def guarded(work, *args) -> None:  # type: ignore[no-untyped-def]
        try:
            work(*args)
        except Exception as error:
            problems.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=guarded, args=(ticks,))]
    threads += [threading.Thread(target=guarded, args=(stopper, run)) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    look(real)
    assert problems == []
    assert Run.objects.count() == 3
    for run in runs:
        run.refresh_from_db()
        assert run.outcome in ("stopped", "timed_out")
        assert run.settled_at is not None
        assert (Path(run.worktree) / "half.txt").exists()
        assert Notice.objects.filter(run=run, kind="run.ended").count() == 1
        assert Notice.objects.filter(run=run, kind="run.reaped").count() == 1
        assert git(Path(run.worktree), "branch", "--show-current") == run.branch
    assert real.session_names() == []


@pytest.mark.row("LAB-49", "LAB-58", level="real")
def test_two_starts_a_stop_and_a_tick_race_to_one_outcome_per_run(real):
    """Whatever comes first: one run per issue, one outcome per ended run, slots equal to sessions."""
    from runs.dispatch import start_requests
    from runs.lifecycle import launch
    from runs.models import StartRequest
    from tests.world.stories import ready

    project = real.project()
    first = start(real, project, "1")
    for key in ("2", "3"):
        ready(real, key)
    go = threading.Barrier(4)
    problems = []

    def guarded(work) -> None:  # type: ignore[no-untyped-def]
        try:
            go.wait()
            work()
        except Exception as error:
            problems.append(error)
        finally:
            connections.close_all()

    def press() -> None:
        start_requests.request(real.lab, project, "anna")
        tick.tick(real.lab, project="demo")
        for run in Run.objects.starting():
            launch.carry_out(real.lab, run.pk)

    acts = [
        press,
        press,
        lambda: stop(real.lab, first, "anna"),
        lambda: tick.tick(real.lab, force=True),
    ]
    threads = [threading.Thread(target=guarded, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for _ in range(2):
        look(real)
        real.work()
    assert problems == []
    assert Run.objects.count() == 3
    first.refresh_from_db()
    assert first.outcome == "stopped"
    live = Run.objects.active()
    assert sorted(run.session for run in live) == real.session_names()
    assert {run.issue_key for run in live} == {"2", "3"}
    assert len({run.slot for run in live}) == 2
    assert set(StartRequest.objects.values_list("answer", flat=True)) == {"started"}
    for run in Run.objects.exclude(outcome=""):
        assert Notice.objects.filter(run=run, kind="run.ended").count() == 1
