"""Fakes of everything outside. Each passes the contract tests of the real one."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from runs.core import naming
from runs.core.paths import Paths
from runs.core.ports import (
    KEYS,
    DeviceGone,
    Exit,
    Lab,
    Order,
    Output,
    Progress,
    Said,
    SeamError,
    Sighting,
    Steady,
    Taken,
    UnfitAddress,
    UnfitFileError,
)
from runs.core.states import ForgeKind
from runs.machine.agent_records import AgentRecords
from runs.notices.rules import Push
from runs.validation.command_rules import Check, Checked
from runs.wiring import EFFECTS
from tests.fake_history import FakeHistory
from tests.fake_kept import FakeKept
from tests.fake_signals import FakeSignals
from tests.world.memory_tracker import MemoryTracker
from trackers.account import Account
from trackers.base import Finding
from trackers.http.quota import Meter
from trackers.keys import KeyRule

if TYPE_CHECKING:
    from runs.models import Run

START = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


class FakeClock:
    """A clock that moves only when told."""

    def __init__(self) -> None:
        self.now = START
        self.passed = 1000.0

    def __call__(self) -> datetime:
        return self.now

    def steady(self) -> Steady:
        return Steady("boot", self.passed)

    def forward(self, **delta: float) -> datetime:
        """Time passes."""
        self.passed += timedelta(**delta).total_seconds()
        return self.jump(**delta)

    def jump(self, **delta: float) -> datetime:
        """Somebody sets the clock, and no time passes."""
        self.now += timedelta(**delta)
        return self.now


class FakeSessions:
    """`Sessions` in a dictionary."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self.all: dict[str, Sighting] = {}
        self.text: dict[str, str] = {}
        self.orders: dict[str, Order] = {}
        self.outputs: dict[Path, bytes] = {}
        self.events: dict[Path, bytes] = {}
        self.files: dict[Path, bytes] = {}
        self.woken: list[Path] = []
        self.temporary: set[Path] = set()
        self.broken = ""
        self.typed: list[tuple[str, str]] = []
        self.interrupted: list[str] = []
        self.broken_start = ""
        self.broken_kill = ""
        self.left_behind: list[tuple[int, str]] = []
        self.vanish_at_once = False
        self.server_name = "boot:10:1"
        self.giving: SeamError | None = None
        self.calls = 0

    def look(self) -> Mapping[str, Sighting]:
        self._ask()
        return dict(self.all)

    def server(self) -> str:
        return self.server_name

    def start(self, order: Order) -> None:
        self._ask()
        _refuse_odd(order.session, order.marker)
        if self.broken_start:
            raise SeamError(self.broken_start)
        if order.session in self.all:
            raise SeamError(f"duplicate session: {order.session}")
        self.orders[order.session] = order
        self.outputs.pop(order.folder, None)  # a launcher begins a new record
        if not self.vanish_at_once:
            self.appear(order.session, order.marker)

    def screens(self, names: Sequence[str], lines: int = 0) -> Mapping[str, str]:
        self._ask()
        return {name: self.text.get(name, "") for name in names if name in self.all}

    def kill(self, name: str, marker: str) -> None:
        self._ask()
        _refuse_odd(name, marker)
        if self.broken_kill:
            raise SeamError(self.broken_kill)
        if name in self.all and self.all[name].marker == marker:
            del self.all[name]

    def working_in(self, folder: Path) -> Sequence[tuple[int, str]]:
        return self.left_behind

    def interrupt(self, name: str, marker: str) -> None:
        self._ask()
        _refuse_odd(name, marker)
        if name in self.all and self.all[name].marker == marker:
            self.interrupted.append(name)

    def make_temporary(self, folder: Path) -> None:
        self.temporary.add(folder)

    def clear_temporary(self, folder: Path) -> None:
        self.temporary.discard(folder)

    def forget(self, folder: Path) -> None:
        pass

    def exit_of(self, folder: Path) -> Exit | None:
        return None

    def output(
        self, folder: Path, start: int, limit: int, record: str = "output.jsonl"
    ) -> Output | None:
        # A loop has a folder for each turn, in which every file is kept by its own name.
        kept = self.files.get(folder / record)
        if kept is None:
            kept = (self.outputs if record == "output.jsonl" else self.events).get(folder)
        if kept is None:
            return None
        begin = start if start >= 0 else max(0, len(kept) + start)
        return Output(kept[begin : begin + limit], len(kept), self._clock())

    def wake(self, folder: Path) -> None:
        self.woken.append(folder)

    def say(self, name: str, marker: str, text: str, *, is_secret: bool = False) -> None:
        self._give(name, marker)
        self.typed.append((name, text))

    def press(self, name: str, marker: str, key: str) -> None:
        self._give(name, marker)
        if key not in (*"123456789", *KEYS):
            raise SeamError(f"{key!r} is no key that is pressed in a session")
        self.typed.append((name, f"key {key}"))

    def _give(self, name: str, marker: str) -> None:
        self._ask()
        _refuse_odd(name, marker)
        if name not in self.all or self.all[name].marker != marker:
            raise SeamError(f"the session {name} is not there any more")
        if self.giving is not None:
            raise self.giving

    def attach_command(self, name: str) -> Sequence[str]:
        return ["tmux", "attach", "-t", f"={name}"]

    def appear(self, name: str, marker: str = "") -> None:
        """A session as if made by hand; with a marker, as if the product had started it."""
        self.all[name] = Sighting(name, alive=True, created_at=self._clock(), marker=marker)

    def end(self, name: str, status: int | None = 0, signal: int | None = None) -> None:
        """The program of a session ends; its pane stays."""
        before = self.all.get(name)
        marker = before.marker if before else ""
        self.all[name] = Sighting(name, False, status, signal, self._clock(), marker=marker)

    def _ask(self) -> None:
        self.calls += 1
        if self.broken:
            raise SeamError(self.broken)


def _refuse_odd(name: str, marker: str) -> None:
    if not naming.is_word(name) or (marker and not naming.is_word(marker)):
        raise SeamError(f"{name!r} with the mark {marker!r} is not a session of ours")


@dataclass
class FakeTree:
    branch: str
    fork_point: str
    is_dirty: bool | None = False
    commits: int = 0
    repo: Path | None = None  # None: of whatever repository is asked


class FakeRepos(FakeHistory, FakeKept):
    """`Repos` in dictionaries: claims by repository, worktrees by path."""

    def __init__(self) -> None:
        FakeHistory.__init__(self)
        FakeKept.__init__(self)
        self.heads: dict[Path, dict[str, str]] = {}
        self.trees: dict[Path, FakeTree] = {}
        self.half_made: set[Path] = set()
        self.beside: dict[Path, Mapping[str, str]] = {}
        self.urls: dict[str, str] = {}
        self.named: str | None = "Anna <anna@example.com>"
        self.unsigned = ""
        self.lfs: bool | None = True
        self.hooks = ""
        self.large_files = False
        self.broken_large_files = ""
        self.with_large: set[Path] = set()
        self.fetched_large: list[tuple[Path, tuple[str, ...], str, str]] = []
        self.sparse = {}
        self.origins: dict[str, dict[str, str]] = {}
        self.broken_fetch = ""
        self.no_push = ""
        self.broken_claims = ""
        self.broken_remove = ""
        self.broken_switch = ""
        self.placed: dict[Path, dict[str, str]] = {}
        self.tracked: set[str] = set()
        self.in_checkout: dict[str, str | None] = {}
        self.fetches = 0
        self.asked_origin = 0

    def _branches(self, repo: Path) -> dict[str, str]:
        return self.heads.setdefault(repo, {})

    def create(self, repo: Path, url: str, token: str = "") -> None:
        self._branches(repo)

    def create_origin(self, origin: Path, source: Path) -> None:
        self._branches(origin)

    def committer(self, repo: Path) -> str | None:
        return self.named

    def why_unsigned(self, env: Mapping[str, str]) -> str:
        return self.unsigned

    def has_lfs(self) -> bool | None:
        return self.lfs

    def lacks_large_files(self, path: Path) -> bool:
        return self.large_files and path not in self.with_large

    def fetch_large_files(
        self, path: Path, folders: Sequence[str], token: str = "", place: str = ""
    ) -> None:
        if self.broken_large_files:
            raise SeamError(self.broken_large_files)
        self.fetched_large.append((path, tuple(folders), token, place))
        self.with_large.add(path)

    def hooks_path(self) -> str:
        return self.hooks

    def fetch(self, repo, token="", progress=None, timeout=None, url="origin") -> None:  # type: ignore[no-untyped-def]
        self.fetches += 1
        if self.broken_fetch:
            raise SeamError(self.broken_fetch)
        if progress is not None:
            progress("Receiving objects: 100% (3/3), done.")

    def found(self, folder: Path, message: str) -> None:
        (folder / ".git").mkdir()

    def refill(self, origin: Path, source: Path) -> str:
        return ""

    def probe(self, url: str, token: str = "") -> str:
        if url in self.urls:
            return self.urls[url]
        raise SeamError(f"git ls-remote failed: repository '{url}' not found")

    def try_push(self, url: str, token: str = "") -> None:
        if self.no_push:
            raise SeamError(self.no_push)

    def set_aside(
        self, repo: Path, stamp: str, always: bool = False, trees: Sequence[Path] = ()
    ) -> None:
        self.heads.pop(repo, None)

    def default_branch(self, repo: Path, token: str = "", url: str = "origin") -> str:
        return "main"

    def fetch_default(self, repo: Path, token: str = "", url: str = "origin") -> str:
        self.fetch(repo, token, url=url)
        return self.default_branch(repo, token, url)

    def remote_url(self, path: Path) -> str | None:
        return None

    def claims(
        self, repo: Path, keys: KeyRule = KeyRule.NUMBER, prefix: str = naming.BRANCH_PREFIX
    ) -> frozenset[str]:
        if self.broken_claims:
            raise SeamError(self.broken_claims)
        found = (naming.claimed_key(name, keys, (prefix,)) for name in self._branches(repo))
        return frozenset(key for key in found if key)

    def upstream(self, repo: Path, branch: str) -> str:
        return "f" * 40

    def tip(self, repo: Path, ref: str) -> str | None:
        if ref in self.made:
            return ref
        if ref in self.kept.get(repo, {}):
            return self.kept[repo][ref]["commit"]
        return self.refs.get(ref) or self._branches(repo).get(ref.removeprefix("refs/heads/"))

    def is_kept_by(self, repo: Path, path: Path, branch: str) -> bool:
        return True

    def add_worktree(
        self, repo: Path, path: Path, branch: str, commit: str, folders: Sequence[str] = ()
    ) -> None:
        self.sparse[path] = tuple(folders)
        if branch in self._branches(repo) or path.exists():
            raise Taken(f"the branch {branch} is there already")
        self._branches(repo)[branch] = commit
        self.trees[path] = FakeTree(branch, commit, repo=repo)
        path.mkdir(parents=True)

    def _plant(self, repo: Path, path: Path, branch: str, tip: str, is_dirty: bool) -> None:
        self.trees[path] = FakeTree(branch, tip, is_dirty, repo=repo)
        self.with_large.discard(path)
        path.mkdir(parents=True)

    def add_again(self, repo: Path, path: Path, branch: str, folders: Sequence[str] = ()) -> bool:
        self.sparse[path] = tuple(folders)
        if path in self.half_made:
            self.half_made.remove(path)
            self.force_remove(repo, path)
        if path.exists():
            return False
        tip = self._branches(repo).get(branch)
        if tip is None:
            raise SeamError(f"git worktree failed: invalid reference: {branch}")
        self._plant(repo, path, branch, tip, is_dirty=False)
        return True

    def forward(self, repo: Path, path: Path, branch: str) -> bool:
        here, there = self._branches(repo)[branch], self.refs.get(f"refs/remotes/origin/{branch}")
        if there in (None, here) or here not in self._ancestors(there) or self.is_dirty(path):
            return False
        self._branches(repo)[branch] = there
        return True

    def switch(self, repo: Path, path: Path, branch: str, commit: str, *, clean: bool) -> bool:
        if self.broken_switch:
            raise SeamError(self.broken_switch)
        before = self.trees[path]
        assert before.repo is not None
        self._branches(before.repo)[branch] = commit
        is_dirty = before.is_dirty and not clean
        self.trees[path] = FakeTree(branch, commit, is_dirty, repo=before.repo)
        return True

    def place_files(
        self, repo: Path, path: Path, contents: Mapping[str, str], *, is_again: bool = False
    ) -> None:
        tracked = self.tracked & contents.keys()
        for name in () if is_again else tracked:
            raise UnfitFileError(f"{name} is tracked by git; not overwritten")
        left = {name: text for name, text in contents.items() if name not in tracked}
        self.placed[path] = {**left, **self.placed.get(path, {})}

    def included(self, checkout: Path, limit: int) -> Mapping[str, str | None]:
        return self.in_checkout

    def has(self, path: Path) -> bool:
        return path.is_dir()

    def remove_worktree(self, repo: Path, path: Path) -> None:
        if self.broken_remove:
            raise SeamError(self.broken_remove)
        if path in self.submodule_work:
            raise SeamError(f"{path} has a submodule with work that its origin does not have")
        self.trees.pop(path, None)
        if path.exists():
            path.rmdir()

    def roll_back(self, repo: Path, path: Path, branch: str, fork_point: str) -> bool:
        tree = self.trees.get(path)
        if tree is not None and (tree.is_dirty or tree.commits):
            return False
        self.trees.pop(path, None)
        if path.exists():
            path.rmdir()
        if self._branches(repo).get(branch) == fork_point:
            del self._branches(repo)[branch]
        return branch not in self._branches(repo)

    def is_dirty(self, path: Path) -> bool:
        tree = self.trees[path]
        if tree.is_dirty is None:
            raise SeamError("git status failed: broken")
        return tree.is_dirty

    def worktree_tree(self, worktree: Path) -> str:
        if worktree not in self.trees:
            raise SeamError("git rev-parse failed: not a git repository")
        tree = self.trees[worktree]
        head = self._branches(tree.repo or worktree).get(tree.branch, tree.fork_point)
        committed = self.tree_of(worktree, head)
        return committed[::-1] if self.is_dirty(worktree) else committed

    def ref(self, repo: Path, name: str) -> str | None:
        return self.tip(repo, name)

    def glimpse(self, repo: Path, branch: str) -> str | None:
        return self._branches(repo).get(branch)

    def subject(self, path: Path, commit: str) -> str:
        return "feat: something"

    def progress(self, path: Path, fork_point: str) -> Progress:
        tree = self.trees[path]
        return Progress("e" * 40 if tree.commits else tree.fork_point, tree.commits)

    def own_refs(self, path: Path) -> Mapping[str, str]:
        return self.beside.get(path, {})

    def pushed(self, repo: Path, branch: str, token: str = "", url: str = "origin") -> str | None:
        self.asked_origin += 1
        return self.origins.get(str(repo), {}).get(branch)

    def is_ahead(self, repo: Path, commit: str, base: str) -> bool:
        tip = self.refs.get(f"refs/remotes/origin/{base}")
        return not (commit in self.made and tip and commit in self._ancestors(tip))


@dataclass
class FakeQueue:
    """Remembers what was asked for; the test carries it out, so that it decides the order."""

    launches: list[int] = field(default_factory=list)
    clones: list[int] = field(default_factory=list)
    deliveries: list[int] = field(default_factory=list)
    opened: list[int] = field(default_factory=list)
    pings: list[bool] = field(default_factory=list)
    sweeps: list[int] = field(default_factory=list)
    validations: list[int] = field(default_factory=list)
    attempts: list[int] = field(default_factory=list)
    check_runs: list[int] = field(default_factory=list)
    after_runs: list[int] = field(default_factory=list)
    fixes: list[int] = field(default_factory=list)
    refreshes: list[int] = field(default_factory=list)
    mirrors: list[int] = field(default_factory=list)
    checks: list[int] = field(default_factory=list)
    trials: list[int] = field(default_factory=list)
    discards: list[int] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)

    def on(self, host: str) -> FakeQueue:
        self.hosts.append(host)
        return self

    def validate(self, validation_id: int) -> None:
        self.validations.append(validation_id)

    def check(self, attempt_id: int) -> None:
        self.attempts.append(attempt_id)

    def check_run(self, check_id: int) -> None:
        self.check_runs.append(check_id)

    def after_run(self, run_id: int) -> None:
        self.after_runs.append(run_id)

    def fix(self, fixer_id: int) -> None:
        self.fixes.append(fixer_id)

    def launch(self, run_id: int) -> None:
        self.launches.append(run_id)

    def clone(self, project_id: int) -> None:
        self.clones.append(project_id)

    def open(self, session_id: int) -> None:
        self.opened.append(session_id)

    def deliver(self, delivery_id: int) -> None:
        self.deliveries.append(delivery_id)

    def ping(self, healthy: bool) -> None:
        self.pings.append(healthy)

    def sweep(self, project_id: int) -> None:
        self.sweeps.append(project_id)

    def discard(self, discarding_id: int) -> None:
        self.discards.append(discarding_id)

    def refresh(self, project_id: int) -> None:
        self.refreshes.append(project_id)

    def mirror(self, run_id: int) -> None:
        self.mirrors.append(run_id)

    def check_agent(self, profile_id: int) -> None:
        self.checks.append(profile_id)

    def try_agent(self, trial_id: int) -> None:
        self.trials.append(trial_id)


class FakeChecks:
    """`Checks` that start nothing: `answers` by command line, exit status 0 where there is none."""

    def __init__(self) -> None:
        self.answers: dict[str, Checked] = {}
        self.programs: set[str] | None = None
        self.ran: list[Check] = []
        self.ended: list[str] = []
        self.printed: dict[tuple[Path, str], bytes] = {}
        self.broken = ""
        self.meanwhile: Callable[[Check], None] = lambda check: None

    def run(self, check: Check, goes_on: Callable[[], bool]) -> Checked:
        if self.broken:
            raise SeamError(self.broken)
        self.ran.append(check)
        if self.programs is not None and check.argv[0] not in self.programs:
            return Checked(None, 0.0, trouble="No such file or directory")
        self.meanwhile(check)
        if not goes_on():
            return Checked(None, 0.0, is_given_up=True)
        found = self.answers.get(shlex.join(check.argv), Checked(0, 0.5))
        self.printed[check.folder, check.name] = found.tail.encode()
        if check.whole:
            self.printed[check.folder, check.whole] = found.tail.encode()
        if check.errors:
            self.printed[check.folder, check.errors] = found.error_tail.encode()
        return found

    def end(self, mark: str) -> None:
        if self.broken:
            raise SeamError(self.broken)
        self.ended.append(mark)

    def output(self, folder: Path, name: str, start: int, limit: int) -> Output | None:
        kept = self.printed.get((folder, name))
        if kept is None:
            return None
        begin = start if start >= 0 else max(0, len(kept) + start)
        return Output(kept[begin : begin + limit], len(kept), START)


@dataclass
class FakeBell:
    rings: int = 0
    looks: list[str] = field(default_factory=list)

    def timeline(self) -> None:
        self.rings += 1

    def look(self, project: str) -> None:
        self.looks.append(project)


@dataclass
class FakeTrust:
    approved: list[tuple[str, Path]] = field(default_factory=list)
    broken: str = ""

    def approve(self, kind: str, worktree: Path, env: Mapping[str, str]) -> None:
        if self.broken:
            raise SeamError(self.broken)
        self.approved.append((kind, worktree))


@dataclass
class FakeLogin:
    answer: bool | None = True
    asked: int = 0

    def check(self, command: Sequence[str], env: Mapping[str, str]) -> bool | None:
        self.asked += 1
        return self.answer


class FakePrograms:
    """`Programs` in dictionaries: every program is there until `gone` names it."""

    def __init__(self) -> None:
        self.gone: set[str] = set()
        self.answers: dict[str, Said] = {}
        self.variables: dict[str, str] = {}
        self.root = False
        self.broken = ""
        self.asked: list[Sequence[str]] = []

    def find(self, program: str, env: Mapping[str, str]) -> str | None:
        if program.startswith("/"):
            return "" if program in self.gone else program
        if "/" in program:
            return None
        return "" if not program or program in self.gone else f"/usr/bin/{program}"

    def ask(self, argv: Sequence[str], env: Mapping[str, str]) -> Said:
        self.asked.append(list(argv))
        if self.broken or not self.find(argv[0], env):
            raise SeamError(self.broken or f"{argv[0]} could not run: No such file or directory")
        return self.answers.get(shlex.join(argv), Said(0, ""))

    def variable(self, name: str, env: Mapping[str, str]) -> str:
        return {**self.variables, **env}.get(name, "")

    def is_root(self) -> bool:
        return self.root


class FakeDesk:
    """`Desk` that hears what a test says."""

    address = "http://127.0.0.1:1"

    def __init__(self, is_pushed: Callable[[], bool]) -> None:
        self._is_pushed = is_pushed
        self.heard: list[str] = []
        self.is_closed = False

    def ask(self, method: str, path: str) -> None:
        """As labctl asks."""
        self.heard.append(f"{method} {path}")

    def asked(self) -> Sequence[str]:
        return tuple(self.heard)

    def has_pull(self) -> bool:
        return "POST /agent/pull" in self.heard and self._is_pushed()

    def close(self) -> None:
        self.is_closed = True


class FakeDesks:
    """`Desks` in memory; `last` is the one that was opened last."""

    def __init__(self) -> None:
        self.last: FakeDesk | None = None
        self.broken = ""

    def open(self, token: str, branch: str, is_pushed: Callable[[], bool]) -> FakeDesk:
        if self.broken:
            raise SeamError(self.broken)
        self.last = FakeDesk(is_pushed)
        return self.last


class FakeRegistry:
    """`Registry` in a dictionary: ids by worktree."""

    def __init__(self) -> None:
        self.ids: dict[str, str] = {}
        self.asked = 0

    def find(self, pattern: str, field: str, worktree: str, env: Mapping[str, str]) -> str:
        self.asked += 1
        return self.ids.get(worktree, "") if pattern and field else ""


@dataclass
class FakeNotifier:
    """`Notifier` that remembers; knows addresses of json:// and http:// only, like a local server."""

    told: list[tuple[str, str, str]] = field(default_factory=list)
    pinged: list[str] = field(default_factory=list)
    pushed: list[Push] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    broken: str = ""

    def push(self, push: Push) -> None:
        if push.endpoint in self.gone:
            raise DeviceGone("the device takes none any more")
        if self.broken:
            raise SeamError(self.broken)
        self.pushed.append(push)

    def check(self, url: str) -> str:
        self._ask(url, "json://")
        return "JSON"

    def send(self, url: str, title: str, text: str) -> None:
        self._ask(url, "json://")
        if self.broken:
            raise SeamError(self.broken)
        self.told.append((url, title, text))

    def ping(self, url: str) -> None:
        self._ask(url, "http://")
        if self.broken:
            raise SeamError(self.broken)
        self.pinged.append(url)

    def _ask(self, url: str, scheme: str) -> None:
        if not url.startswith(scheme):
            raise UnfitAddress("no such address")


class FakeForges:
    """`Forges` in a dictionary: kinds by address."""

    def __init__(self) -> None:
        self.kinds: dict[str, ForgeKind] = {}
        self.findings: list[Finding] = [Finding("issues", True, "Issues can be read.")]
        self.tried: list[tuple[str, str, str]] = []
        self.forgotten = 0
        self.broken = ""
        self.book: Meter | None = None
        self.accounts: dict[str, Account] = {}
        self.sold: list[str] = []

    def recognise(self, web: str) -> ForgeKind | None:
        if self.broken:
            raise SeamError(self.broken)
        return self.kinds.get(web)

    def try_out(
        self, kind: ForgeKind, account: Account, repository: str, label: str
    ) -> Sequence[Finding]:
        self.tried.append((kind, repository, label))
        return self.findings

    def forget(self) -> None:
        self.forgotten += 1

    def meter(self) -> Meter | None:
        return self.book

    def git_token(self, account: Account, owner: str, name: str) -> str:
        if self.broken:
            raise SeamError(self.broken)
        self.sold.append(f"{owner}/{name}")
        return f"ghs_{account.app_id}_{len(self.sold)}"

    def account_of(self, root: str) -> Account | None:
        return self.accounts.get(root.partition("/")[0])


class World:
    """A whole fake outside and the `Lab` made of it."""

    def __init__(self, state: Path) -> None:
        self.clock = FakeClock()
        self.sessions = FakeSessions(self.clock)
        self.repos = FakeRepos()
        self.queue = FakeQueue()
        self.checks = FakeChecks()
        self.signals = FakeSignals()
        self.bell = FakeBell()
        self.trust = FakeTrust()
        self.login = FakeLogin()
        self.programs = FakePrograms()
        self.desks = FakeDesks()
        self.notifier = FakeNotifier()
        self.registry = FakeRegistry()
        self.tracker = MemoryTracker()
        self.forges = FakeForges()
        self.dead_processes: set[str] = set()
        self.lab = Lab(
            host="local",
            paths=Paths(state),
            sessions=self.sessions,
            repos=self.repos,
            checks=self.checks,
            signals=self.signals,
            queue=self.queue,
            bell=self.bell,
            trust=self.trust,
            login=self.login,
            programs=self.programs,
            desks=self.desks,
            notifier=self.notifier,
            registry=self.registry,
            records=AgentRecords({"HOME": str(state.parent / "home")}),
            now=self.clock,
            steady=self.clock.steady,
            pause=lambda seconds: None,
            tracker_for={"memory": self.tracker}.get,
            forges=self.forges,
            process="boot:1:1",
            is_process_alive=lambda name: name not in self.dead_processes,
            effects=EFFECTS,
        )

    def live(self, run: Run) -> None:
        """The session of a run, as the product would have started it."""
        mark = "" if run.is_adopted else naming.marker(str(self.lab.paths.state), run.pk)
        self.sessions.appear(run.session, mark)


def tripwire() -> Lab:
    """What `runs.wiring.lab()` gives in tests that did not ask for a world."""
    raise AssertionError("this test reached the outside without asking for a world")
