"""`python -m bench.search [--runs N] [--issues N]`: Search as a page and as the palette's list."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from bench import crowd, figures, history

REPEATS = 20
TYPED = {
    "nothing": "",
    "a number": "#512",
    "a run": "run 512",
    "a word that many titles hold": "mend",
    "words that few titles hold": "mend 7123",
    "a word that no title holds": "zebra",
    "a project and a word": "p03 mend",
    "an act": "turn off p07",
}


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--runs", type=int, default=10_000)
    options.add_argument("--issues", type=int, default=10_000)
    given = options.parse_args()
    crowd.begin()
    from django.conf import settings
    from django.test import Client

    with tempfile.TemporaryDirectory(prefix="lab-search-") as folder:
        from tests.fakes import World
        from tests.make import a_user

        world = World(Path(folder))
        settings.RUNS_LAB = lambda: world.lab
        client = Client(SERVER_NAME="localhost")
        client.force_login(a_user())
        history.fill(world, given.runs)
        _issues(given.issues)
        print(f"{given.runs} runs, {given.issues} issues and as many pull requests")
        print(figures.head())
        _row("floor: the same client, a page without a database", client, "/healthz", {})
        for name, typed in TYPED.items():
            _row(f"{name}: the palette", client, f"/search/?q={typed}", {"X-Lab-Part": "1"})
        for name in ("nothing", "a word that no title holds"):
            _row(f"{name}: the page", client, f"/search/?q={TYPED[name]}", {})


def _issues(number: int) -> None:
    """Issues with a text of 2,000 characters and pull requests, nine in ten of one project."""
    from django.utils import timezone

    from runs.models import Project
    from trackers.builtin.models import Issue, PullRequest

    roots = [int(one.tracker_root) for one in Project.objects.order_by("pk")]
    made = {"author": "anna", "created_at": timezone.now(), "updated_at": timezone.now()}
    Issue.objects.bulk_create(
        Issue(
            root_id=roots[0] if n % 10 else roots[n // 10 % len(roots)],
            number=n + 1, title=f"Mend part {n} of the whole", body="x" * 2000, **made,
        )
        for n in range(number)
    )  # fmt: skip
    PullRequest.objects.bulk_create(
        PullRequest(
            root_id=roots[0], number=number + n + 1, head=f"afk/{n}", base="main", state="merged",
            title=f"Mend part {n}", body="x" * 2000, **made,
        )
        for n in range(number)
    )  # fmt: skip


def _row(name: str, client: Any, address: str, headers: dict[str, str]) -> None:
    def ask() -> None:
        assert client.get(address.replace("#", "%23"), headers=headers).status_code == 200

    spent, busy, most = [], [], 0
    ask()
    for _ in range(REPEATS):
        with figures.queries() as asked:
            began = time.process_time()
            spent.append(figures.timed(ask))
            busy.append(1000 * (time.process_time() - began))
        most = max(most, asked.count)
    more = f"  {most} queries, {statistics.median(busy):.0f} of the processor"
    print(figures.line(name, spent, more), flush=True)


if __name__ == "__main__":
    main()
