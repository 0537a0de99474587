"""`python -m bench.evidence [--megabytes N]`: gate 1 on a long record, beside reading its bytes."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bench import crowd, figures

REPEATS = 20
TREE = "/srv/trees/demo-7"
PIECE = 4 * 1024 * 1024


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--megabytes", type=int, default=50)
    given = options.parse_args()
    crowd.begin()
    with tempfile.TemporaryDirectory(prefix="lab-evidence-") as folder:
        from runs.secrets import masked
        from runs.secrets.known import Known
        from tests.conversation import long_talk
        from tests.fakes import World
        from tests.world import agent_homes as homes

        world = World(Path(folder) / "state")
        world.lab = replace(masked.lab(world.lab, Known({})))
        path = homes.claude_path(Path(folder) / "home", TREE)
        long_talk.write_large(path, TREE, given.megabytes * 1_000_000)
        print(figures.head())
        measure(world, path)


def measure(world, path: Path) -> None:  # type: ignore[no-untyped-def]
    """The first attempt reads the whole record, the next ones what is new."""
    from runs.evidence import records
    from tests.make import a_project, a_run, an_agent
    from tests.world import agent_homes as homes

    profile = an_agent("bench", argv=["claude", "{prompt}"], trust="claude")
    run = a_run(a_project(), profile=profile, worktree=TREE, agent_session=homes.SESSION)

    def look(begun, *words):  # type: ignore[no-untyped-def]
        return records.read(world.lab, run, begun, words, lambda: None)

    _row("floor: the bytes read", lambda: _read(path), 5)
    found = look({})
    assert found.places[homes.SESSION].read == path.stat().st_size
    _row("first reading, few of its commands are the project's", lambda: look({}, "pytest"), 5)
    _row("first reading, each of them may be", lambda: look({}, "cat"), 5)
    _row("a look that brings nothing", lambda: look(found.places))
    line = path.read_bytes()[:200_000].split(b"\n", 2)[1] + b"\n"

    def one_more() -> None:
        with path.open("ab") as file:
            file.write(line)
        look(found.places)

    _row("a look that brings some lines", one_more)
    print(f"record {path.stat().st_size / 1e6:.0f} MB, {len(found.shown)} commands")


def _read(path: Path) -> None:
    with path.open("rb") as file:
        while file.read(PIECE):
            pass


def _row(name: str, act: Callable[[], object], repeats: int = REPEATS) -> None:
    spent = [figures.timed(act) for _ in range(repeats)]
    print(figures.line(name, spent), flush=True)


if __name__ == "__main__":
    main()
