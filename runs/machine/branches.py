"""Managed branches as git sees them, and what removes them and their worktrees."""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from runs.core import naming
from runs.core.kept_ports import Branch, ObjectCount, Standing
from runs.core.ports import SeamError
from runs.machine import files, shell, worktree_links
from runs.machine.files import read_small
from runs.machine.git import CHECKOUT, QUICK, failed
from runs.machine.run_repositories import LENT, GitRunRepositories

_STEP = 0.05
_MANY = 200
LOCK_BYTES = 200
PACKED = "labsite-packed"  # a file of the shared repository: when packing it was begun
PACKING = 600.0
_LEFT_AFTER = 4 * 3600.0  # no program of git's works that long here
# All that nothing leads to is kept: runs borrow it.
_REPACK = (
    *("-c", "pack.threads=1", "-c", "repack.writeBitmaps=false"),
    *("repack", "-q", "-n", "-a", "-d", "--keep-unreachable"),
)
_MAKING = "initializing"  # git's own reason for the lock of a worktree that it makes
_FIELDS = "--format=%(refname:strip=2)%00%(objectname)%00%(committerdate:unix)%00%(worktreepath)"


class GitKept(GitRunRepositories):
    """`Keeping` (core/kept_ports.py), except for what rescues need (`GitRescues`)."""

    hold_seconds = 20.0

    @contextlib.contextmanager
    def hold(self, repo: Path) -> Iterator[None]:
        """A lock of the system, so that it goes with the process that held it."""
        try:
            lock = (repo / "labsite.lock").open("w")
        except OSError as error:
            raise SeamError(f"{repo} cannot be written: {error.strerror}") from error
        with lock:
            until = time.monotonic() + self.hold_seconds
            while not _locked(lock.fileno()):
                if time.monotonic() > until:
                    raise SeamError("kept work of this project is being tidied; try again")
                time.sleep(_STEP)
            yield

    def branches(self, repo: Path, prefixes: Sequence[str]) -> Sequence[Branch]:
        self._bring_all(repo, prefixes)
        text = self._git.ask(
            repo, "for-each-ref", "--sort=-committerdate", _FIELDS, *_refs(prefixes), timeout=QUICK
        )
        found = (line.split("\0") for line in text.splitlines())
        own = _own_places(repo)
        return [
            Branch(
                name,
                tip,
                datetime.fromtimestamp(int(at or 0), UTC),
                worktree or own.get(name, ""),
            )
            for name, tip, at, worktree in found
        ]

    def registered(self, repo: Path) -> Sequence[Path]:
        return [folder for _, folder in worktree_links.registered(repo)]

    def standing(self, repo: Path, path: Path) -> Standing:
        if worktree_links.admin_of(repo, path) is None:
            return Standing(is_linked=False)
        head = self._git(path, "rev-parse", "--verify", "-q", "HEAD", timeout=QUICK)
        branch = self._git(path, "symbolic-ref", "-q", "--short", "HEAD", timeout=QUICK)
        return Standing(head.stdout.strip(), branch.stdout.strip())

    def merged(self, repo: Path, base: str, prefixes: Sequence[str]) -> frozenset[str]:
        self._bring_all(repo, prefixes)
        text = self._git.ask(
            repo,
            *("for-each-ref", "--format=%(refname:strip=2)"),
            *(f"--merged=refs/remotes/origin/{base}", *_refs(prefixes)),
            timeout=QUICK,
        )
        return frozenset(text.splitlines())

    def pushed_tips(self, repo: Path, base: str, prefixes: Sequence[str]) -> Mapping[str, str]:
        root = "refs/remotes/origin/"
        text = self._git.ask(
            repo,
            *("for-each-ref", "--format=%(objectname) %(refname:strip=3)"),
            *(f"{root}{name}" for name in (base, *map(naming.refs_under, prefixes))),
            timeout=QUICK,
        )
        pairs = (line.split(" ", 1) for line in text.splitlines())
        return {name: tip for tip, name in pairs}

    def ahead(self, repo: Path, branch: str, base: str) -> int:
        self._bring(repo, f"refs/heads/{branch}")
        ends = f"refs/remotes/origin/{base}..refs/heads/{branch}"
        return int(self._git.ask(repo, "rev-list", "--count", ends, "--", timeout=QUICK))

    def unpushed(self, repo: Path, branch: str, base: str) -> int:
        has_own = self._git(
            repo, "rev-parse", "--verify", "-q", f"refs/remotes/origin/{branch}", timeout=QUICK
        )
        return self.ahead(repo, branch, branch if has_own.status == 0 else base)

    def force_remove(self, repo: Path, path: Path) -> None:
        """Twice forced, since a killed start may have left it locked; what git leaves goes too."""
        if worktree_links.note_of(repo, path) is not None:
            with contextlib.suppress(SeamError):
                self._bring_of(repo, path)
            self._erase(repo, path)
            self._git(repo, "update-ref", "-d", _lent_to(path), timeout=QUICK)
            return
        if path.exists():
            self._git(repo, "worktree", "remove", "--force", "--force", "--", str(path))
            files.remove_tree(path)
        self._git.ask(repo, "worktree", "prune", timeout=QUICK)

    def add_detached(
        self, repo: Path, path: Path, commit: str, folders: Sequence[str] = ()
    ) -> None:
        self.force_remove(repo, path)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._bring_all(repo)
        worktree_links.forget_placed(repo, path)
        if self.makes_own:
            self._lend(repo, path, commit, folders)
            return
        argv = ("worktree", "add", "-q", "--detach", "--", str(path), commit)
        done = self._git(repo, *argv, timeout=CHECKOUT, looks_at_files=True)
        if done.status != 0:
            raise failed("worktree", done)

    def _lend(self, repo: Path, path: Path, commit: str, folders: Sequence[str]) -> None:
        """Make an own repository at a commit that stays here as long as the folder borrows it."""
        lent = self._git(repo, "update-ref", _lent_to(path), commit, timeout=QUICK)
        if lent.status != 0 and self._git(repo, "cat-file", "-e", commit, timeout=QUICK).status:
            raise SeamError(f"invalid reference: {commit} is not here")
        if lent.status != 0:
            raise failed("update-ref", lent)
        self._make_own(repo, path, commit, folders=folders)

    def add_again(self, repo: Path, path: Path, branch: str, folders: Sequence[str] = ()) -> bool:
        """git tidies up after itself, unless it was killed or had no time for that."""
        if _is_half_made(repo, path):
            self._clear(repo, path)
        if path.exists():
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        self._git(repo, "worktree", "prune", timeout=QUICK)
        try:
            self._check_out_again(repo, path, branch, folders)
        except SeamError:
            if _is_half_made(repo, path):
                self._clear(repo, path)
            raise
        return True

    def _check_out_again(self, repo: Path, path: Path, branch: str, folders: Sequence[str]) -> None:
        """Make the worktree of a branch that is there. Raises SeamError."""
        worktree_links.forget_placed(repo, path)
        if self.makes_own:
            tip = self._commit_of(repo, f"refs/heads/{branch}")
            if tip is None:
                raise SeamError(f"there is no branch {branch}")
            self._make_own(repo, path, tip, branch, folders)
            return
        argv = ("worktree", "add", "-q", "--no-guess-remote", "--", str(path), branch)
        done = self._git(repo, *argv, timeout=CHECKOUT, looks_at_files=True)
        if done.status != 0:
            raise failed("worktree", done)

    def _clear(self, repo: Path, path: Path) -> None:
        """Locked notes of a folder that is gone would stay, and stand in its way."""
        self._git(repo, "worktree", "unlock", str(path), timeout=QUICK)
        self.force_remove(repo, path)

    def delete_branch(self, repo: Path, branch: str, tip: str) -> None:
        """What is left of its own repository names it no more, or it would come back."""
        self._git.ask(repo, "update-ref", "-d", f"refs/heads/{branch}", tip, timeout=QUICK)
        worktree_links.forget_claim(repo, branch)

    def packed_at(self, repo: Path) -> datetime | None:
        try:
            at = datetime.fromisoformat((read_small(repo / PACKED, LOCK_BYTES) or "").strip())
        except ValueError:
            return None
        return at if at.tzinfo is not None else None

    def count_objects(self, repo: Path) -> ObjectCount:
        text = self._git.ask(repo, "count-objects", "-v", timeout=QUICK)
        found = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
        size = (int(found["size"]) + int(found["size-pack"])) * 1024
        try:
            free = shutil.disk_usage(repo).free
        except OSError:
            free = None
        return ObjectCount(int(found["count"]), int(found["packs"]), size, free)

    def pack(self, repo: Path, now: datetime) -> bool:
        try:
            with (repo / PACKED).open("a") as note:
                if not _locked(note.fileno()):
                    return False
                note.truncate(0)
                note.write(now.isoformat())
                note.flush()
                _remove_left_packs(repo)
                for argv in (("pack-refs", "--all"), _REPACK):
                    done = self._git(repo, *argv, timeout=PACKING, is_nice=True)
                    if done.status != 0:
                        raise failed("repack" if argv is _REPACK else argv[0], done)
        except OSError as error:
            raise SeamError(f"{repo} cannot be written: {error.strerror}") from error
        return True

    def sizes(self, paths: Sequence[Path]) -> Mapping[Path, int]:
        """A folder that goes away or cannot be read meanwhile is no reason to know nothing."""
        found: dict[Path, int] = {}
        for start in range(0, len(paths), _MANY):
            some = [str(path) for path in paths[start : start + _MANY]]
            done = shell.run(["du", "-sk", "--", *some], timeout=self._git.timeout())
            for line in done.stdout.splitlines():
                size, _, name = line.partition("\t")
                if size.isdigit():
                    found[Path(name)] = int(size) * 1024
        return found


def _remove_left_packs(repo: Path) -> None:
    """Remove what a program of git's left half-written that was killed. Raises OSError."""
    folder, before = repo / "objects/pack", time.time() - _LEFT_AFTER
    for file in [*folder.glob("tmp_*"), *folder.glob(".tmp-*")]:
        with contextlib.suppress(FileNotFoundError):
            if file.lstat().st_mtime < before:
                file.unlink()


def _is_half_made(repo: Path, path: Path) -> bool:
    """Whether git itself says that it has begun this worktree and not come to its end."""
    note = worktree_links.note_of(repo, path)
    if note is not None:
        return not note.is_made
    notes = (
        admin for admin, at in worktree_links.registered(repo) if at.resolve() == path.resolve()
    )
    return any((read_small(one / "locked", LOCK_BYTES) or "").strip() == _MAKING for one in notes)


def _lent_to(path: Path) -> str:
    """A ref for as long as a folder borrows a commit that no branch may lead to any more."""
    return f"{LENT}{worktree_links.name_of(str(path))}"


def _own_places(repo: Path) -> Mapping[str, str]:
    """Where the branches lie that runs' own repositories have checked out."""
    found = (note.path for note in worktree_links.notes(repo))
    places = {path: own for path in found if (own := worktree_links.own_git(path))}
    on = {worktree_links.standing_on(own): path for path, own in places.items()}
    return {name: str(path) for name, path in on.items() if name}


def _refs(prefixes: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"refs/heads/{naming.refs_under(prefix)}" for prefix in prefixes)


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
