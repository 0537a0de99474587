"""`python -m bench.starting [--repeats N]`: what `./lab up` takes of the processor until it is ready.

From an empty folder and from the same one again, supervisor, web process, worker and what they start
taken together. The floor is a Python that loads Django and does nothing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import figures, rest
from tests.house.product import Product

CALM_SECONDS = 3.0  # after it says that it is ready: what begins then belongs to the start
FLOOR = "import os, django.conf, django.db.models; print(sum(os.times()[:2]))"


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--repeats", type=int, default=5)
    given = options.parse_args()
    print(figures.head())
    for name, values in measure(given.repeats).items():
        print(figures.line(name, values))


def measure(repeats: int) -> dict[str, list[float]]:
    """Return processor seconds by what was started, one for each time.

    As `./lab` is used: with what Python has compiled kept, which some test machines turn off.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    found: dict[str, list[float]] = {"empty": [], "ready": [], "floor": []}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory(prefix="lab-bench-") as folder:
            for name in ("empty", "ready"):
                found[name].append(_start(Path(folder) / "state"))
        told = subprocess.run([sys.executable, "-c", FLOOR], capture_output=True, check=True)
        found["floor"].append(float(told.stdout))
    return found


def _start(state: Path) -> float:
    product = Product(state).wait_until_ready()
    try:
        time.sleep(CALM_SECONDS)
        return rest.spent_seconds([product.process.pid, *product.children().values()])
    finally:
        product.close()


if __name__ == "__main__":
    main()
