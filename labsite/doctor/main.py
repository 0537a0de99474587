"""`./lab doctor`: looks at everything, changes nothing, and starts however broken the product is.

Imports no Django: what only Django knows is asked of a process of its own (`facts`), so that
settings that fail are one line among the others.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from labsite import env
from labsite.doctor import checks, machine, places, product, rules, storage
from labsite.doctor.checks import Check
from labsite.doctor.lines import Line, as_json, as_text, exit_code, ok, wrong
from runs.core.paths import Paths
from runs.core.ports import SeamError
from runs.machine import shell

ROOT = machine.ROOT
FACTS_SECONDS = 25.0
ALL_SECONDS = 40.0
LOOPBACK = ("", "127.0.0.1", "::1", "localhost")
NOT_SETTINGS = frozenset(
    {"LAB_RUN_FOLDER", "LAB_RUN_MARKER", "LAB_ADDRESS_FILE", "LAB_WAKE_SOCKET"}
)


class NotTold(Exception):
    """Django could not tell; the settings line says why, so no other line repeats it."""


class Facts:
    """What the process of `facts` printed, asked once, by whichever check wants it first."""

    def __init__(self, ask: Callable[[], str]) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._told: dict[str, Any] | None = None
        self.error = ""

    def load(self) -> dict[str, Any]:
        """Every fact by name; empty, and `error` set, when the process failed."""
        with self._lock:
            if self._told is None:
                try:
                    self._told = json.loads(self._ask())
                except (SeamError, ValueError) as error:
                    self._told, self.error = {}, str(error) or "no answer"
            return self._told

    def value(self, name: str) -> Any:
        """One fact. Raises NotTold, or RuntimeError with what went wrong for this one alone."""
        told = self.load().get(name)
        if told is None:
            raise NotTold
        if "error" in told:
            raise RuntimeError(told["error"])
        return told["value"]


def ask_django() -> str:
    """The JSON of `facts`. Raises SeamError with the last line that Django said."""
    environment = dict(os.environ)
    if environment.get("LAB_PORT", "").strip() == "0":  # good for `up`, which then takes a free one
        del environment["LAB_PORT"]
    argv = [sys.executable, "-m", "labsite.doctor.facts"]
    done = shell.run(argv, timeout=FACTS_SECONDS, cwd=ROOT, env=environment)
    if done.status != 0:
        said = done.stderr.strip().splitlines() or [f"it ended with status {done.status}"]
        raise SeamError(said[-1] if done.status == 3 else f"Django cannot start: {said[-1]}")
    return done.stdout.strip().rpartition("\n")[2]


def every_check(paths: Paths, facts: Facts) -> list[Check]:
    """All checks in the order in which they are shown; settings first, since they explain others."""
    running = machine.is_running(paths)
    on_server = bool(env.text("LAB_DATABASE_URL").strip())

    def told(name: str, judge: Callable[[Any], Iterator[Line]]) -> Callable[[], Iterator[Line]]:
        def look() -> Iterator[Line]:
            with contextlib.suppress(NotTold):
                yield from judge(facts.value(name))

        return look

    def engine() -> Iterator[Line]:
        if on_server:
            yield from told("database", lambda name: iter([ok("database", f"{name} answers")]))()
        else:
            yield from storage.database(paths, paths.database)

    return [
        Check("settings", lambda: [_settings(facts)]),
        Check("python", machine.python),
        Check("packages", machine.packages),
        Check("git", machine.git),
        Check("committer", lambda: machine.committer(_or(facts, "committer", ""))),
        Check("signing", places.signing),
        Check("tmux", machine.tmux),
        Check("tmux_server", lambda: places.tmux_server(paths)),
        Check("state_folder", lambda: machine.state_folder(paths)),
        Check("secret_key", lambda: storage.secret_key(paths)),
        Check("disk", lambda: machine.disk(paths)),
        Check("clock", lambda: [_clock(paths, facts, running)]),
        Check(
            "open_files", lambda: machine.limits(_or(facts, "open_files", machine.DEFAULT_NOFILE))
        ),
        Check("port", lambda: machine.port(paths)),
        Check("database", engine),
        Check("queue", lambda: storage.database(paths, paths.queue)),
        *([Check("redis", storage.redis)] if env.text("LAB_REDIS_URL").strip() else []),
        Check("queue_depth", lambda: storage.waiting(paths)),
        Check("migrations", told("migrations", lambda f: iter([product.migrations(**f)]))),
        Check("last_tick", told("tick", lambda f: iter([product.tick(f, running)]))),
        Check("secrets", told("secrets", lambda f: iter([product.secrets(f)]))),
        Check("agent", told("agents", product.agents)),
        Check("beads", told("beads", product.beads)),
        Check("forges", told("forges", product.forges)),
        Check("sessions", told("runs", lambda f: places.sessions(paths, f))),
        Check("worktrees", told("runs", lambda f: places.worktrees(paths, f))),
        Check("checks", told("beside", lambda f: iter([product.beside(f)]))),
        Check("repository", told("projects", places.repositories)),
        Check("set_up", told("set_up", places.set_up)),
    ]


def _settings(facts: Facts) -> Line:
    facts.load()
    known = set(
        re.findall(r"^\| `(LAB_[A-Z_]+)` \|", (ROOT / "README.md").read_text(), re.MULTILINE)
    )
    given = sorted(name for name in os.environ if name.startswith("LAB_") and os.environ[name])
    unknown = [name for name in given if name not in known | NOT_SETTINGS] if known else []
    exposed = []
    if not facts.error and env.text("LAB_HOST") not in LOOPBACK and not env.flag("LAB_HTTPS"):
        exposed.append("labsite listens beyond this machine without LAB_HTTPS")
    if not facts.error and env.flag("LAB_DEBUG"):
        exposed.append("LAB_DEBUG shows inner details to whoever can reach the pages")
    return product.settings_line(facts.error, unknown, exposed)


def _clock(paths: Paths, facts: Facts, running: bool) -> Line:
    age = (_or(facts, "tick", None) or {}).get("age")
    stamp = None
    try:
        with tempfile.NamedTemporaryFile(dir=paths.state, prefix=".doctor-") as probe:
            probe.write(b"now")
            probe.flush()
            stamp, now = os.fstat(probe.fileno()).st_mtime, time.time()
    except OSError:
        now = time.time()
    set_by = places.clock_set_by(paths) if running else None
    return rules.clock(rules.ClockFacts(now, stamp, set_by, None if age is None else -age))


def _or(facts: Facts, name: str, otherwise: Any) -> Any:
    """A fact that another line explains when it is missing."""
    try:
        return facts.value(name)
    except (NotTold, RuntimeError):
        return otherwise


def main(argv: Sequence[str]) -> int:
    """0 when all is well or only worth a look, 1 when something is wrong, 2 for a wrong call."""
    parser = argparse.ArgumentParser(
        prog="./lab doctor", description="Look at everything that labsite needs; change nothing."
    )
    parser.add_argument("--json", action="store_true", help="one JSON object, for monitoring")
    given = parser.parse_args(argv)
    try:
        paths = Paths(env.state_dir())
    except (RuntimeError, ValueError) as error:
        lines = [wrong("settings", f"LAB_STATE_DIR: {error}", "Name a folder of yours.")]
    else:
        lines = checks.run(every_check(paths, Facts(ask_django)), ALL_SECONDS)
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal of another age gets what it can show
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        print(as_json(lines) if given.json else as_text(lines), flush=True)
    except BrokenPipeError:  # as in `./lab doctor | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return exit_code(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
