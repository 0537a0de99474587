"""`python -m bench.main_job [--repeats N] [--files N]`: the main job beside its floors, in one run."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Page

from bench.figures import head, line, p95, timed
from bench.scene import AGENT, CLICKED, SEEN, scene, wait_for
from tests.house.product import until
from tests.story.conftest import Story


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds from an act to what a person sees of it, one each time, and of what is done by hand.

    `starts`: a click to the agent's process; `floors`: the same commands by hand. `done`: `labctl pr
    create` to the row, `died`: an agent that is killed to the row. `labctl`: a call of it, `bare`: a
    Python that does nothing.
    """

    starts: list[float] = field(default_factory=list)
    floors: list[float] = field(default_factory=list)
    done: list[float] = field(default_factory=list)
    died: list[float] = field(default_factory=list)
    labctl: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--repeats", type=int, default=15)
    options.add_argument("--files", type=int, default=10_000)
    given = options.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="lab-bench-") as folder,
        scene(Path(folder), given.files, 2 * given.repeats + 2) as (story, page),
    ):
        spent = measure(story, page, given.repeats)
        print("load", *(f"{one:.1f}" for one in os.getloadavg()))
        print(head())
        print(line("Start click -> agent process running", spent.starts))
        print(line("  floor: git fetch + worktree add + tmux new-session", spent.floors))
        target = p95(spent.floors) * 1150 + 60
        print(f"  p95 against its target: {p95(spent.starts) * 1000:.0f} / {target:.0f} ms")
        print(line("labctl pr create -> row changed in the browser", spent.done))
        print(line("agent killed -> row changed in the browser", spent.died))
        print(line("a call of labctl", spent.labctl))
        print(line("  floor: python3 -I -S -c pass", spent.bare))


def measure(story: Story, page: Page, repeats: int) -> Spent:
    """Start so many runs twice: one half opens a pull request, the other half is killed."""
    spent = Spent()
    for number in range(1, 2 * repeats + 1):
        tree = story.paths.worktrees / f"bench-{number}"
        page.evaluate(CLICKED)
        page.click("#start")
        started = wait_for(tree / "started")
        spent.starts.append(started - page.evaluate("window.clicked"))
        page.wait_for_selector(f"article.run:has-text('#{number} ')")
        page.wait_for_function(
            "() => document.querySelector('article.run').innerText.includes('of 45')"
        )
        if number == 1:
            calls = _calls(tree)
            spent.labctl.extend(calls["labctl"])
            spent.bare.extend(calls["floor"])
        page.evaluate(SEEN, number)
        if number % 2:
            (tree / "go").touch()
            asked = wait_for(tree / "asked")
            spent.done.append(_seen(page) - asked)
        else:
            agent = _agent_of(tree)
            ended = time.time()
            os.kill(agent, signal.SIGKILL)
            spent.died.append(_seen(page) - ended)
        spent.floors.append(_floor(story, number))
        page.reload()
        page.wait_for_selector("#start")
        page.wait_for_function(
            "() => document.querySelector('#link-state').innerText.includes('live')"
        )
    return spent


def _calls(tree: Path) -> dict[str, list[float]]:
    """What an agent measured of `labctl` and of its floor, in turns."""
    (tree / "measure").touch()
    until((tree / "measured").exists)
    found: dict[str, list[float]] = json.loads((tree / "measured").read_text())
    return found


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
    """The same three commands by hand, on the same repository, to the same agent at work."""
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
                f"{sys.executable} {AGENT}",
            ],
            check=True,
            cwd=tree,
        )
        wait_for(tree / "started")

    spent = timed(act)
    subprocess.run(["tmux", "-S", socket, "kill-server"], check=False, capture_output=True)
    subprocess.run(["git", "-C", str(repo), "worktree", "remove", "--force", str(tree)], check=True)
    subprocess.run(["git", "-C", str(repo), "branch", "-q", "-D", f"floor/{number}"], check=True)
    return spent


if __name__ == "__main__":
    main()
