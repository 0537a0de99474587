"""The end-to-end check of the run level: a real run on a temporary repository with one tiny issue.

By default that run is labsite's own `watch` in a state folder of its own, with one issue and one
agent at a time; a project may name another command. Whatever happens, everything that was started
is ended and the fixture is removed, unless it is to be kept.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from runs.accounts import logins
from runs.agents import checks
from runs.core.paths import Paths
from runs.core.ports import Lab, SeamError
from runs.models import AgentProfile, Settings
from runs.validation import e2e_fixture, rules
from runs.validation.command_rules import Check, Checked
from runs.validation.rooms import Lost, Room
from runs.validation.specs import E2E

MANAGE = Path(__file__).resolve().parents[2] / "manage.py"
VARIABLE = "LAB_E2E_FIXTURE"
LOG = "e2e"
HELP_MINUTES = 3  # for what is done before and after the run


def run(lab: Lab, room: Room, spec: E2E, goes_on: Callable[[], bool]) -> dict[str, Any]:
    """Try a real run; how it went, as it is stored. Raises Lost, SeamError."""
    began = lab.now()
    folder = place(lab, room, spec)
    missing = _missing(lab, room, spec)
    if missing:
        why = f"the end-to-end check cannot be carried out: {missing}"
        return {**_answer(room, why), "seconds": 0.0, "log": None}
    trial = _Trial(lab, room, spec, folder, goes_on)
    trial.clear()
    try:
        why = trial.carry_out()
    finally:
        trial.end()
        if not spec.keep:
            trial.clear()
    kept = str(trial.repo) if spec.keep else None
    seconds = round((lab.now() - began).total_seconds(), 2)
    return {**_answer(room, why), "seconds": seconds, "fixture_path": kept}


def place(lab: Lab, room: Room, spec: E2E) -> Path:
    """Where the fixture of a room lies: repository, and state folder of the labsite beside it."""
    root = Path(spec.fixture_root) if spec.fixture_root else lab.paths.e2e_fixtures
    return root / f"{room.path.name}-{room.attempt}"


def settle(lab: Lab, room: Room, spec: E2E) -> None:
    """End what the fixtures of a room's attempts left, and remove those that are not to be kept.

    Idempotent; asks nobody anything where none is there. Raises SeamError when something is left.
    """
    for number in range(room.attempt + 1):
        one = replace(room, attempt=number)
        trial = _Trial(lab, one, spec, place(lab, one, spec), _always)
        if trial.folder.exists() and not spec.keep:
            trial.clear()
        elif trial.has_sessions:
            trial.end()


def _answer(room: Room, why: str) -> dict[str, Any]:
    return {
        "passed": not why,
        "failure_reason": why or None,
        "fixture_path": None,
        "seconds": 0.0,
        "log": f"{room.attempt}-{LOG}.txt",
    }


def _missing(lab: Lab, room: Room, spec: E2E) -> str:
    """The first thing that is needed and not there, by its name; empty when all is there."""
    profile = _profile(room)
    env = profile.env if profile is not None and not spec.command else {}
    for name in spec.required_env:
        if not lab.programs.variable(name, env):
            return f"the variable {name} is not set"
    return _missing_program(lab, spec) if spec.command else _missing_agent(lab, profile)


def _missing_program(lab: Lab, spec: E2E) -> str:
    """The command's own program, and bd where the command names that."""
    for program in (spec.command[0], *(word for word in spec.command if word == "bd")):
        if lab.programs.find(program, {}) == "":
            return f"the program {program} is not on this machine"
    return ""


def _missing_agent(lab: Lab, profile: AgentProfile | None) -> str:
    if profile is None:
        return "no agent is chosen"
    _, unfit = checks.inspect(lab, profile)
    if unfit is not None:
        return unfit.text
    if logins.ask(lab, profile) is False:
        return f"{profile.name} is not logged in on this machine"
    return ""


def _profile(room: Room) -> AgentProfile | None:
    return room.project.agent or Settings.current().agent


@dataclass(frozen=True, slots=True)
class _Trial:
    """One run on one fixture, and what it leaves."""

    lab: Lab
    room: Room
    spec: E2E
    folder: Path
    goes_on: Callable[[], bool]

    @property
    def repo(self) -> Path:
        return self.folder / "tiny"

    @property
    def state(self) -> Path:
        """The state folder of the labsite that works on it."""
        return self.folder / "state"

    def carry_out(self) -> str:
        """Run it; why it failed, empty when it passed. Raises Lost, SeamError."""
        e2e_fixture.write(self.lab, self.repo)
        if self.spec.command:
            argv = (*self.spec.command, str(self.repo))
            done = self._run(argv, LOG, self.spec.minutes, env={VARIABLE: str(self.repo)})
            return _judged(argv, done, e2e_fixture.seen(self.lab, self.repo))
        why = self._make()
        if why:
            return why
        argv = ("watch", e2e_fixture.PROJECT, "--max-issues", "1")
        done = self._own(argv, LOG, self.spec.minutes)
        return _judged(("./lab", *argv), done, self._look())

    @property
    def has_sessions(self) -> bool:
        """Whether the tmux of its own labsite has not been ended."""
        return Paths(self.state).tmux_socket.exists()

    def end(self) -> None:
        """End what the run left: its processes, and the sessions of its own labsite."""
        self.lab.checks.end(self.room.mark)
        if Paths(self.state).database.exists():
            # Whether or not this is still wanted: nothing may stay behind.
            self._own(("e2e_fixture", "end"), "e2e-end", HELP_MINUTES, goes_on=_always)
            socket = str(Paths(self.state).tmux_socket)
            self._run(("tmux", "-S", socket, "kill-server"), "e2e-end", 1, _always)

    def clear(self) -> None:
        """Remove the fixture of this or an earlier run. Raises SeamError."""
        if self.folder.exists():
            self.end()
            shutil.rmtree(self.folder, ignore_errors=True)
        if self.folder.exists():
            raise SeamError(f"{self.folder} could not be removed")

    def _make(self) -> str:
        """Set up the labsite that works on it; why that failed. The agent's secrets stay in files."""
        profile = _profile(self.room)
        assert profile is not None  # noqa: S101  (asked before)
        given = self.folder / "agent.json"
        text = json.dumps(e2e_fixture.agent_of(profile, Settings.current()))
        try:
            self.state.mkdir(mode=0o700)
            given.touch(mode=0o600)
            given.write_text(text, encoding="utf-8")
            done = self._own(("prepare",), "e2e-make", HELP_MINUTES)
            argv = ("e2e_fixture", "make", str(self.repo), "--minutes", str(self.spec.minutes))
            if done.status == 0:
                done = self._own(argv, "e2e-make", HELP_MINUTES, given=given)
        except OSError as error:
            raise SeamError(f"{self.folder} could not be written: {error.strerror}") from error
        finally:
            given.unlink(missing_ok=True)
        if done.status == 0:
            return ""
        return f"a labsite for the fixture could not be set up: {_last_line(done)}"

    def _look(self) -> Mapping[str, bool]:
        done = self._own(("e2e_fixture", "look"), "e2e-look", HELP_MINUTES)
        try:
            found = json.loads(_last_line(done))
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def _own(self, argv: Sequence[str], name: str, minutes: int, **more: Any) -> Checked:
        """A command of this very labsite, on the fixture's state folder."""
        env = {"LAB_STATE_DIR": str(self.state)}
        return self._run((sys.executable, str(MANAGE), *argv), name, minutes, env=env, **more)

    def _run(
        self,
        argv: Sequence[str],
        name: str,
        minutes: int,
        goes_on: Callable[[], bool] | None = None,
        **more: Any,
    ) -> Checked:
        check = Check(
            argv=argv,
            cwd=self.repo if self.repo.exists() else self.folder,
            folder=self.room.folder,
            name=f"{self.room.attempt}-{name}.txt",
            mark=self.room.mark,
            limit=timedelta(minutes=minutes),
            **more,
        )
        done = self.lab.checks.run(check, goes_on or self.goes_on)
        if done.is_given_up:
            raise Lost
        return done


def _always() -> bool:
    return True


def _judged(argv: Sequence[str], done: Checked, seen: Mapping[str, bool]) -> str:
    """Three things are needed, and each that is missing is a reason of its own."""
    why = rules.why_failed(argv, done)
    closed, artifact = seen.get("closed"), seen.get("artifact")
    reasons = [
        f"the run on the fixture did not pass: {why}" if why else "",
        "" if closed else "the issue of the fixture is not closed",
        "" if artifact else f"{e2e_fixture.ARTIFACT}, which the issue asks for, is not there",
    ]
    return "; ".join(one for one in reasons if one)


def _last_line(done: Checked) -> str:
    lines = [line for line in done.tail.strip().splitlines() if line.strip()]
    return lines[-1][:300] if lines else done.trouble or "it said nothing"
