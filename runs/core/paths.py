"""Where things lie in the state folder. Nothing else builds these paths."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path

_SOCKET_LIMIT = 100
_LONGEST_SOCKET = "feed/4194304.sock"
# Of a run's temporary folder, so that a socket with a name of some fifty letters fits into 108.
_TEMPORARY_LIMIT = 56
_ODD = frozenset("#\"$'{}\\`:;")


def odd_letters(state: Path) -> str:
    """The letters of a state folder's path that tmux, a shell or PATH would read as their own."""
    found = {letter for letter in str(state) if letter in _ODD or not letter.isprintable()}
    return " ".join(sorted(repr(letter)[1:-1] if letter != "\\" else letter for letter in found))


@dataclass(frozen=True, slots=True)
class Paths:
    """The layout of one state folder."""

    state: Path

    @property
    def repos(self) -> Path:
        """Bare reference repositories, one a project; their heads are the claims."""
        return self.state / "repos"

    @property
    def origins(self) -> Path:
        """Bare repositories that stand in as origin for projects whose path has none."""
        return self.state / "origins"

    @property
    def worktrees(self) -> Path:
        """Worktrees of runs, `<project>-<key>`."""
        return self.state / "worktrees"

    @property
    def run_folders(self) -> Path:
        """One private folder a run: launch order, token, exit file."""
        return self.state / "runs"

    @property
    def validations(self) -> Path:
        """One private folder a validation: what its commands printed."""
        return self.state / "validations"

    @property
    def gates(self) -> Path:
        """One private folder an attempt of the gates: what its commands and reviewers printed."""
        return self.state / "gates"

    @property
    def clean_rooms(self) -> Path:
        """Clean worktrees of attempts: `<run>/<issue>/<attempt>`."""
        return self.state / "clean-rooms"

    @property
    def e2e_fixtures(self) -> Path:
        """Temporary repositories on which a real run is tried."""
        return self.state / "e2e-fixtures"

    def test_mutex(self, project_id: int) -> Path:
        """Held by the one command of a project that may not run beside others like it."""
        return self.state / "locks" / f"test-mutex-{project_id}"

    @property
    def reviews(self) -> Path:
        """Copies that reviewers work in, `<attempt>-<reviewer>`; each goes when its review ends."""
        return self.state / "reviews"

    def signals(self, project: str = "", group: str = "") -> Path:
        """Signal files: one folder a project (its slug), and in it one a task group."""
        return self.state / "signals" / project / group

    @property
    def trials(self) -> Path:
        """Scratch repositories of trials of agents, one folder a profile; removed afterwards."""
        return self.state / "trials"

    @property
    def bin(self) -> Path:
        """Put first on the PATH of every session; holds `labctl`."""
        return self.state / "bin"

    @property
    def bash_env(self) -> Path:
        """What bash reads before a command of a session: it keeps `bin` on the PATH."""
        return self.bin / "bash-env"

    @property
    def feed(self) -> Path:
        """One datagram socket a web process: "there is something new on the timeline"."""
        return self.feed_socket(0).parent

    @property
    def worker_socket(self) -> Path:
        """The worker's datagram socket: "look at this project now"."""
        return self._socket("worker.sock")

    def more_worker_socket(self, process_id: int) -> Path:
        """The socket of a further worker: "there is work on the queue"."""
        return self._socket(f"more/{process_id}.sock")

    @property
    def tmux_socket(self) -> Path:
        """The private tmux server of this state folder."""
        return self._socket("tmux.sock")

    @property
    def address(self) -> Path:
        """Holds the base URL of the running web process, for `labctl`."""
        return self.state / "address"

    @property
    def database(self) -> Path:
        return self.state / "lab.sqlite3"

    @property
    def queue(self) -> Path:
        return self.state / "queue.sqlite3"

    @property
    def secret_key(self) -> Path:
        return self.state / "secret.key"

    @property
    def removed(self) -> Path:
        """Why the worker of a host that people took out has ended; there only while that is so."""
        return self.state / "removed.txt"

    @property
    def up_lock(self) -> Path:
        """Held by the `./lab up` that runs the worker of this state folder; names its process."""
        return self.state / "up.lock"

    @property
    def web_lock(self) -> Path:
        """Held by the `./lab up` that runs the web process of this state folder."""
        return self.state / "web.lock"

    @property
    def demo(self) -> Path:
        """The demo project's repository, made on request."""
        return self.state / "demo"

    @property
    def answers(self) -> Path:
        """Answers of forges with what proves them current; losing it only costs quota."""
        return self.state / "answers"

    @property
    def static_stamp(self) -> Path:
        """Says from which files the static files were collected."""
        return self.state / "static.stamp"

    @property
    def setup_token(self) -> Path:
        """Holds the hash of the one-time set-up link's token, while nobody has an account."""
        return self.state / "setup.token"

    def run_folder(self, run_id: int) -> Path:
        """The private folder of one run."""
        return self.run_folders / str(run_id)

    def fixer_folder(self, fixer_id: int) -> Path:
        """The private folder of one fixer's session."""
        return self.run_folders / f"fix-{fixer_id}"

    def feed_socket(self, process_id: int) -> Path:
        """The socket of one web process; short names, since the system limits them."""
        return self._socket(f"feed/{process_id}.sock")

    @property
    def temporary(self) -> Path:
        """Temporary folders of runs; outside the state folder where its path is long."""
        is_short = len(str(self.state / "tmp/4194304").encode()) <= _TEMPORARY_LIMIT
        return (self.state if is_short else self.shared_place) / "tmp"

    def temporary_folder(self, run_id: int) -> Path:
        """The temporary folder of one run, in which its programs make files and sockets."""
        return self.temporary / str(run_id)

    @property
    def socket_folder(self) -> Path:
        """Where all sockets lie: outside the state folder if the system's limit asks for it."""
        is_short = len(str(self.state / _LONGEST_SOCKET).encode()) <= _SOCKET_LIMIT
        return self.state if is_short else self.shared_place

    @property
    def shared_place(self) -> Path:
        """A folder of this state folder with a short path, where others have theirs too."""
        digest = hashlib.sha256(str(self.state).encode()).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"labsite-{digest}"

    def _socket(self, name: str) -> Path:
        return self.socket_folder / name
