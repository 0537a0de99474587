"""`python -m bench.gates [--repeats N] [--files N]`: what a clean room costs beside its commands.

A repository of so many files, real git and processes, the database on disk; the floor is `git
worktree add` and `git worktree remove` of the same commit, measured in turn with it.
"""

from __future__ import annotations

import argparse
import functools
import os
import subprocess
import tempfile
from pathlib import Path

from bench import crowd
from bench.figures import head, line, p95, timed


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--repeats", type=int, default=20)
    options.add_argument("--files", type=int, default=5_000)
    given = options.parse_args()
    crowd.begin()
    with tempfile.TemporaryDirectory(prefix="lab-bench-") as folder:
        _all(Path(folder), given.repeats, given.files)


def _all(folder: Path, repeats: int, files: int) -> None:
    from runs.gates import clean_room
    from runs.models import Attempt
    from tests.gates.rooms import Claimed, sh
    from tests.real import RealWorld

    real = RealWorld(folder / "world")
    try:
        claimed = Claimed(real, sh("one", "sleep 0.2"), sh("two", "sleep 0.3"))
        names = {f"src/part{n % 50}/file{n}.txt": f"{n}\n" * 20 for n in range(files)}
        commit = claimed.commit("7", names)
        floors, overheads, wholes = [], [], []
        for number in range(1, repeats + 1):
            floors.append(timed(lambda: _floor(claimed.repo, folder / "floor", commit)))
            hold = claimed.hold("7", commit, number)
            whole = timed(functools.partial(clean_room.judge, real.lab, hold))
            commands = sum(one["seconds"] for one in hold.attempt.results)
            assert len(hold.attempt.results) == 2, hold.attempt.results
            wholes.append(whole)
            overheads.append(whole - commands)
            Attempt.objects.filter(pk=hold.attempt.pk).update(
                state="passed", ended_at=real.lab.now()
            )
        print(head())
        print(line(f"floor: git worktree add and remove, {files} files", floors))
        print(line("clean room of two commands, over their own time", overheads))
        print(line("clean room of two commands, all in all", wholes))
        target = 1.3 * p95(floors) * 1000 + 200
        print(
            f"  p95 against its target 1.3 x floor p95 + 200 ms: {p95(overheads) * 1000:.0f} / {target:.0f} ms"
        )
    finally:
        real.close()


def _floor(repo: Path, path: Path, commit: str) -> None:
    for argv in (
        ["worktree", "add", "-q", "--detach", str(path), commit],
        ["worktree", "remove", "--force", str(path)],
    ):
        subprocess.run(["git", "-C", str(repo), *argv], check=True, env={**os.environ})


if __name__ == "__main__":
    main()
