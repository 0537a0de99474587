"""Runs whose issues and pull requests are on a forge: real tmux, git and HTTP, and a forge that fails."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from runs import sweep
from runs.models import Project
from runs.pulls import acts as pulls
from tests.forges.forge_house import a_run, again, commit_and_push, forge, project, repo_of
from tests.real import RealWorld, git
from tests.trackers.forge import Double, faults
from tests.world.stories import look

pytestmark = pytest.mark.django_db(transaction=True)

__all__ = ["forge", "project"]


@pytest.mark.row("LAB-53", "LAB-21", "LAB-37", "LAB-38", "LAB-139", "LAB-112", level="real")
def test_from_ready_to_merged_there_and_collected_here(
    real: RealWorld, forge: Double, project: Project
) -> None:
    run = a_run(real, project)
    tip = commit_and_push(run)

    made = pulls.create(real.lab, run, title="Add retries", body="Tries thrice.")
    look(real)

    item = repo_of(forge).items[made.number]
    assert item.pull is not None
    assert "closes #7" in (item.body or "").lower()
    run = again(run)
    assert (run.outcome, run.pull_number) == ("succeeded", made.number)
    assert real.session_names() == []
    repo = project.repo(real.paths)
    assert git(repo, "rev-parse", "refs/heads/afk/7") == tip
    assert forge.calls(method="PATCH") == []
    assert repo_of(forge).items[7].is_open
    assert real.lab.tracker_for(forge.style).merge(project.tracker_root, made.number, tip)  # type: ignore[union-attr]
    item.pull.is_branch_gone = True
    git(real.folder / "demo-origin.git", "update-ref", "-d", "refs/heads/afk/7")
    repo_of(forge).close(repo_of(forge).items[7])

    # Origin cannot be fetched from, and at first the forge does not answer either.
    Project.objects.filter(pk=project.pk).update(url=str(real.folder / "offline.git"))
    forge.faults.add(faults.status(502), times=faults.FOREVER, path="/acme/shop")
    real.offset += timedelta(minutes=10)
    sweep.carry_out(real.lab, project.pk)
    assert git(repo, "rev-parse", "refs/heads/afk/7") == tip
    forge.faults.clear()
    real.offset += timedelta(minutes=10)
    sweep.carry_out(real.lab, project.pk)
    assert git(repo, "for-each-ref", "refs/heads/afk/7") == ""


WORST = {
    "down": lambda: faults.status(502),
    "no access": lambda: faults.status(403, "no access"),
    "no repository": lambda: faults.status(404, "Not Found"),
    "half an answer": faults.truncated,
    "a limit": lambda: faults.limited("5"),
}


@pytest.mark.row("LAB-13", "LAB-15", level="real")
# Which answer is which error is shown of both adapters by tests/trackers/test_forge_faults.py.
@pytest.mark.parametrize(
    ("forge", "name"),
    [
        ("gitea", "down"),
        ("github", "no access"),
        ("gitea", "no repository"),
        ("github", "half an answer"),
        ("gitea", "a limit"),
    ],
    indirect=["forge"],
)
def test_a_forge_in_trouble_ends_no_run_and_what_it_says_afterwards_counts(
    real: RealWorld, forge: Double, project: Project, name: str
) -> None:
    run = a_run(real, project)
    commit_and_push(run)
    forge.faults.add(WORST[name](), times=faults.FOREVER, path="/acme/shop")
    real.tmux("kill-session", "-t", run.session)
    for _ in range(2):
        real.offset += timedelta(hours=1)
        look(real)
    assert again(run).is_active
    assert Path(run.worktree).is_dir()
    assert Project.objects.get().warning
    repo_of(forge).pull("afk/7", "merged", is_branch_gone=True)
    forge.faults.clear()
    real.offset += timedelta(hours=2)

    look(real)

    assert again(run).outcome == "succeeded"
    assert Project.objects.get().warning == ""
