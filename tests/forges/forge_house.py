"""Projects on a forge with real tmux, git and HTTP, for stories of their runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runs.forges.trackers import Trackers
from runs.models import Forge, Project, Run
from tests.real import RealWorld, git
from tests.trackers.forge import Double, Gitea, GitHub, Repo
from tests.trackers.forge.repository import back
from tests.world.stories import press_start
from trackers.http import over_network
from trackers.registry import Tools

STYLES: dict[str, Callable[..., Double]] = {"gitea": Gitea, "github": GitHub}
READY = "ready-for-agent"


@pytest.fixture(params=STYLES)
def forge(request: pytest.FixtureRequest, real: RealWorld) -> Iterator[Double]:
    """A forge on a real socket. Its clock is labsite's, so that what is opened later is later there."""
    made = STYLES[request.param](real.lab.now)
    with made.serving():
        yield made
    made.check()


@pytest.fixture
def project(real: RealWorld, forge: Double) -> Iterator[Project]:
    """A project of that forge, whose repository is real git, with issue 7 ready."""
    made = real.project(tracker="")
    row = Forge.objects.create(
        name="forge",
        kind=forge.style,
        api=forge.api,
        web=forge.web,
        credential={"token": forge.token("bot")},
        created_at=real.lab.now(),
    )
    client = over_network(real.paths.answers, real.lab.now)
    trackers = Trackers(
        Tools(now=real.lab.now, client=lambda: client), lambda: real.lab.steady().seconds
    )
    real.lab = replace(real.lab, tracker_for=trackers.tracker_for, forges=trackers)
    repo = forge.repo("acme/shop", roles={"bot": "write"})
    back(repo, real.folder / "demo-origin.git")
    repo.issue("Add retries", number=7, labels=[READY])
    repo.issue("Later", number=12, labels=[READY])
    made.tracker, made.forge, made.tracker_root = forge.style, row, f"{row.pk}/acme/shop"
    made.save()
    yield made
    client.close()


def a_run(real: RealWorld, project: Project) -> Run:
    asked = press_start(real, project)
    assert asked.run is not None, asked.text
    return asked.run


def repo_of(forge: Double) -> Repo:
    found = forge.find_repo("acme/shop")
    assert found is not None
    return found


def again(run: Run) -> Run:
    return Run.objects.select_related("project").get(pk=run.pk)


def commit_and_push(run: Run) -> str:
    tree = Path(run.worktree)
    (tree / "work.txt").write_text("work")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "feat: work")
    git(tree, "push", "-q", "origin", run.branch)
    return git(tree, "rev-parse", "HEAD")
