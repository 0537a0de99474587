"""The promises that are checked after every bad day can fail: each is broken once, on purpose."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from runs.dispatch import reserve
from runs.models import Notice, Run
from tests import make
from tests.baddays import invariants
from tests.real import git
from tests.world.stories import look

pytestmark = pytest.mark.django_db(transaction=True)


def _broken(day) -> list[str]:  # type: ignore[no-untyped-def]
    return list(invariants.broken(day.real.lab, day.work))


@pytest.fixture
def run(day) -> Run:  # type: ignore[no-untyped-def]
    made: Run = day.run("7")
    assert _broken(day) == []
    return made


def test_a_lost_uncommitted_file_is_seen(day, run):
    file = Path(run.worktree) / "unsaved-7.txt"
    text = file.read_text()
    file.write_text("something else")
    assert [line.partition(" is not")[0] for line in _broken(day)] == [str(file)]
    file.unlink()
    assert len(_broken(day)) == 1
    file.write_text(text)


def test_a_removed_worktree_is_seen_unless_git_has_all_of_it(day, run):
    kept = day.real.folder / "kept"
    shutil.copytree(run.worktree, kept)
    (Path(run.worktree) / "unsaved-7.txt").unlink()
    (Path(run.worktree) / "work-7.txt").unlink()
    assert len(_broken(day)) == 1
    shutil.copytree(kept, run.worktree, dirs_exist_ok=True)


def test_a_lost_commit_is_seen(day, run):
    repo, tree = day.project.repo(day.real.paths), Path(run.worktree)
    head = git(tree, "rev-parse", "HEAD")
    git(tree, "reset", "-q", "--soft", "HEAD~1")
    assert [line for line in _broken(day) if head[:10] in line]
    git(tree, "reset", "-q", "--soft", head)
    assert repo.is_dir()


def test_an_end_that_was_told_twice_or_never_is_seen(day, run):
    extra = Notice.objects.create(at=day.real.lab.now(), kind="run.ended", run=run, text="again")
    assert _broken(day) == [f"run {run.pk} (working) was told to have ended 1 times"]
    extra.delete()
    untold = make.a_run(day.project, "8", outcome="died", slot=2)
    assert len(_broken(day)) == 2
    untold.delete()


def test_a_session_without_a_row_and_a_row_without_a_session_are_seen(day, run):
    day.real.by_hand("demo~3~afk-9")
    assert _broken(day) == ["session demo~3~afk-9 has no row"]
    day.real.tmux("kill-session", "-t", "demo~3~afk-9")
    day.real.until(lambda: "demo~3~afk-9" not in day.real.session_names())
    ghost = make.a_run(day.project, "9", slot=3)
    assert _broken(day) == [f"run {ghost.pk} is working without a session"]
    ghost.delete()


def test_a_slot_that_is_held_twice_is_seen(day, run):
    other = make.a_run(day.project, "9", slot=run.slot, state="starting", started_at=None)
    assert _broken(day) == ["slots are used twice: [1, 1]"]
    other.delete()


def test_a_claim_that_a_failed_start_left_is_seen(day, run):
    repo = day.project.repo(day.real.paths)
    failed = make.a_run(day.project, "9", slot=2, outcome="failed", started_at=None)
    for kind in ("run.ended", "run.reaped"):
        Notice.objects.create(at=day.real.lab.now(), kind=kind, run=failed, text="x")
    git(repo, "branch", "afk/9", "refs/remotes/origin/main")
    assert _broken(day) == ["issue 9 of demo is claimed by a start that failed"]
    git(repo, "branch", "-D", "afk/9")


def test_slots_that_are_counted_wrongly_are_seen(day, run, monkeypatch):
    room = reserve.room
    monkeypatch.setattr(reserve, "room", lambda *all_: room(*all_).__class__(set(), 5, 6))
    assert _broken(day) == ["5 slots are counted for 1 sessions and starts"]
    monkeypatch.undo()
    look(day.real)
