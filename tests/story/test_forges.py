"""A project whose issues are on a forge, from ready issue to reap: real processes, tmux, git and HTTP."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.house.product import ROOT, environment, until, written
from tests.patience import PATIENCE
from tests.real import a_checkout, git
from tests.story.test_bad_days import RUNS
from tests.trackers.forge import Double, Gitea, GitHub, Repo
from tests.trackers.forge.repository import back

STYLES: dict[str, Callable[..., Double]] = {"gitea": Gitea, "github": GitHub}
ADD = """
import sys, json
from runs.models import AgentProfile, Forge, Project, Settings
from runs.wiring import lab
from runs.projects import acts as projects
facts = json.loads({facts!r})
project = projects.add(lab(), name='shop', source=facts['source'], token='', by='anna')
forge = Forge.objects.create(name='forge', kind=facts['kind'], api=facts['api'], web=facts['web'],
    credential={{'token': facts['token']}}, created_at=lab().now())
agent = AgentProfile.objects.create(name='scripted', mode='interactive', env={{'DEMO_PAUSE': '0'}},
    argv=[sys.executable, '-u', facts['agent'], '{{prompt}}'])
Project.objects.filter(pk=project.pk).update(tracker=facts['kind'], forge=forge, agent=agent,
    tracker_root=str(forge.pk) + '/acme/shop')
Settings.objects.update_or_create(pk=1, defaults={{'tick_seconds': 5}})
"""
STATE = "from runs.models import Project; print(Project.objects.get().state)"
START = """
from runs.models import Project
from runs.wiring import lab
from runs.dispatch import start_requests as starts
starts.request(lab(), Project.objects.get(), 'anna', '')
"""
TOLD = "from runs.models import Run; r = Run.objects.first(); print(r and (r.issue_key, r.outcome, r.pull_number, r.settled_at is not None))"
STEPS = "demo-agent: dump {dump}; edit; commit; push; pull; idle"


@pytest.fixture(params=STYLES)
def forge(request: pytest.FixtureRequest) -> Iterator[Double]:
    made = STYLES[request.param](lambda: datetime.now(UTC))
    yield made
    made.check()


def a_project(story, forge: Double, api: str) -> tuple[Repo, Path, str]:  # type: ignore[no-untyped-def]
    """A repository with a forge in front of it, and the product's project for it."""
    origin = story.state.parent / "shop-origin.git"
    source = a_checkout(story.state.parent / "shop", origin)
    repo, token = forge.repo("acme/shop", roles={"bot": "write"}), forge.token("bot")
    back(repo, origin)
    agent = Path(__file__).parents[2] / "runs" / "demo" / "agent.py"
    facts = {
        "source": str(source),
        "kind": forge.style,
        "api": api,
        "web": forge.web,
        "token": token,
        "agent": str(agent),
    }
    story.shell(ADD.format(facts=json.dumps(facts)))
    until(lambda: story.shell(STATE) == "ready", told=lambda: story.product.log)
    return repo, origin, token


def all_arguments() -> bytes:
    """The command lines of every process there is."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_bytes())
    return b"\n".join(found)


@pytest.mark.row("X-01", "LAB-53", "LAB-54", "LAB-21", "LAB-37", "LAB-38", level="real")
@pytest.mark.row("X-05", "LAB-08", level="real")
def test_a_ready_issue_on_a_forge_becomes_a_pull_request_there_and_the_run_is_reaped(
    story, forge, tmp_path
):
    dump = tmp_path / "agent.json"
    with forge.serving() as api:
        story.up()
        repo, origin, token = a_project(story, forge, api)
        repo.issue("Not yet", number=3)
        repo.issue(
            "Add retries", number=7, body=STEPS.format(dump=dump), labels=["ready-for-agent"]
        )
        repo.issue("Later", number=9, body="demo-agent: idle", labels=["ready-for-agent"])

        story.shell(START)
        until(dump.exists, told=lambda: story.product.log)
        assert token.encode() not in all_arguments()
        until(lambda: "succeeded" in story.shell(TOLD), told=lambda: story.product.log)

        pull = next(item for item in repo.items.values() if item.pull)
        assert (pull.pull.head, pull.pull.base, pull.is_open) == ("afk/7", "main", True)
        assert re.search(r"\bcloses #7\b", pull.body or "", re.IGNORECASE)
        assert pull.pull.head_sha == git(origin, "rev-parse", "refs/heads/afk/7")
        until(lambda: story.shell(TOLD) == f"('7', 'succeeded', {pull.number}, True)")
        assert story.sessions() == []
        assert not list(story.paths.worktrees.iterdir())

        assert token not in dump.read_text()
        assert token not in story.product.log
        assert [path for path, text in written(story.state) if b"afk/7" in text]
        assert [path for path, text in written(story.state) if token.encode() in text] == []

        _the_worker_alone_reaps_what_the_forge_tells(story, repo)


def _the_worker_alone_reaps_what_the_forge_tells(story, repo: Repo) -> None:  # type: ignore[no-untyped-def]
    """With no web process and no browser."""
    story.shell(START)
    until(lambda: story.sessions() == ["shop~1~afk-9"], told=lambda: story.product.log)
    until(lambda: story.shell(RUNS) == "7:ended:succeeded 9:working:")
    story.product.press_ctrl_c()
    assert story.product.wait() == 0
    log = story.state.parent / "worker.err"
    with log.open("wb") as err:
        worker = subprocess.Popen(
            [sys.executable, str(ROOT / "manage.py"), "run_huey", "-w", "4", "-d", "0.2"],
            env=environment(story.state),
            stderr=err,
        )

    def told() -> str:
        return f"{log.read_text()}\nits status: {worker.poll()}, runs: {story.shell(RUNS)}"

    try:
        # Forges tell whole seconds. Nothing was pushed, so one of the very second in which the run
        # was asked for would be one from before it.
        repo.pull("afk/9").created_at = datetime.now(UTC) + timedelta(seconds=1)
        until(lambda: story.sessions() == [], told=told)
        until(lambda: story.shell(RUNS) == "7:ended:succeeded 9:ended:succeeded", told=told)
    finally:
        worker.terminate()
        worker.wait(PATIENCE)
