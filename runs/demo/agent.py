#!/usr/bin/env python3
"""The scripted demo agent: does what a coding agent does, with a script in place of a model.

Reads its task and its issue, writes a test, sees it fail, makes the change, runs all tests,
commits, pushes, opens a pull request, and then waits as an interactive agent does. Standard
library only. What it does can be chosen, for tests and for bad days: `DEMO_AGENT`, or a line
`demo-agent: …` in the issue, holds steps separated by `;` out of

    work  idle  exit N  signal N  print TEXT  sleep S  edit  commit  push  pull  dump FILE

DEMO_PAUSE is the number of seconds between two steps, so that a person can watch.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

CHANGES = Path(__file__).resolve().parent / "changes"
IDENTITY = {"NAME": "Demo agent", "EMAIL": "demo-agent@localhost"}
BOLD, DIM, RED, GREEN, CYAN, PLAIN = (f"\033[{code}m" for code in (1, 2, 31, 32, 36, 0))
NOT_SHOWN = ("diff --git", "index ", "new file", "--- ")
COLOURS = {"+": GREEN, "-": RED, "@": CYAN}
BRANCH = re.compile(r"afk/([A-Za-z0-9_-]+)")
STEPS_IN_ISSUE = re.compile(r"^\s*demo-agent:\s*(.+)$", re.MULTILINE)


class GaveUp(Exception):
    """The agent cannot go on; the text says why."""


@dataclass(frozen=True)
class Change:
    """One prepared piece of work: a test, the change that makes it pass, and how to tell of it."""

    folder: Path
    commit: str
    summary: str


class Screen:
    """The terminal, in colours, at a pace that a person can follow."""

    def __init__(self, pause: float) -> None:
        self._pause = pause

    def step(self, text: str) -> None:
        self._rest()
        print(f"\n{CYAN}●{PLAIN} {BOLD}{text}{PLAIN}", flush=True)

    def command(self, text: str) -> None:
        print(f"  {DIM}${PLAIN} {text}", flush=True)
        self._rest()

    def output(self, text: str, is_patch: bool = False) -> None:
        for line in text.rstrip().splitlines():
            colour = COLOURS.get(line[:1], "") if is_patch else ""
            print(f"  {DIM}│{PLAIN} {colour}{line}{PLAIN}", flush=True)
        self._rest()

    def _rest(self) -> None:
        time.sleep(self._pause)


class Agent:
    """One agent at work in its worktree."""

    def __init__(self, argv: list[str], environment: Mapping[str, str], screen: Screen) -> None:
        self._argv = argv
        self._screen = screen
        self._environment = {
            **environment,
            **{
                f"GIT_{who}_{what}": value
                for who in ("AUTHOR", "COMMITTER")
                for what, value in IDENTITY.items()
            },
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self._issue = ""
        self._change: Change | None = None
        self.key, self.branch = _read_task(argv[-1], environment)

    def greet(self) -> None:
        print(
            f"{BOLD}Demo agent{PLAIN} {DIM}a script, no model behind it; the work is real{PLAIN}",
            flush=True,
        )
        self._screen.step(f"Task: issue {self.key}, on branch {self.branch}")

    def steps(self, environment: Mapping[str, str]) -> list[str]:
        """What to do: told by the environment, else by the issue, else the whole work."""
        told = environment.get("DEMO_AGENT", "").strip()
        if not told:
            self.read_issue()
            found = STEPS_IN_ISSUE.search(self._issue)
            told = found[1].strip().strip("`") if found else "work"
        return [step.strip() for step in told.split(";") if step.strip()]

    def do(self, step: str) -> None:
        """Do one step; GaveUp when there is no such step or it failed."""
        verb, _, text = step.partition(" ")
        verbs: Mapping[str, Callable[[], object]] = {
            "work": self.work,
            "idle": self.idle,
            "exit": lambda: sys.exit(int(text)),
            "signal": lambda: _die_by(int(text)),
            "print": lambda: print(text, flush=True),
            "sleep": lambda: time.sleep(float(text)),
            "edit": self.edit,
            "commit": self.commit,
            "push": self.push,
            "pull": self.open_pull,
            "dump": lambda: self.dump(Path(text)),
        }
        if verb not in verbs:
            raise GaveUp(f"there is no step {verb!r}")
        verbs[verb]()

    def work(self) -> None:
        """The seven things that the task asks for."""
        if not self._issue:
            self.read_issue()
        self._stay_on_branch()
        self._screen.step("Looking around")
        self._run("git", "log", "--oneline", "-3")
        self._run("git", "ls-files")
        self.edit()
        self.commit()
        self.push()
        self.open_pull()

    def read_issue(self) -> None:
        self._screen.step(f"Reading issue {self.key} with its comments")
        self._issue = self._run("labctl", "issue", "view", self.key)

    def edit(self) -> None:
        """Test first: see it fail, make the change, see everything pass."""
        change = self._chosen()
        if change is None:
            return self._note_it_down()
        self._screen.step("Writing a test that shows what is asked for")
        self._apply(change.folder / "test.patch")
        if self._tests_pass():
            raise GaveUp("the new test passes already, so there is nothing to do")
        self._screen.step("It fails, as it should. Making the change")
        self._apply(change.folder / "fix.patch")
        self._screen.step("Running all tests")
        if not self._tests_pass():
            raise GaveUp("the tests fail with the change")
        return None

    def commit(self) -> None:
        self._screen.step("Committing")
        if not self._call("git", "status", "--porcelain").stdout:
            self._note_it_down()
        self._run("git", "add", "--all")
        self._run("git", "commit", "-q", "-m", self._told()[0], "-m", f"Refs #{self.key}")

    def push(self) -> None:
        self._screen.step(f"Pushing {self.branch}")
        self._run("git", "push", "-q", "origin", self.branch)

    def open_pull(self) -> None:
        self._screen.step("Opening a pull request")
        title, summary = self._told()
        body = f"{summary}\n\nCloses #{self.key}"
        self._run("labctl", "pr", "create", "--title", title, "--body", body)
        print(
            f"\n{GREEN}{BOLD}Done.{PLAIN} The pull request is open; I take no other work.",
            flush=True,
        )

    def idle(self) -> None:
        """Wait for a person, as an interactive agent does."""
        print(f"\n{DIM}> {PLAIN}", end="", flush=True)
        while True:
            time.sleep(3600)

    def dump(self, path: Path) -> None:
        """Write down what reached the agent, for tests."""
        facts = {
            "argv": self._argv,
            "cwd": str(Path.cwd()),
            "environment": dict(os.environ),
            "nofile": list(resource.getrlimit(resource.RLIMIT_NOFILE)),
        }
        path.write_text(json.dumps(facts), encoding="utf-8")

    def _chosen(self) -> Change | None:
        """The prepared change whose words the issue holds."""
        if self._change is None:
            self._change = _change_for(self._issue)
        return self._change

    def _told(self) -> tuple[str, str]:
        """Commit message and summary of what was done."""
        change = self._chosen()
        if change is not None:
            return change.commit, change.summary
        return (
            f"docs: note issue {self.key} for a person",
            "This is no change that the demo agent knows.",
        )

    def _stay_on_branch(self) -> None:
        branch = self._call("git", "branch", "--show-current").stdout.strip()
        if branch != self.branch:
            raise GaveUp(f"the worktree is on {branch or 'no branch'}, not on {self.branch}")

    def _apply(self, patch: Path) -> None:
        lines = patch.read_text(encoding="utf-8").splitlines()
        shown = [line for line in lines if not line.startswith(NOT_SHOWN)]
        self._screen.output("\n".join(shown), is_patch=True)
        self._run("git", "apply", str(patch), shown=f"git apply {patch.name}")

    def _note_it_down(self) -> None:
        """An issue that the script has no change for: keep it as a note, which is real work too."""
        self._screen.step("I know no change for this issue; I write it down for a person")
        note = Path("notes") / f"issue-{self.key}.md"
        note.parent.mkdir(exist_ok=True)
        note.write_text(f"# Issue {self.key}\n\n{self._issue.strip()}\n", encoding="utf-8")

    def _run(self, *argv: str, shown: str = "") -> str:
        """Run a command where the person can see it. GaveUp when it fails."""
        self._screen.command(shown or " ".join(argv).splitlines()[0])
        done = self._call(*argv)
        self._screen.output(done.stdout + done.stderr)
        if done.returncode != 0:
            raise GaveUp(f"`{argv[0]} {argv[1]}` ended with status {done.returncode}")
        return done.stdout

    def _tests_pass(self) -> bool:
        self._screen.command("python3 -m unittest -q")
        done = self._call(sys.executable, "-m", "unittest", "-q")
        self._screen.output("\n".join(done.stderr.rstrip().splitlines()[-5:]))
        return done.returncode == 0

    def _call(self, *argv: str) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                argv,
                env=dict(self._environment),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
        except OSError as error:
            raise GaveUp(f"{argv[0]} could not run: {error.strerror}") from error


def _read_task(prompt: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """The issue and branch that labsite, else the prompt names. GaveUp when neither does."""
    if environment.get("LAB_ISSUE") and environment.get("LAB_BRANCH"):
        return environment["LAB_ISSUE"], environment["LAB_BRANCH"]
    found = BRANCH.search(prompt)
    if found is None:
        raise GaveUp("the task names no branch afk/<issue>")
    return found[1], found[0]


def _change_for(issue: str) -> Change | None:
    for about in sorted(CHANGES.glob("*/about.json")):
        facts = json.loads(about.read_text(encoding="utf-8"))
        if facts["words"].lower() in issue.lower():
            return Change(about.parent, facts["commit"], facts["summary"])
    return None


def _die_by(number: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.kill(os.getpid(), number)
    signal.pause()


def main(argv: list[str]) -> int:
    """Do the steps; stay open at the end, or end with 1 when it cannot go on."""
    try:
        agent = Agent(argv, os.environ, Screen(float(os.environ.get("DEMO_PAUSE", "1"))))
        agent.greet()
        for step in agent.steps(os.environ):
            agent.do(step)
    except GaveUp as why:
        print(f"{RED}I cannot go on:{PLAIN} {why}.", flush=True)
        return 1
    agent.idle()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
