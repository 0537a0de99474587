"""`python -m bench.main_job [--repeats N] [--files N]`: the main job beside its floors, in one run."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page

from bench.figures import head, line, p95, timed
from bench.scene import CLICKED, SEEN, pss_and_cpu, scene, wait_for
from tests.story.conftest import Story

IDLE_SECONDS = 60


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--repeats", type=int, default=15)
    options.add_argument("--files", type=int, default=10_000)
    given = options.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="lab-bench-") as folder,
        scene(Path(folder), given.files, 2 * given.repeats + 2) as (story, page),
    ):
        _all(story, page, given.repeats)


def _all(story: Story, page: Page, repeats: int) -> None:
    starts, floors, done, died = [], [], [], []
    print(head())
    for number in range(1, 2 * repeats + 1):
        tree = story.paths.worktrees / f"bench-{number}"
        page.evaluate(CLICKED)
        page.click("#start")
        started = wait_for(tree / "started")
        starts.append(started - page.evaluate("window.clicked"))
        page.wait_for_selector(f"article.run:has-text('#{number} ')")
        page.wait_for_function(
            "() => document.querySelector('article.run').innerText.includes('of 45')"
        )
        page.evaluate(SEEN, number)
        if number % 2:
            (tree / "go").touch()
            asked = wait_for(tree / "asked")
            done.append(_seen(page) - asked)
        else:
            agent = _agent_of(tree)
            ended = time.time()
            os.kill(agent, signal.SIGKILL)
            died.append(_seen(page) - ended)
        floors.append(_floor(story, number))
        page.reload()
        page.wait_for_selector("#start")
        page.wait_for_function(
            "() => document.querySelector('#link-state').innerText.includes('live')"
        )
    print(line("Start click -> agent process running", starts))
    print(line("  floor: git fetch + worktree add + tmux new-session", floors))
    print(
        f"  p95 against its target 1.5 x floor p95 + 150 ms: {p95(starts) * 1000:.0f} / {p95(floors) * 1500 + 150:.0f} ms"
    )
    print(line("labctl pr create -> row changed in the browser", done))
    print(line("agent killed -> row changed in the browser", died))
    _idle(story, "idle, a page open")
    page.goto("about:blank")
    _idle(story, "idle, no page")


def _seen(page: Page) -> float:
    page.wait_for_function("() => window.seen > 0")
    return float(page.evaluate("window.seen"))


def _agent_of(tree: Path) -> int:
    """The agent's process: the one whose working folder is the worktree."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cwd").readlink() == tree and b"agent.py" in (
                entry / "cmdline"
            ).read_bytes():
                return int(entry.name)
        except OSError:
            continue
    raise AssertionError("no agent runs there")


def _floor(story: Story, number: int) -> float:
    """The same three commands by hand, on the same repository."""
    repo = story.paths.repos / "bench.git"
    tree = story.state.parent / f"floor-{number}"
    socket = str(story.state.parent / "floor.sock")

    def act() -> None:
        subprocess.run(
            ["git", "-C", str(repo), "fetch", "-q", "--prune", "--no-tags", "origin"], check=True
        )
        subprocess.run(
            [
                "git",
                "-C",
                str(repo),
                "worktree",
                "add",
                "-q",
                "--no-track",
                "-b",
                f"floor/{number}",
                str(tree),
                "refs/remotes/origin/main",
            ],
            check=True,
        )
        subprocess.run(
            [
                "tmux",
                "-S",
                socket,
                "-f",
                "/dev/null",
                "new-session",
                "-d",
                "-s",
                f"f{number}",
                "sleep 60",
            ],
            check=True,
        )

    spent = timed(act)
    subprocess.run(["tmux", "-S", socket, "kill-server"], check=False, capture_output=True)
    subprocess.run(["git", "-C", str(repo), "worktree", "remove", "--force", str(tree)], check=True)
    subprocess.run(["git", "-C", str(repo), "branch", "-q", "-D", f"floor/{number}"], check=True)
    return spent


def _idle(story: Story, what: str) -> None:
    """Supervisor, web and worker with nobody at work."""
    assert story.product is not None
    pids = [story.product.process.pid, *story.product.children().values()]
    time.sleep(10)
    _, before = pss_and_cpu(pids)
    time.sleep(IDLE_SECONDS)
    memory, after = pss_and_cpu(pids)
    share = (after - before) / IDLE_SECONDS * 100
    print(f"{what + ': memory of everything (PSS)':<66} {memory:>8.0f} MB")
    print(f"{what + ': processor of everything, of one core':<66} {share:>8.2f} %")


if __name__ == "__main__":
    main()
