"""The real outside for tests: tmux on a private socket, git repositories in a temporary folder."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from runs.agents.on_machine import AgentFiles, AgentLogin, AgentPrograms, AgentRegistry
from runs.agents.trial_server import TrialDesks
from runs.core.paths import Paths
from runs.core.ports import Lab, Steady
from runs.core.states import ProjectState
from runs.forges.bd import BdCommand
from runs.forges.trackers import Trackers
from runs.groups.signal_files import SignalFolders
from runs.kept import removal
from runs.lifecycle import launch
from runs.machine import processes
from runs.machine.agent_records import AgentRecords
from runs.machine.git import Git
from runs.machine.tmux import TmuxSessions
from runs.machine.worktrees import GitWorktrees
from runs.models import AgentProfile, Project, Settings
from runs.notices.notifier import AppriseNotifier
from runs.projects import acts as projects
from runs.secrets import masked
from runs.secrets.known import Known
from runs.validation.command_runner import LocalChecks
from runs.wiring import EFFECTS
from tests.fakes import FakeBell, FakeQueue
from tests.patience import PATIENCE
from tests.repositories import IDENTITY, a_checkout, git
from tests.trackers import bd
from tests.world.memory_tracker import MemoryTracker
from trackers.base import Tracker
from trackers.registry import Tools

__all__ = ["IDENTITY", "IDLE", "RealWorld", "a_checkout", "git"]

# A shell, since an interpreter takes ten times as long to begin.
IDLE = ["/bin/sh", "-c", "echo ready; exec sleep 600", "{prompt}"]


class RealWorld:
    """Real tmux and git around a `Lab`; tasks run when the test says so, the clock can be moved."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.paths = Paths(folder / "state")
        for path in (
            self.paths.state,
            self.paths.bin,
            self.paths.feed,
            self.paths.tmux_socket.parent,
        ):
            path.mkdir(parents=True, exist_ok=True)
        home = folder / "home"
        home.mkdir(exist_ok=True)
        self.environ = {**os.environ, **IDENTITY, "HOME": str(home)}
        self.environ.pop("CLAUDE_CONFIG_DIR", None)
        self.git_timeout = PATIENCE
        self.offset = timedelta(0)  # time that passed without a wait
        self.jump = timedelta(0)  # how far somebody has set the clock
        self.queue = FakeQueue()
        self.bell = FakeBell()
        self.memory = MemoryTracker()
        self._beads: dict[str, bd.Beads] = {}
        self.trackers = Trackers(
            Tools(now=lambda: self.lab.now(), runner=BdCommand(bd.environ(self.environ))),
            time.monotonic,
        )
        self.sessions = TmuxSessions(self.paths, self.environ, timeout=PATIENCE)
        self.repos = GitWorktrees(Git(self.environ, self.paths.bin, lambda: self.git_timeout))
        self.lab = Lab(
            host="local",
            paths=self.paths,
            sessions=self.sessions,
            repos=self.repos,
            checks=LocalChecks(self.environ),
            signals=SignalFolders(),
            queue=self.queue,
            bell=self.bell,
            trust=AgentFiles(self.environ),
            login=AgentLogin(self.environ, timeout=PATIENCE),
            programs=AgentPrograms(self.environ, self.paths.bin, timeout=PATIENCE),
            desks=TrialDesks(),
            notifier=AppriseNotifier(self.environ, timeout=PATIENCE),
            registry=AgentRegistry(self.environ),
            records=AgentRecords(self.environ),
            now=lambda: datetime.now(UTC) + self.offset + self.jump,
            steady=self._steady,
            pause=time.sleep,
            tracker_for=self._tracker_for,
            forges=self.trackers,
            process=processes.name_of(os.getpid()),
            is_process_alive=processes.is_alive,
            effects=EFFECTS,
        )
        self.lab = masked.lab(self.lab, Known(self.environ))

    def _tracker_for(self, kind: str) -> Tracker | None:
        return self.memory if kind == "memory" else self.trackers.tracker_for(kind)

    def _steady(self) -> Steady:
        return Steady(processes.boot(), time.monotonic() + self.offset.total_seconds())

    def project(
        self, name: str = "demo", *, argv: list[str] | None = None, tracker: str = "memory"
    ) -> Project:
        """A project with a bare origin and an agent that runs `argv` (idle by default)."""
        origin = self.folder / f"{name}-origin.git"
        source = a_checkout(self.folder / f"{name}-checkout", origin)
        project = projects.add(self.lab, name=name, source=str(source), token="", by="anna")
        self.work()
        project.refresh_from_db()
        assert project.state == ProjectState.READY, project.error
        if tracker == "memory":
            self.memory.add_root(name)
            project.tracker, project.tracker_root = "memory", name
        if tracker == "beads":
            project.tracker, project.tracker_root = "beads", self.beads(name).root
        project.agent = AgentProfile.objects.create(name=f"Agent of {name}", argv=argv or IDLE)
        project.save()
        Settings.current()
        return project

    def beads(self, name: str = "demo") -> bd.Beads:
        """The folder of beads of a project; made when it is first asked for."""
        if name not in self._beads:
            self._beads[name] = bd.Beads(self.folder / f"{name}-beads")
        return self._beads[name]

    def work(self) -> None:
        """Carry out everything that was asked of the queue."""
        while self.queue.clones or self.queue.launches:
            while self.queue.clones:
                removal.clone_or_remove(self.lab, self.queue.clones.pop(0))
            while self.queue.launches:
                launch.carry_out(self.lab, self.queue.launches.pop(0))

    def tmux(self, *argv: str) -> str:
        """tmux on the world's private socket, as an operator would type it."""
        done = subprocess.run(
            ["tmux", "-S", str(self.paths.tmux_socket), *argv],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        return done.stdout

    def session_names(self) -> list[str]:
        return sorted(self.tmux("list-sessions", "-F", "#{session_name}").split())

    def by_hand(self, name: str, *command: str) -> None:
        """Start a session by hand, without the product."""
        self.sessions.look()
        self.tmux(
            "-f",
            str(self.paths.state / "tmux.conf"),
            "new-session",
            "-d",
            "-s",
            name,
            *(command or ("sleep", "600")),
        )

    def until(self, happened, seconds: float = PATIENCE) -> None:  # type: ignore[no-untyped-def]
        """Wait for something outside that no clock of ours drives, such as a process that ends."""
        deadline = time.monotonic() + seconds
        while not happened():
            assert time.monotonic() < deadline, "it never happened"
            time.sleep(0.02)

    def look_again_at_the_end(self) -> None:
        """The second look at a start comes when its program has ended, however slow this machine is."""

        def pause(_seconds: float) -> None:
            self.until(lambda: not any(seen.alive for seen in self.sessions.look().values()))

        self.lab = replace(self.lab, pause=pause)

    def close(self) -> None:
        """End the private server and everything that works in this world's folder; never raises."""
        self.tmux("kill-server")
        ours = str(self.folder).encode()
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                works_here = (entry / "cwd").readlink().is_relative_to(self.folder)
                if works_here or ours in (entry / "cmdline").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)
        self.paths.tmux_socket.unlink(missing_ok=True)
        shutil.rmtree(self.paths.shared_place, ignore_errors=True)
