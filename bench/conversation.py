"""`python -m bench.conversation [--megabytes N]`: pages of a long conversation, beside reading its bytes."""

from __future__ import annotations

import argparse
import resource
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench import crowd, figures

if TYPE_CHECKING:
    from django.test import Client

REPEATS = 20
TREE = "/srv/trees/demo-7"
PIECE = 16 * 1024 * 1024


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--megabytes", type=int, default=100)
    given = options.parse_args()
    crowd.begin()
    from django.conf import settings
    from django.test import Client

    with tempfile.TemporaryDirectory(prefix="lab-conversation-") as folder:
        from runs.secrets import masked
        from runs.secrets.known import Known
        from tests.conversation import long_talk
        from tests.fakes import World
        from tests.make import a_project, a_run, a_user, an_agent
        from tests.world import agent_homes as homes

        world = World(Path(folder) / "state")
        world.lab = replace(masked.lab(world.lab, Known({})))
        settings.RUNS_LAB = lambda: world.lab
        client = Client(SERVER_NAME="localhost")
        client.force_login(a_user())
        env = {"ANTHROPIC_API_KEY": "sk-ant-Qw3rTy-0123456789"}
        profile = an_agent("bench", argv=["claude", "{prompt}"], trust="claude", env=env)
        told = {"worktree": TREE, "agent_session": homes.SESSION}
        run = a_run(a_project(), profile=profile, **told)
        path = homes.claude_path(Path(folder) / "home", TREE)
        long_talk.write_large(path, TREE, given.megabytes * 1_000_000)
        print(figures.head())
        measure(client, path, f"/runs/{run.pk}/conversation/")


def measure(client: Client, path: Path, address: str) -> None:
    size = path.stat().st_size
    middle = size // 2
    _row("floor: the same client, a page without a database", lambda: _ok(client, "/healthz"))
    _row("floor: the last 1.5 MB read", lambda: _read(path, size - 1_500_000, 1_500_000))
    for name, page in (("the overview", "/"), ("the run", address.replace("conversation/", ""))):
        once = figures.timed(lambda: _ok(client, page))  # noqa: B023  (called at once)
        print(figures.line(f"floor: {name}, first opening in this process", [once]), flush=True)
    first = figures.timed(lambda: _ok(client, address))
    print(figures.line("the end, first opening in this process", [first]), flush=True)
    _row("the end", lambda: _ok(client, address))
    _row("the middle, by its place", lambda: _ok(client, f"{address}?start={middle}"))
    _row("the middle, backwards", lambda: _ok(client, f"{address}?before={middle}"))
    _row("a refresh that brings nothing", lambda: _refresh(client, address))
    _row("floor: 16 MB read", lambda: _read(path, 0, PIECE))
    _row("16 MB searched, no hit", lambda: _ok(client, f"{address}search?q=nowhere+at+all"))
    _row("16 MB searched, 50 hits", lambda: _ok(client, f"{address}search?q=step"))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"record {size / 1e6:.0f} MB, most memory of the process {most:.0f} MB")


def _ok(client: Client, address: str) -> None:
    assert client.get(address).status_code == 200


def _refresh(client: Client, address: str) -> None:
    tag = TAGS.get(address) or client.get(f"{address}live").headers["HX-PTag"]
    TAGS[address] = tag
    assert client.get(f"{address}live", headers={"HX-PTag": tag}).status_code == 304


TAGS: dict[str, str] = {}


def _read(path: Path, start: int, length: int) -> None:
    with path.open("rb") as file:
        file.seek(start)
        assert len(file.read(length)) == length


def _row(name: str, act: Callable[[], object]) -> None:
    spent = [figures.timed(act) for _ in range(REPEATS)]
    print(figures.line(name, spent), flush=True)


if __name__ == "__main__":
    main()
