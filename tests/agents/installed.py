"""The real programs at pinned versions, in a folder that outlives the tests and is no part of the repository.

`LAB_TEST_AGENTS` may name a folder with a `node_modules/.bin` that holds them already. Else npm
installs them once into the user's cache; who comes while another process does so waits for it. A
folder may hold other versions, to see what they change. Where
there is no npm, or its registry cannot be reached, there is a sentence that says so.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

CLAUDE, CODEX = "2.1.197", "0.169.0"
PACKAGES = (f"@anthropic-ai/claude-code@{CLAUDE}", f"@openai/codex@{CODEX}")
PROGRAMS = ("claude", "codex")
NAMES = {"claude": "@anthropic-ai/claude-code", "codex": "@openai/codex"}
PATIENCE = 900
ASK_AGAIN = 600  # seconds until a registry that could not be reached is asked once more


class Lacking(Exception):
    """The programs are not there; the text says why."""


def folder() -> Path:
    """The folder of programs, which goes on PATH. Raises Lacking."""
    given = os.environ.get("LAB_TEST_AGENTS", "")
    if given:
        programs = Path(given) / "node_modules" / ".bin"
        if not all((programs / name).exists() for name in PROGRAMS):
            raise Lacking(
                f"LAB_TEST_AGENTS names {given}, where claude and codex are not installed"
            )
        return programs
    base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "labsite-tests"
    made = base / f"agents-claude-{CLAUDE}-codex-{CODEX}"
    if not made.exists():
        base.mkdir(parents=True, exist_ok=True)
        with (base / f"{made.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not made.exists():
                _install(made)
    return made / "node_modules" / ".bin"


def version(program: str) -> str:
    """Return the version of a program that is tried. Raises Lacking."""
    told = folder().parent / NAMES[program] / "package.json"
    return str(json.loads(told.read_text())["version"])


def _install(made: Path) -> None:
    """Beside, then renamed: the folder is whole or absent."""
    part, why = made.with_name(f"{made.name}.part"), made.with_name(f"{made.name}.failed")
    if why.exists() and time.time() - why.stat().st_mtime < ASK_AGAIN:
        raise Lacking(why.read_text())
    try:
        _run_npm(part)
    except Lacking as error:
        shutil.rmtree(part, ignore_errors=True)
        why.write_text(str(error))
        raise
    why.unlink(missing_ok=True)
    part.rename(made)


def _run_npm(part: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise Lacking("npm is not installed, so Claude Code and Codex were not tried")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    quiet = ("--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error")
    bounded = ("--fetch-retries=1", "--fetch-timeout=60000")
    argv = [npm, "install", "--prefix", str(part), *quiet, *bounded, *PACKAGES]
    try:
        done = subprocess.run(
            argv, cwd=part, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise Lacking(f"npm did not end within {PATIENCE} s") from error
    if done.returncode != 0:
        said = " ".join(done.stderr.split())[:300]
        raise Lacking(f"npm could not install Claude Code and Codex: {said}")
    for name in PROGRAMS:
        shown = subprocess.run(
            [str(part / "node_modules" / ".bin" / name), "--version"],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        if shown.returncode != 0:
            raise Lacking(f"{name} was installed but does not run: {shown.stderr.strip()[-300:]}")


if __name__ == "__main__":
    try:
        print(f"Claude Code {CLAUDE} and Codex {CODEX}: {folder()}")
    except Lacking as error:
        print(f"TESTS WITH REAL AGENTS ARE SKIPPED: {error}", file=sys.stderr)
