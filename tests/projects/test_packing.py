"""Packing the shared repository of a project: when, and that no run that borrows from it loses any."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from runs import sweep
from runs.core.kept_ports import ObjectCount
from runs.core.ports import SeamError
from runs.core.states import RunState
from runs.machine import branches
from runs.projects import packing, packing_rules
from tests import make
from tests.real import a_checkout, git

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
SCATTERED = ObjectCount(5000, 3, size=10**9, free=10**10)


@pytest.mark.pure
@pytest.mark.parametrize(
    ("packed_at", "is_time"),
    [
        pytest.param(None, True, id="never, or unknown"),
        pytest.param(NOW - timedelta(hours=23), False, id="today"),
        pytest.param(NOW, False, id="just now"),
        pytest.param(NOW - timedelta(days=1), True, id="a day ago"),
        pytest.param(NOW + timedelta(hours=1), True, id="the clock was put back"),
    ],
)
def test_once_a_day(packed_at, is_time):
    assert packing_rules.is_time(NOW, packed_at) is is_time


@pytest.mark.pure
@pytest.mark.parametrize(
    ("loose", "packs", "is_scattered"), [(0, 1, False), (1000, 20, False), (1001, 0, True), (0, 21, True)]
)  # fmt: skip
def test_only_where_it_is_worth_it(loose, packs, is_scattered):
    assert packing_rules.is_scattered(loose, packs) is is_scattered


@pytest.mark.pure
@pytest.mark.parametrize(
    ("size", "free", "has_room"), [(100, 150, True), (100, 149, False), (0, 0, True), (1, None, False)]
)  # fmt: skip
def test_only_where_agents_keep_room(size, free, has_room):
    assert packing_rules.has_room(size, free) is has_room


@pytest.fixture
def project(world):
    project = make.a_project()
    world.repos.objects[project.repo(world.lab.paths)] = SCATTERED
    return project


@pytest.mark.django_db
def test_a_repository_is_packed_once_a_day(world, project):
    assert packing.pack(world.lab, project)
    world.repos.objects[project.repo(world.lab.paths)] = SCATTERED
    assert not packing.pack(world.lab, project)
    world.clock.forward(days=1)
    assert packing.pack(world.lab, project)
    world.clock.forward(days=1)
    assert not packing.pack(world.lab, project), "it is packed already"


@pytest.mark.django_db
def test_a_start_is_not_disturbed(world, project):
    run = make.a_run(project, state=RunState.STARTING, host=world.lab.host)
    assert not packing.pack(world.lab, project)
    type(run).objects.filter(pk=run.pk).update(state=RunState.WORKING)
    assert packing.pack(world.lab, project)


@pytest.mark.django_db
def test_packing_that_fails_is_tried_again_a_day_later(world, project):
    world.repos.broken_pack = "the disk is full"
    with pytest.raises(SeamError):
        packing.pack(world.lab, project)
    assert not packing.pack(world.lab, project)


@pytest.mark.django_db
def test_nothing_is_packed_on_a_disk_that_is_nearly_full(world, project):
    repo = project.repo(world.lab.paths)
    world.repos.objects[repo] = replace(SCATTERED, free=10**9)
    assert not packing.pack(world.lab, project)
    assert world.repos.objects[repo].loose == 5000


@pytest.mark.django_db
def test_the_sweep_packs(world, project):
    sweep.carry_out(world.lab, project.pk)
    assert world.repos.count_objects(project.repo(world.lab.paths)) == ObjectCount(0, 1)


class Stand:
    """A shared repository in which a run has amended its commit again and again."""

    def __init__(self, real, folder: Path) -> None:
        self.repos, self.repo, self.tree = real.repos, folder / "repo.git", folder / "tree"
        a_checkout(folder / "checkout", folder / "origin.git")
        self.repos.create(self.repo, str(folder / "origin.git"))
        self.repos.fetch(self.repo)
        fork = self.repos.upstream(self.repo, "main")
        self.repos.add_worktree(self.repo, self.tree, "afk/7", fork)
        self.tips = [self.amend(number) for number in range(4)]

    def amend(self, number: int) -> str:
        """Commit, or amend the commit, and have the shared repository take it over."""
        (self.tree / "work.txt").write_text(f"work {number}\n" * 50)
        git(self.tree, "add", "-A")
        git(self.tree, "commit", "-q", "-m", "feat: work", *(("--amend",) if number else ()))
        tip = self.repos.tip(self.repo, "refs/heads/afk/7")
        assert tip == git(self.tree, "rev-parse", "HEAD")
        return tip


@pytest.fixture
def stand(real, tmp_path):
    return Stand(real, tmp_path)


@pytest.mark.real
def test_loose_objects_and_packs_become_one_pack_and_a_borrower_loses_nothing(stand):
    before = stand.repos.count_objects(stand.repo)
    assert before.loose > 0
    assert before.packs == len(stand.tips)
    # Its own copies go, so that it borrows even what no ref of the shared repository needs.
    git(stand.tree, "branch", "first", stand.tips[0])
    git(stand.tree, "repack", "-q", "-a", "-d", "-l")
    git(stand.tree, "prune-packed", "-q")

    assert stand.repos.pack(stand.repo, NOW)

    after = stand.repos.count_objects(stand.repo)
    assert (after.loose, after.packs) == (0, 1)
    assert 0 < after.size <= before.size
    assert after.free
    assert stand.repos.packed_at(stand.repo) == NOW
    for tip in stand.tips:
        assert git(stand.repo, "cat-file", "-t", tip) == "commit"
        assert git(stand.tree, "show", f"{tip}:work.txt")
    git(stand.tree, "fsck", "--full")
    git(stand.repo, "fsck", "--full")
    assert stand.repos.glimpse(stand.repo, "afk/7") == stand.tips[-1]
    assert stand.repos.claims(stand.repo) == {"7"}
    assert stand.amend(5) == stand.repos.ref(stand.repo, "refs/heads/afk/7")
    stand.repos.force_remove(stand.repo, stand.tree)
    git(stand.repo, "fsck", "--full")


@pytest.mark.real
def test_several_pack_at_once_while_a_run_commits(stand):
    with ThreadPoolExecutor(4) as pool:
        packing_now = [pool.submit(stand.repos.pack, stand.repo, NOW) for _ in range(3)]
        tips = [stand.amend(number) for number in range(10, 15)]
        done = [one.result() for one in packing_now]
    assert any(done)
    git(stand.repo, "fsck", "--full")
    for tip in [*stand.tips, *tips]:
        assert git(stand.repo, "cat-file", "-t", tip) == "commit"


@pytest.mark.real
def test_what_a_killed_packer_left_goes_and_what_is_being_written_stays(stand):
    folder = stand.repo / "objects/pack"
    old, fresh = folder / ".tmp-7-pack-abc.pack", folder / "tmp_pack_fresh"
    for file in (old, fresh):
        file.write_bytes(b"half")
    long_ago = time.time() - 2 * branches._LEFT_AFTER
    os.utime(old, (long_ago, long_ago))

    assert stand.repos.pack(stand.repo, NOW)
    assert not old.exists()
    assert fresh.exists()


@pytest.mark.real
def test_a_note_that_says_nothing_is_no_time(stand):
    for text in ("", "soon", "2026-11-27"):
        (stand.repo / branches.PACKED).write_text(text)
        assert stand.repos.packed_at(stand.repo) is None
