"""What the product asks of the world: small protocols, the frozen facts they answer with, errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from runs.core import masking, naming
from runs.core.effects import Effects
from runs.core.history_ports import GitSettings, History, LargeFiles
from runs.core.kept_ports import Keeping
from runs.core.paths import Paths
from runs.core.states import ForgeKind
from runs.groups.signal_rules import Signals
from runs.hosts.ports import UNKNOWN, Machine
from runs.notices.rules import Notifier
from runs.pulls.rules import Merging
from runs.remote.ports import Bell, Elsewhere, Queue
from runs.transcript.record_rules import Records
from runs.validation.command_rules import Checks
from trackers.account import Account
from trackers.base import Finding, Tracker
from trackers.keys import KeyRule

if TYPE_CHECKING:
    from trackers.http.quota import Meter


class Trust(Protocol):
    """Prepares an agent's own files so that no prompt stops an unattended run."""

    def approve(self, kind: str, worktree: Path, env: Mapping[str, str]) -> None:
        """Mark a worktree as trusted, keeping all unknown keys. Raises SeamError.

        `env` is what the agent's profile adds to the environment: it may move the agent's home.
        """


class Login(Protocol):
    """Whether an agent is logged in."""

    def check(self, command: Sequence[str], env: Mapping[str, str]) -> bool | None:
        """Ask the agent now, in its own environment; None when it could not be asked."""


@dataclass(frozen=True, slots=True)
class Said:
    """How a program that was asked something ended, and what it printed."""

    status: int
    out: str
    err: str = ""


class Programs(Protocol):
    """The programs of agents, as a session of this host would find and start them.

    `env` is what the agent's profile adds to the environment of a session.
    """

    def find(self, program: str, env: Mapping[str, str]) -> str | None:
        """The path of the program that a session would start; empty when there is none.

        None when it cannot be told, as for a path that is relative to the worktree.
        """

    def ask(self, argv: Sequence[str], env: Mapping[str, str]) -> Said:
        """Run a program for its answer, in an empty folder and bounded. Raises SeamError."""

    def variable(self, name: str, env: Mapping[str, str]) -> str:
        """The value that a variable has in a session; empty when it is not set."""

    def is_root(self) -> bool:
        """Whether sessions run as root."""


class Desk(Protocol):
    """What answers `labctl` in a trial, in place of the product. It is open until it is closed."""

    @property
    def address(self) -> str:
        """Its base URL."""

    def asked(self) -> Sequence[str]:
        """What was asked with the right token so far, as method and path, oldest first."""

    def has_pull(self) -> bool:
        """Whether a pull request was opened."""

    def close(self) -> None:
        """Answer nobody any more."""


class Desks(Protocol):
    """Opens desks."""

    def open(self, token: str, branch: str, is_pushed: Callable[[], bool]) -> Desk:
        """A desk for one issue and one branch, which has to be pushed before it has a pull request.

        Raises SeamError.
        """


class Registry(Protocol):
    """The files in which an agent notes its own sessions."""

    def find(self, pattern: str, field: str, worktree: str, env: Mapping[str, str]) -> str:
        """The id under which the agent knows the session in a worktree; empty while there is none.

        `env` is what the agent's profile adds to the environment: it may move the agent's home.
        """


class Forges(Protocol):
    """What is asked of forges beside the questions of `Tracker`."""

    def recognise(self, web: str) -> ForgeKind | None:
        """What kind of forge is at an address; None when it is none. Raises SeamError."""

    def try_out(
        self, kind: ForgeKind, account: Account, repository: str, label: str
    ) -> Sequence[Finding]:
        """A connection test with an account that is not kept yet; never raises."""

    def forget(self) -> None:
        """An account was changed here: look it up again before the next question."""

    def meter(self) -> Meter | None:
        """What this process asked of forges, in memory; None while it asked nothing."""

    def git_token(self, account: Account, owner: str, name: str) -> str:
        """A token with which git may use one repository for some minutes. Raises SeamError."""

    def account_of(self, root: str) -> Account | None:
        """The account with which a root of a forge is asked, as last read."""


class SeamError(Exception):
    """The outside could not run, timed out or said no; the text tells a person what was tried."""


class MaybeGiven(SeamError):
    """A session may have got what it was given, in whole or in part, and may not."""


class Taken(SeamError):
    """The branch or the folder of a claim is there already and belongs to somebody else."""


class UnknownCommitError(SeamError):
    """A repository does not have a commit that it was asked about."""


class UnremovableError(SeamError):
    """Something in a folder may not be removed; says what, and the command that removes it."""


class UnfitFileError(SeamError):
    """A file of a project's set-up that must not be written into a worktree; says which, and why."""


class UnfitAddress(SeamError):
    """An address that can never be told anything; trying again is no use."""


class DeviceGone(UnfitAddress):
    """A device that takes no pushes any more: its browser or its person ended that."""


class Moved(SeamError):
    """A branch of origin is not where it was seen; nothing was changed."""


class Rejected(SeamError):
    """Origin does not let a branch be changed, and says why; nothing was changed."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """One tmux session as seen in one look. `alive` is False when its program has ended.

    `marker` is what `start` gave it; empty for sessions that the product did not start.
    """

    name: str
    alive: bool
    exit_status: int | None = None
    exit_signal: int | None = None
    ended_at: datetime | None = None
    created_at: datetime | None = None
    marker: str = ""


@dataclass(frozen=True, slots=True)
class Order:
    """Everything needed to start one session. Values travel in private files, never in argv.

    `files` are written into `folder`: token, task. With `output` what is printed is kept there.
    `recording`: its screen is recorded there, in so many bytes at most; 0: nothing is kept, and only
    the sign of a change comes through; None: not even that. `columns` 0: as wide as sessions are.
    """

    session: str
    folder: Path
    cwd: Path
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    files: Mapping[str, str] = field(default_factory=dict, repr=False)
    marker: str = ""
    nofile: int = 0
    output: str = ""
    recording: int | None = None
    columns: int = 0


@dataclass(frozen=True, slots=True)
class Output:
    """A piece of what a program printed; `size`: bytes in all, `written_at`: when the last came."""

    data: bytes
    size: int
    written_at: datetime


@dataclass(frozen=True, slots=True)
class Exit:
    """How a session's program ended, as its launch wrapper wrote it down."""

    status: int | None
    signal: int | None
    at: datetime


INCLUDE = ".worktreeinclude"  # names files to bring along, as Claude Code reads it
ESCAPE, ENTER, UP, DOWN, STOP_AGENTS = KEYS = (
    *("Escape", "Enter", "Up", "Down"),
    "C-x C-k C-x C-k",  # what Claude Code wants twice before it ends its agents in the background
)


class Sessions(Protocol):
    """The sessions of one host (tmux)."""

    def look(self) -> Mapping[str, Sighting]:
        """Every session by name; empty when no server runs. Raises SeamError."""

    def server(self) -> str:
        """Return the name of the server that holds the sessions, never that of a later one; empty: none."""

    def start(self, order: Order) -> None:
        """Start a detached session. Raises SeamError; then no session exists."""

    def screens(self, names: Sequence[str], lines: int = 0) -> Mapping[str, str]:
        """What is on the screen of each session, with colours, in one call.

        `lines` adds that many of scrollback. Those that are gone are left out. Raises SeamError.
        """

    def kill(self, name: str, marker: str) -> None:
        """End a session and every process that carries its marker; idempotent.

        A session of that name that carries another marker belongs to another run and is left
        alone. Raises SeamError when something of the run still lives afterwards.
        """

    def working_in(self, folder: Path) -> Sequence[tuple[int, str]]:
        """Processes that were left behind in a folder, with their programs; never raises."""

    def interrupt(self, name: str, marker: str) -> None:
        """Pass Ctrl-C on; no error when it is gone or not marked so. Raises SeamError."""

    def make_temporary(self, folder: Path) -> None:
        """Make the temporary folder of a run where there is none yet. Raises SeamError."""

    def clear_temporary(self, folder: Path) -> None:
        """Remove a temporary folder with all that it holds, as far as that can be; never raises."""

    def forget(self, folder: Path) -> None:
        """Remove the secrets of an ended session from its folder; never raises."""

    def exit_of(self, folder: Path) -> Exit | None:
        """How the program ended, read from the run's folder; None when it is not known."""

    def output(
        self, folder: Path, start: int, limit: int, record: str = "output.jsonl"
    ) -> Output | None:
        """What the program printed, from byte `start` on; a negative one counts from the end.

        At most `limit` bytes; None when it cannot be read. `record`: another file of the folder.
        """

    def say(self, name: str, marker: str, text: str, *, is_secret: bool = False) -> None:
        """Give the program of a session with this marker a text, as if pasted and sent with Enter.

        A program need not show a secret; any other text is not sent with Enter before it is shown.
        Raises MaybeGiven when it cannot be told how far it came, SeamError when nothing was given.
        """

    def press(self, name: str, marker: str, key: str) -> None:
        """Press a digit, or one of `KEYS`, in a session with this marker. Raises as `say` does."""

    def wake(self, folder: Path) -> None:
        """Have the runner of the loop of this folder ask at once what to do; never raises."""

    def attach_command(self, name: str) -> Sequence[str]:
        """The command that a person types to watch the session."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What a run's branch holds beyond its fork point."""

    head: str
    commits: int


class Repos(History, GitSettings, LargeFiles, Keeping, Merging, Protocol):
    """Git, on reference repositories and worktrees. Every call is bounded."""

    def create(self, repo: Path, url: str, token: str = "") -> None:
        """Make an empty bare reference repository whose origin is `url`. Raises SeamError."""

    def create_origin(self, origin: Path, source: Path) -> None:
        """Make a bare repository that serves as origin and is filled from a path, read-only."""

    def found(self, folder: Path, message: str) -> None:
        """Make a repository of a folder's files, with one first commit. Raises SeamError."""

    def fetch(
        self,
        repo: Path,
        token: str = "",
        progress: Callable[[str], None] | None = None,
        timeout: float | None = None,
        url: str = "origin",
    ) -> None:
        """Bring `refs/remotes/origin/*` up to date. Raises SeamError with git's own words.

        `url` is the project's own: what the repository calls origin, an agent may have changed.
        """

    def refill(self, origin: Path, source: Path) -> str:
        """Bring new commits of a source path into its origin repository; a warning or ''."""

    def probe(self, url: str, token: str = "") -> str:
        """The default branch behind a URL or path, without cloning. Raises SeamError."""

    def try_push(self, url: str, token: str = "") -> None:
        """Ask a server whether this credential may push to it; nothing is pushed. Raises SeamError."""

    def set_aside(
        self, repo: Path, stamp: str, always: bool = False, trees: Sequence[Path] = ()
    ) -> None:
        """Make room for a repository: it is removed if it holds nothing but what origin had.

        One with branches, tags, stashes, rescues or worktrees is renamed.

        With `always` it is renamed whatever it holds; `trees` are worktrees that were renamed.
        """

    def default_branch(self, repo: Path, token: str = "", url: str = "origin") -> str:
        """The default branch of origin. Raises SeamError when origin has no commit."""

    def fetch_default(self, repo: Path, token: str = "", url: str = "origin") -> str:
        """`fetch`, and the default branch of origin, asked at the same time. Raises SeamError."""

    def remote_url(self, path: Path) -> str | None:
        """The URL of a checkout's `origin`, or None when it has none. Raises SeamError."""

    def claims(
        self, repo: Path, keys: KeyRule = KeyRule.NUMBER, prefix: str = naming.BRANCH_PREFIX
    ) -> frozenset[str]:
        """Keys of that form whose issues a local branch with this prefix claims. Raises SeamError."""

    def add_worktree(
        self, repo: Path, path: Path, branch: str, commit: str, folders: Sequence[str] = ()
    ) -> None:
        """Claim: make branch and worktree at a commit in one command.

        `folders`: what is checked out beside the files at the top; none: everything.
        Raises `Taken` when the branch or the folder is there already; then nothing was touched.
        Raises SeamError otherwise; then something half-made may be there, for `roll_back`.
        """

    def has(self, path: Path) -> bool:
        """Whether a folder is there. Raises SeamError where another host is asked and is silent."""

    def remove_worktree(self, repo: Path, path: Path) -> None:
        """Remove a clean worktree; git refuses a dirty one. Raises SeamError."""

    def roll_back(self, repo: Path, path: Path, branch: str, fork_point: str) -> bool:
        """Undo a claim that never came to a live session; True when nothing is left of it.

        Only what stands untouched at `fork_point` goes: a worktree with changes or commits, and
        a branch that is anywhere else, stay. Raises SeamError when git could not say.
        """

    def upstream(self, repo: Path, branch: str) -> str:
        """The commit of origin's branch as last fetched. Raises SeamError when there is none."""

    def is_kept_by(self, repo: Path, path: Path, branch: str) -> bool:
        """Whether everything committed in a worktree is reachable from its branch."""

    def is_dirty(self, path: Path) -> bool:
        """Whether `git status` prints anything, untracked files included."""

    def worktree_tree(self, worktree: Path) -> str:
        """The tree of all files of a worktree, committed or not, that its .gitignore files let in.

        It is that of its last commit where nothing is open. Nothing is written, not even into its
        index. Raises SeamError.
        """

    def tree_of(self, repo: Path, commit: str) -> str:
        """The tree of a commit. Raises SeamError."""

    def tip(self, repo: Path, ref: str) -> str | None:
        """The commit of a ref, None when there is no such ref. Raises SeamError."""

    def ref(self, repo: Path, name: str) -> str | None:
        """The commit that a branch's full ref names, None when there is no such ref.

        Without a program where its files tell, so a commit that is lost is still named.
        """

    def glimpse(self, repo: Path, branch: str) -> str | None:
        """The head of a branch as its file shows it, without a process; None when unsure."""

    def subject(self, path: Path, commit: str) -> str:
        """The first line of a commit's message. Raises SeamError."""

    def progress(self, path: Path, fork_point: str) -> Progress:
        """Head and number of commits since the fork point. Raises SeamError."""

    def own_refs(self, path: Path) -> Mapping[str, str]:
        """The branches, origin's as it knows them, and "HEAD" of a run's own repository, with commits.

        Empty of a worktree that has no repository of its own. Raises SeamError.
        """

    def pushed(self, repo: Path, branch: str, token: str = "", url: str = "origin") -> str | None:
        """The commit that origin has for a branch now, None when it has none."""

    def is_ahead(self, repo: Path, commit: str, base: str) -> bool:
        """Whether a commit holds what origin's base does not. Raises SeamError, UnknownCommitError."""


@dataclass(frozen=True, slots=True)
class Steady:
    """A clock that nobody can set: seconds since a boot, the time asleep included."""

    boot: str
    seconds: float


@dataclass(frozen=True)
class Lab:
    """Everything outside, plugged in once by `runs.wiring` and passed to the verbs."""

    host: str
    paths: Paths
    sessions: Sessions
    repos: Repos
    checks: Checks
    signals: Signals
    queue: Queue
    bell: Bell
    trust: Trust
    login: Login
    programs: Programs
    desks: Desks
    notifier: Notifier
    registry: Registry
    records: Records
    now: Callable[[], datetime]
    steady: Callable[[], Steady]
    pause: Callable[[float], None]
    tracker_for: Callable[[str], Tracker | None]
    forges: Forges
    process: str
    is_process_alive: Callable[[str], bool | None]
    effects: Effects
    mask: Callable[[str], str] = masking.NOTHING
    machine: Machine = UNKNOWN
    others: Callable[[Lab, str], Lab] | None = None
    elsewhere: Elsewhere | None = None

    def at(self, host: str) -> Lab:
        """The same with sessions, repositories and records of another host, as far as it answers.

        Reads, and what a person says to a session; all else raises SeamError there. `elsewhere` is
        what its worker does as a whole. Where no other host can be asked it is this one.
        """
        if host == self.host or self.others is None:
            return self
        return self.others(self, host)
