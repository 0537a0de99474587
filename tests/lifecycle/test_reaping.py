"""What ends a run and what the reap leaves behind, on real tmux and git."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from runs import tick
from runs.core import lease
from runs.core.ports import Steady
from runs.core.states import Outcome
from runs.dispatch import start_requests
from runs.lifecycle import outcomes, reaper
from runs.lifecycle.stop import stop
from runs.machine import processes
from runs.models import Host, Notice, Rescue, Run, Settings, Tick
from runs.watch import switch as auto
from tests import make
from tests.fakes import START
from tests.linked import refuse_removal
from tests.real import git
from tests.world.stories import look, press_start, ready, start

pytestmark = pytest.mark.django_db(transaction=True)


def _commit_and_push(run: Run) -> None:
    tree = Path(run.worktree)
    (tree / "work.txt").write_text("work")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "feat: work")
    git(tree, "push", "-q", "origin", run.branch)


def _again(run: Run) -> Run:
    return Run.objects.select_related("project").get(pk=run.pk)


@pytest.mark.row("LAB-20", "LAB-31", level="real")
def test_a_young_run_without_a_pull_request_is_left_alone_and_a_closed_one_is_none(real):
    run = start(real, real.project())
    real.memory.add_pull("demo", "afk/7", "closed")
    real.offset = timedelta(minutes=10)
    look(real)
    assert _again(run).is_active
    assert Path(run.worktree).is_dir()
    assert real.session_names() == [run.session]
    real.tmux("kill-session", "-t", run.session)
    look(real)
    assert _again(run).outcome == "died"


@pytest.mark.row("LAB-21", "LAB-37", "LAB-38", "LAB-30", level="real")
@pytest.mark.parametrize("state", ["open", "merged"])
def test_a_pull_request_is_success_and_keeps_branch_and_commits(real, state):
    project = real.project()
    run = start(real, project)
    _commit_and_push(run)
    real.memory.add_pull("demo", "afk/7", state)
    look(real)
    run = _again(run)
    assert (run.outcome, run.pull_number, run.worktree_fate) == ("succeeded", 8, "removed")
    assert real.session_names() == []
    assert not Path(run.worktree).exists()
    repo = project.repo(real.paths)
    assert run.worktree not in git(repo, "worktree", "list")
    tip = git(repo, "rev-parse", "refs/heads/afk/7")
    assert git(Path(project.url), "rev-parse", "refs/heads/afk/7") == tip
    assert set(real.memory.calls) <= {"queues", "pulls", "blockers"}


def test_the_changes_of_a_run_can_be_read_after_its_worktree_is_gone(real):
    from runs.lifecycle import observe

    run = start(real, real.project())
    _commit_and_push(run)
    real.memory.add_pull("demo", "afk/7")
    look(real)
    run = _again(run)
    assert (run.worktree_fate, run.commits) == ("removed", 1)
    changes = observe.changes(real.lab, run)
    assert [(c.path, c.kind, c.added) for c in changes.files] == [("work.txt", "A", 1)]
    assert "+work" in changes.patch
    assert not changes.is_cut


@pytest.mark.row("LAB-46", level="real")
def test_what_a_run_that_died_left_can_be_read_committed_or_not(real):
    from runs.lifecycle import observe

    run = start(real, real.project())
    tree = Path(run.worktree)
    (tree / "draft.txt").write_text("only a draft\n")
    (tree / ".gitattributes").write_text("*.txt diff=mine\n")
    git(tree, "config", "diff.mine.command", f"touch {real.paths.state}/ran; cat")
    git(tree, "config", "diff.mine.textconv", f"touch {real.paths.state}/ran; cat")
    while_it_runs = observe.changes(real.lab, run)
    assert {c.path for c in while_it_runs.files} == {"draft.txt", ".gitattributes"}
    (tree / "work.txt").write_text("work\n")
    git(tree, "add", "work.txt")
    git(tree, "commit", "-qm", "feat: work that no tick saw")
    real.tmux("kill-session", "-t", run.session)
    look(real)
    run = _again(run)
    assert (run.outcome, run.worktree_fate) == ("died", "kept")
    left = observe.changes(real.lab, run)
    assert [(c.path, c.added, c.is_open) for c in left.files] == [
        ("work.txt", 1, False), (".gitattributes", 1, True), ("draft.txt", 1, True)
    ]  # fmt: skip
    assert "+only a draft" in left.patch
    assert [one.subject for one in left.commits] == ["feat: work that no tick saw"]
    assert not (real.paths.state / "ran").exists()
    Run.objects.filter(pk=run.pk).update(worktree="/moved/away", head="")
    left = observe.changes(real.lab, _again(run))
    assert [(c.path, c.added) for c in left.files] == [("work.txt", 1)]
    newer = {"outcome": "failed", "worktree": run.worktree, "branch": run.branch}
    make.a_run(run.project, "7", slot=2, **newer)
    assert observe.changes(real.lab, _again(run)).files == ()


@pytest.mark.row("LAB-22", level="real")
def test_a_pull_request_and_a_dead_session_is_success(real):
    run = start(real, real.project())
    real.memory.add_pull("demo", "afk/7")
    real.tmux("kill-session", "-t", run.session)
    look(real)
    assert _again(run).outcome == "succeeded"


@pytest.mark.row("LAB-23", level="real")
def test_a_pull_request_wins_over_time(real):
    run = start(real, real.project())
    real.memory.add_pull("demo", "afk/7")
    real.offset = timedelta(minutes=105)
    look(real)
    assert _again(run).outcome == "succeeded"


@pytest.mark.row("LAB-24", "LAB-39", level="real")
def test_a_session_killed_from_outside_is_a_death_and_its_work_is_kept(real):
    project = real.project()
    run = start(real, project)
    (Path(run.worktree) / "half.txt").write_text("half done")
    real.tmux("kill-session", "-t", run.session)
    look(real)
    run = _again(run)
    assert (run.outcome, run.worktree_fate) == ("died", "kept")
    assert (Path(run.worktree) / "half.txt").read_text() == "half done"
    assert real.repos.claims(project.repo(real.paths)) == {"7"}
    assert press_start(real, project).answer == "nothing_ready"


def test_the_page_can_say_why_a_run_died(real):
    go = real.folder / "go"
    waits = f"while [ ! -e {go} ]; do sleep 0.05; done"
    script = ["sh", "-c", f"echo compiling; {waits}; echo out of credit; exit 7", "{prompt}"]
    run = start(real, real.project(argv=script))
    go.touch()
    real.until(lambda: not real.sessions.look()[run.session].alive)
    look(real)
    run = _again(run)
    assert (run.outcome, run.exit_status, run.exit_signal) == ("died", 7, None)
    assert run.exited_at is not None
    assert "out of credit" in run.last_words
    assert "exit status 7" in run.reason
    assert real.session_names() == []


@pytest.mark.row("LAB-25", level="real")
def test_dead_and_over_budget_is_a_death(real):
    run = start(real, real.project())
    real.tmux("kill-session", "-t", run.session)
    real.offset = timedelta(hours=2)
    look(real)
    assert _again(run).outcome == "died"


@pytest.mark.row("LAB-26", "LAB-40", "LAB-27", level="real")
def test_the_budget_ends_a_run_exactly_at_its_limit(real):
    project = real.project()
    run = start(real, project)
    budget = timedelta(minutes=45)
    real.lab = _at(real, run.started_at + budget - timedelta(seconds=1))
    look(real)
    assert _again(run).is_active
    real.lab = _at(real, run.started_at + budget)
    look(real)
    run = _again(run)
    assert (run.outcome, run.worktree_fate) == ("timed_out", "kept")
    assert real.session_names() == []
    assert Path(run.worktree).is_dir()
    assert real.repos.claims(project.repo(real.paths)) == {"7"}


def _at(real, moment):
    steady = Steady("boot", moment.timestamp())
    return replace(real.lab, now=lambda: moment, steady=lambda: steady)


@pytest.mark.row("LAB-27", "X-08", level="real")
def test_a_changed_budget_counts_at_the_next_tick(real):
    run = start(real, real.project())
    real.offset = timedelta(minutes=40)
    look(real)
    assert _again(run).is_active
    Settings.objects.filter(pk=1).update(run_budget_minutes=30)
    look(real)
    assert _again(run).outcome == "timed_out"
    assert "30 min" in _again(run).reason


@pytest.mark.row("C-01", level="contract")
def test_a_project_s_own_budget_counts_and_not_the_general_one(world):
    short = make.a_run(make.a_project("short", run_budget_minutes=10), "1")
    long = make.a_run(make.a_project("long", run_budget_minutes=90), "2", slot=2)
    for run in (short, long):
        world.tracker.add_root(run.project.tracker_root)
        world.sessions.appear(run.session)
    ends = {}
    for minute in (9, 10, 89, 90):
        world.clock.forward(seconds=(START + timedelta(minutes=minute) - world.clock.now).seconds)
        look(world)
        ends[minute] = [_again(run).outcome for run in (short, long)]
    assert ends == {
        9: ["", ""],
        10: ["timed_out", ""],
        89: ["timed_out", ""],
        90: ["timed_out", "timed_out"],
    }


@pytest.mark.row("C-03", level="real")
def test_commits_that_are_on_no_branch_keep_the_worktree_of_a_success(real):
    run = start(real, real.project())
    tree = Path(run.worktree)
    _commit_and_push(run)
    git(tree, "checkout", "-q", "--detach")
    (tree / "later.txt").write_text("later")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "feat: later")
    real.memory.add_pull("demo", "afk/7", "open")
    look(real)
    run = _again(run)
    assert (run.outcome, run.worktree_fate) == ("succeeded", "kept")
    assert (tree / "later.txt").read_text() == "later"
    assert "not committed on its branch" in run.warning


@pytest.mark.row("C-03", level="real")
def test_what_git_does_not_see_is_rescued_before_the_worktree_of_a_success_goes(real):
    run = start(real, real.project())
    tree = Path(run.worktree)
    _commit_and_push(run)
    git(tree, "update-index", "--assume-unchanged", "work.txt")
    (tree / "work.txt").write_text("changed, and git was told not to look")
    real.memory.add_pull("demo", "afk/7", "open")
    look(real)
    assert _again(run).worktree_fate == "removed"
    kept = Rescue.objects.get()
    repo = run.project.repo(real.paths)
    assert git(repo, "show", f"{kept.files}:work.txt") == "changed, and git was told not to look"


@pytest.mark.row("LAB-28", level="real")
def test_a_reaped_run_is_never_looked_at_again(real):
    run = start(real, real.project())
    real.memory.add_pull("demo", "afk/7")
    look(real)
    asked, notices = real.memory.calls["pulls"], Notice.objects.count()
    for _ in range(3):
        look(real)
    assert real.memory.calls["pulls"] == asked
    assert Notice.objects.count() == notices
    assert Notice.objects.filter(run=run, kind="run.ended").count() == 1


@pytest.mark.row("LAB-36", level="contract")
def test_every_outcome_leaves_the_same_kind_of_record(world):
    from runs.core.states import Outcome
    from tests import make

    project = make.a_project()
    for number, outcome in enumerate(Outcome, start=1):
        run = make.a_run(project, str(number), slot=number)
        assert outcomes.record(world.lab, run, outcome, "because", by="anna")
        assert reaper.settle(world.lab, run)
        told = Notice.objects.filter(run=run).order_by("pk").values_list("kind", "outcome")
        assert list(told) == [("run.ended", outcome), ("run.reaped", "")]
        text = Notice.objects.get(run=run, kind="run.reaped").text
        assert text.startswith("Cleaned up: ")
        assert text.endswith(f"slot {number} is free")


def test_only_the_first_of_two_outcomes_counts(world):
    run = make.a_run(make.a_project())
    assert outcomes.record(world.lab, run, Outcome.STOPPED, "first")
    assert not outcomes.record(world.lab, run, Outcome.DIED, "second")
    run.refresh_from_db()
    assert (run.outcome, run.reason) == ("stopped", "first")


@pytest.mark.row("LAB-17", "C-41", level="contract")
def test_of_two_ticks_that_saw_the_lease_free_one_takes_it(world):
    """The other one takes it between this one's look and its act."""
    taken = []

    def meanwhile(owner: str) -> bool:
        if not taken:
            taken.append(0)  # once
            taken[0] = lease.acquire(replace(world.lab, process="other"))
        return owner not in world.dead_processes

    mine = lease.acquire(replace(world.lab, is_process_alive=meanwhile))
    assert taken == [1]
    assert mine is None
    host = Host.objects.get()
    assert (host.lease_owner, host.lease_number) == ("other", 1)


def test_a_tick_that_lost_its_lease_can_end_nothing(world):
    run = make.a_run(make.a_project())
    number = lease.acquire(world.lab)
    assert number is not None
    lease.release(world.lab, number)
    newer = lease.acquire(world.lab)
    assert not outcomes.record(world.lab, run, Outcome.DIED, "late", lease=number)
    assert outcomes.record(world.lab, run, Outcome.DIED, "now", lease=newer)


@pytest.mark.row("LAB-41", level="real")
def test_a_reaped_run_frees_its_slot_without_any_other_act(real):
    project = real.project()
    Settings.objects.update_or_create(pk=1, defaults={"session_cap": 1})
    start(real, project, "7")
    ready(real, "8")
    assert press_start(real, project).answer == "at_cap"
    real.memory.add_pull("demo", "afk/7")
    look(real)
    assert press_start(real, project).answer == "started"


@pytest.mark.row("LAB-42", level="real")
def test_a_session_that_is_gone_before_the_stop_is_no_error(real):
    from runs.core.states import Outcome

    run = start(real, real.project())
    assert outcomes.record(real.lab, run, Outcome.SUCCEEDED, "pull request 1 is open")
    real.tmux("kill-session", "-t", run.session)
    assert reaper.settle(real.lab, run)
    assert _again(run).worktree_fate == "removed"


@pytest.mark.row("LAB-43", level="real")
def test_a_worktree_that_cannot_be_removed_is_a_warning_and_stops_nothing(real, monkeypatch):
    project = real.project()
    run = start(real, project)
    monkeypatch.setattr(real.repos, "remove_worktree", refuse_removal)
    real.memory.add_pull("demo", "afk/7")
    look(real)
    run = _again(run)
    assert (run.outcome, run.worktree_fate) == ("succeeded", "kept")
    assert run.settled_at is not None
    assert "could not be removed" in run.warning
    assert real.session_names() == []


@pytest.mark.row("C-03", "LAB-37", level="real")
def test_a_success_with_unsaved_work_keeps_its_worktree_and_says_so(real):
    run = start(real, real.project())
    (Path(run.worktree) / "forgotten.txt").write_text("not committed")
    real.memory.add_pull("demo", "afk/7")
    look(real)
    run = _again(run)
    assert (run.outcome, run.worktree_fate) == ("succeeded", "kept")
    assert "not committed on its branch" in run.warning
    assert (Path(run.worktree) / "forgotten.txt").exists()


def test_what_was_merged_of_an_earlier_run_is_no_success_of_this_one(real):
    run = start(real, real.project())
    long_ago = run.requested_at - timedelta(days=30)
    real.memory.add_pull("demo", "afk/7", "merged", created_at=long_ago)
    look(real)
    assert _again(run).is_active
    real.memory.add_pull("demo", "afk/7", "open", created_at=long_ago, head_commit="a" * 40)
    look(real)
    assert _again(run).is_active
    tree = Path(run.worktree)
    (tree / "work.txt").write_text("work")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "feat: work")
    head = git(tree, "rev-parse", "HEAD")
    real.memory.add_pull("demo", "afk/7", "open", created_at=long_ago, head_commit=head)
    look(real)
    assert _again(run).outcome == "succeeded"


@pytest.mark.row("LAB-44", "C-11", level="real")
def test_a_failed_run_is_not_tried_again_by_itself(real):
    """Automatic work is on and goes on: it takes the other issue, and never that one."""
    project = real.project()
    ready(real, "7")
    assert auto.switch(real.lab, project, is_on=True, by="anna")
    look(real)
    real.work()
    run = Run.objects.get()
    assert run.is_active
    real.tmux("kill-session", "-t", run.session)
    look(real)
    assert _again(run).outcome == "died"
    ready(real, "8")
    for _ in range(10):
        real.offset += timedelta(minutes=4)
        look(real)
        real.work()
    assert [one.issue_key for one in Run.objects.order_by("pk")] == ["7", "8"]
    assert Run.objects.active().get().issue_key == "8"


@pytest.mark.row("LAB-136", level="real")
def test_a_session_that_ended_while_the_product_was_down_is_settled_once(real):
    project = real.project()
    with_pull, without = start(real, project, "7"), start(real, project, "8")
    real.memory.add_pull("demo", "afk/7")
    real.tmux("new-session", "-d", "-s", "other")  # their server lives: each ended by itself
    for run in (with_pull, without):
        real.sessions.kill(run.session, run.marker(real.paths))
    for _ in range(2):
        look(real)
    assert (_again(with_pull).outcome, _again(without).outcome) == ("succeeded", "died")
    assert Notice.objects.filter(kind="run.ended").count() == 2


@pytest.mark.row("LAB-33", "LAB-29", level="real")
def test_only_an_exact_live_pull_request_of_our_own_counts(real):
    run = start(real, real.project())
    for head in ("afk/6", "afk/63", "feature/7"):
        real.memory.add_pull("demo", head)
    real.memory.add_pull("demo", "afk/7", is_fork=True)
    look(real)
    assert _again(run).is_active
    real.memory.add_pull("demo", "afk/7", "closed")
    real.memory.add_pull("demo", "afk/7", "open")
    look(real)
    assert _again(run).outcome == "succeeded"


def test_a_killed_tick_is_completed_by_the_next(real):
    """The outcome is written, then the process dies: session, worktree and slot are still held."""
    from runs.core.states import Outcome

    run = start(real, real.project())
    outcomes.record(real.lab, run, Outcome.SUCCEEDED, "pull request 1 is open")
    assert real.session_names() == [run.session]
    look(real)
    run = _again(run)
    assert real.session_names() == []
    assert (run.worktree_fate, run.settled_at is not None) == ("removed", True)


def test_nothing_of_a_run_survives_its_reap(real):
    script = ["sh", "-c", "setsid sleep 600 & sleep 601", "{prompt}"]
    run = start(real, real.project(argv=script))
    marker = run.marker(real.lab.paths)
    real.until(lambda: len(processes.marked(marker)) >= 3)
    folder = real.paths.run_folder(run.pk)
    assert (folder / "token").exists()
    real.memory.add_pull("demo", "afk/7")
    look(real)
    assert processes.marked(marker) == []
    assert not (folder / "token").exists()
    assert not (folder / "order.json").exists()
    assert _again(run).token_hash == ""


@pytest.mark.row("X-12", level="real")
def test_a_tick_done_twice_changes_nothing_more(real):
    start(real, real.project())
    look(real)
    looked = Notice.objects.count(), Run.objects.get().last_line
    rings = real.bell.rings
    look(real)
    assert (Notice.objects.count(), Run.objects.get().last_line) == looked
    assert real.bell.rings == rings


def test_a_session_that_cannot_be_ended_is_tried_again_and_told_once(world):
    from tests import make

    run = make.a_run(make.a_project())
    world.live(run)
    world.tracker.add_root("demo")
    world.sessions.broken_kill = "tmux kill-session gave no answer within 10 seconds"
    stop(world.lab, run, "anna")
    for _ in range(3):
        tick.tick(world.lab, force=True)
    run.refresh_from_db()
    assert (run.outcome, run.settled_at) == ("stopped", None)
    assert Notice.objects.filter(kind="run.warned").count() == 1
    world.sessions.broken_kill = ""
    tick.tick(world.lab, force=True)
    run.refresh_from_db()
    assert run.settled_at is not None
    assert run.warning == ""


def test_a_request_waits_for_its_answer_only_as_long_as_it_says(world):
    from tests import make

    project = make.a_project()
    paused = []
    lab = _with_pause(world, paused.append)
    asked = start_requests.wait(lab, start_requests.request(lab, project, "anna"), seconds=1.0)
    assert asked.answer == ""
    assert sum(paused) == pytest.approx(1.0)
    assert world.bell.looks == ["demo"]
    assert not Tick.objects.exists()


def _with_pause(world, pause):
    from dataclasses import replace

    return replace(world.lab, pause=pause)
