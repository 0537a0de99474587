"""`python -m bench.growth [--runs N]`: whether the product has grown after so many runs.

Each run starts by itself, pushes a commit, opens a pull request and is settled. The memory of everything
is taken after the first tenth and at the end, each time with one page open, once nobody is at work.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page

from bench import rest
from bench.scene import scene
from tests.story.conftest import Story

# Until connections that nobody uses are closed (90 s), and what is free was given back (once a minute).
SETTLE_SECONDS = 165
FIRST = 0.1  # of the runs: what each kind of work loads once is loaded by then
AUTOMATIC = "from runs.models import Project; Project.objects.update(is_auto=True)"
ENDED = "from runs.models import Run; print(Run.objects.exclude(outcome='').filter(settled_at__isnull=False).count())"
MORE = """
from runs.issues import acts as issues; from runs.models import Project; from runs.wiring import lab
project = Project.objects.get()
for number in range(COUNT):
    issues.create(lab(), project, title=f'More {number}', body='', labels=['ready-for-agent'], by='anna')
"""


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--runs", type=int, default=500)
    given = options.parse_args()
    first = max(1, round(given.runs * FIRST))
    with (
        tempfile.TemporaryDirectory(prefix="lab-bench-") as folder,
        scene(Path(folder), rest.FILES, first, option="--at-once") as (story, page),
    ):
        for name, parts in measure(story, page, first, given.runs).items():
            told = ", ".join(f"{part} {megabytes:.1f}" for part, megabytes in parts.items())
            print(f"{name:<16} {told} MB")


def measure(story: Story, page: Page, first: int, runs: int) -> dict[str, dict[str, float]]:
    """Return the megabytes (PSS) of each part at rest, after the first runs and after all of them."""
    story.shell(AUTOMATIC)
    found = {f"after {first} runs": _after(story, page, first)}
    story.shell(MORE.replace("COUNT", str(runs - first)))
    return found | {f"after {runs} runs": _after(story, page, runs)}


def _after(story: Story, page: Page, runs: int) -> dict[str, float]:
    """Wait for the runs with no page open, which would only slow them, and measure with one."""
    assert story.product is not None
    page.goto("about:blank")
    while int(story.shell(ENDED)) < runs:
        time.sleep(1)
    page.goto(f"{story.url}/")
    time.sleep(SETTLE_SECONDS)
    found = rest.measure(story.product, 1)
    return {name: one.megabytes for name, one in found.items() if name != "floor"}


if __name__ == "__main__":
    main()
