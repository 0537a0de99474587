"""The bench's agent: says when it runs, and on request measures `labctl` or opens a pull request.

With `--at-once` as its first argument it opens the pull request without being asked.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

CALLS = {
    "floor": [sys.executable, "-I", "-S", "-c", "pass"],
    "labctl": ["labctl", "issue", "view"],
}
REPEATS = 15


def main() -> None:
    Path("started").write_text(repr(time.time()))
    print("ready", flush=True)
    go, measure = Path("go"), Path("measure")
    while not go.exists() and "--at-once" not in sys.argv:
        if measure.exists():
            measure.unlink()
            _write(Path("measured"), json.dumps(_measure()))
        time.sleep(0.005)
    Path("work.txt").write_text("work\n")
    identity = ["-c", "user.name=Bench", "-c", "user.email=bench@example.org"]
    subprocess.run(["git", "add", "work.txt"], check=True)
    subprocess.run(["git", *identity, "commit", "-q", "-m", "feat: work"], check=True)
    subprocess.run(["git", "push", "-q", "origin", "HEAD"], check=True)
    Path("asked").write_text(repr(time.time()))
    subprocess.run(["labctl", "pr", "create", "--title", "t", "--body", "b"], check=True)
    time.sleep(600)


def _measure() -> dict[str, list[float]]:
    """Seconds of each call, in turns."""
    spent: dict[str, list[float]] = {name: [] for name in CALLS}
    for _ in range(REPEATS):
        for name, argv in CALLS.items():
            began = time.perf_counter()
            subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
            spent[name].append(time.perf_counter() - began)
    return spent


def _write(path: Path, text: str) -> None:
    """Write a file that is whole as soon as it is there."""
    half = path.with_suffix(".half")
    half.write_text(text)
    half.rename(path)


if __name__ == "__main__":
    sys.exit(main())
