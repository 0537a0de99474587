"""The bench's agent: says when it runs, and on request pushes a commit and opens a pull request."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path


def main() -> None:
    Path("started").write_text(repr(time.time()))
    print("ready", flush=True)
    go = Path("go")
    while not go.exists():
        time.sleep(0.005)
    Path("work.txt").write_text("work\n")
    identity = ["-c", "user.name=Bench", "-c", "user.email=bench@example.org"]
    subprocess.run(["git", "add", "work.txt"], check=True)
    subprocess.run(["git", *identity, "commit", "-q", "-m", "feat: work"], check=True)
    subprocess.run(["git", "push", "-q", "origin", "HEAD"], check=True)
    Path("asked").write_text(repr(time.time()))
    subprocess.run(["labctl", "pr", "create", "--title", "t", "--body", "b"], check=True)
    time.sleep(600)


if __name__ == "__main__":
    sys.exit(main())
