"""What only a person can remove: told once, with the command, and nothing waits for it. With fakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from runs import tick
from runs.core.ports import UnremovableError
from runs.core.states import Outcome, WorktreeFate
from runs.dispatch import start_requests
from runs.kept import merged
from runs.models import Notice, Project, Rescue, Run
from runs.validation.command_rules import Checked
from tests import make
from tests.fakes import FakeTree, World
from tests.web.people import confirmed, text_of
from tests.world.stories import look, ready, work

pytestmark = pytest.mark.django_db

WHY = "demo-7/data belongs to root. Remove the rest with: sudo rm -rf -- demo-7"


class _Tries:
    """Stands in for what removes a worktree: something of another user is in it."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, repo: Path, path: Path) -> None:
        self.count += 1
        raise UnremovableError(WHY)


@pytest.fixture
def project(world: World) -> Project:
    world.tracker.add_root("demo")
    return make.a_project(agent=make.an_agent())


@pytest.fixture
def parked(world: World, project: Project) -> Run:
    """Issue 7 is parked in its clean worktree."""
    tree = world.lab.paths.worktrees / "demo-7"
    base = world.repos.commit({}, subject="chore: begin")
    tip = world.repos.commit({"a.py": "1"}, base, subject="feat: it")
    world.repos.refs["refs/remotes/origin/main"] = tip
    world.repos.heads[project.repo(world.lab.paths)] = {"afk/7": tip}
    world.repos.trees[tree] = FakeTree("afk/7", tip)
    tree.mkdir(parents=True)
    return make.a_run(project, "7", outcome="stopped", worktree=str(tree), fork_point=base)


def test_discard_says_what_stands_in_the_way_and_goes_on_once_it_is_gone(
    world: World, parked: Run, anna: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, client = f"/projects/{parked.project_id}/parked/discard", confirmed(anna)
    form: dict[str, Any] = {"branch": "afk/7", "sure": "yes"}
    with monkeypatch.context() as patched:
        patched.setattr(world.repos, "force_remove", _Tries())
        answer = client.post(at, form, headers={"HX-Request": "true"})
    assert answer.status_code == 409
    assert f"its branch is still here. {WHY}" in text_of(answer)
    assert list(world.repos.heads[parked.project.repo(world.lab.paths)]) == ["afk/7"]
    assert Rescue.objects.count() == 1
    assert client.post(at, form).status_code == 303
    assert not Path(parked.worktree).exists()
    assert Rescue.objects.count() == 1


def test_the_sweep_tells_it_once(
    world: World, parked: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.repos.merged_into["main"] = {"afk/7"}
    monkeypatch.setattr(world.repos, "remove_worktree", _Tries())
    for _ in "12":
        assert merged.collect(world.lab, parked.project) == []
    told = Notice.objects.filter(text__contains=WHY)
    assert [one.text.partition(":")[0] for one in told] == ["afk/7"]


@pytest.mark.django_db(transaction=True)
def test_a_failed_set_up_that_left_such_files_frees_the_slot_and_says_so(
    world: World, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    Project.objects.update(setup="make tools")
    world.checks.answers["make tools"] = Checked(1, 2.0)
    tries = _Tries()
    monkeypatch.setattr(world.repos, "force_remove", tries)
    ready(world, "7", project.tracker_root)
    start_requests.request(world.lab, project, "anna", "7")
    tick.tick(world.lab, project=project.slug)
    work(world)
    run = Run.objects.get()
    assert (run.outcome, run.worktree_fate) == (Outcome.FAILED, WorktreeFate.KEPT)
    assert run.settled_at is not None
    assert run.warning == WHY
    before = tries.count
    look(world)
    assert tries.count == before
