"""`python -m bench.rest [--seconds N] [--projects N] [--sessions N]`: what the product takes, beside a floor.

Without sessions: at rest with no page, with so many projects that nobody works on. With sessions, 0 of
them too: with one page open in a real browser, and so many agents that say nothing. The floor is a
bare Python that reads one row of the same database every five seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.scene import pss_and_cpu, scene, wait_for
from tests.house.product import Product, lab

SETTLE_SECONDS = 75  # until its first pass over everything is over, and nobody has used a page
FILES = 100
START = """
from runs.dispatch import start_requests; from runs.models import Project; from runs.wiring import lab
start_requests.request(lab(), Project.objects.get(), 'anna', 'NUMBER')
"""
_FLOOR = """
import sqlite3, sys, time
database = sqlite3.connect(sys.argv[1])
while True:
    database.execute("SELECT next_at FROM runs_due LIMIT 1").fetchall()
    time.sleep(5)
"""


@dataclass(frozen=True, slots=True)
class Rest:
    """What processes took in a window: percent of one core, and megabytes (PSS) at its end."""

    percent: float
    megabytes: float


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--seconds", type=int, default=120)
    options.add_argument("--projects", type=int, default=0)
    options.add_argument("--sessions", type=int)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="lab-bench-") as name:
        folder = Path(name)
        if given.sessions is None:
            fill(folder / "state", given.projects)
            product = Product(folder / "state").wait_until_ready()
            try:
                _tell(product, given.seconds)
            finally:
                product.close()
            return
        with working(folder, given.sessions) as product:
            _tell(product, given.seconds)


def _tell(product: Product, seconds: float) -> None:
    time.sleep(SETTLE_SECONDS)
    print("load", *(f"{one:.1f}" for one in os.getloadavg()))
    for name, rest in measure(product, seconds).items():
        print(f"{name:<12} {rest.percent:>7.3f} % {rest.megabytes:>7.1f} MB")


@contextlib.contextmanager
def working(folder: Path, sessions: int) -> Iterator[Product]:
    """A product with so many live sessions and its overview open in a browser."""
    with scene(folder, FILES, sessions + 1, cap=max(1, sessions)) as (story, page):
        assert story.product is not None
        for number in range(1, sessions + 1):
            story.shell(START.replace("NUMBER", str(number)))
            wait_for(story.paths.worktrees / f"bench-{number}" / "started")
        page.goto(f"{story.url}/")
        yield story.product


def fill(state: Path, projects: int) -> None:
    """Make a state folder with so many projects of the product's own tracker, which nobody works on."""
    lab("manage", "prepare", state=state)
    text = (
        "from tests.make import a_project\n"
        f"for number in range({projects}): a_project(f'p{{number:03}}', tracker='builtin')"
    )
    made = lab("manage", "shell", "-c", text, state=state)
    if made.returncode:
        raise RuntimeError(made.stderr)


def measure(product: Product, seconds: float) -> dict[str, Rest]:
    """Return what each part of a running product takes in so many seconds, `all`, and the `floor`."""
    parts = {"supervisor": product.process.pid, **product.children()}
    argv = [sys.executable, "-I", "-S", "-c", _FLOOR, str(product.state / "lab.sqlite3")]
    with subprocess.Popen(argv) as floor:
        parts["floor"] = floor.pid
        time.sleep(1)
        before = {name: spent_seconds([pid]) for name, pid in parts.items()}
        began = time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - began
        found = {
            name: Rest((spent_seconds([pid]) - before[name]) / took * 100, pss_and_cpu([pid])[0])
            for name, pid in parts.items()
        }
        floor.terminate()
    ours = [rest for name, rest in found.items() if name != "floor"]
    whole = Rest(sum(one.percent for one in ours), sum(one.megabytes for one in ours))
    return {**found, "all": whole}


def spent_seconds(pids: Sequence[int]) -> float:
    """Processor seconds of processes and of their children that have ended.

    The kernel's own count for each thread: a tick of 10 ms is more than a minute at rest takes.
    """
    found = 0.0
    for pid in pids:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found += int((thread / "schedstat").read_text().split()[0]) / 1e9
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        found += (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
    return found


if __name__ == "__main__":
    main()
