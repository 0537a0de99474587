"""`python -m bench.requests`: what one project costs its forge in an hour, counted on the forge's side."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from bench import crowd


def main() -> None:
    crowd.begin()
    from runs.models import AgentProfile, Forge, Project
    from tests.fakes import World
    from tests.forge_hours import CASES, cost

    print(f"{'requests in an hour':<58} {'API':>5} {'git':>5}  of them")
    for case in sys.argv[1:] or CASES:
        began = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="lab-hours-") as folder:
            found = cost(World(Path(folder)), case)
        by = ", ".join(f"{count} {what}" for what, count in found.by.most_common())
        print(f"{case:<58} {found.api:>5} {found.git:>5}  {by}", flush=True)
        for table in (Project, Forge, AgentProfile):
            table.objects.all().delete()
        print(f"{time.perf_counter() - began:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
