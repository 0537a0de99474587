"""Stores the whole state of a branch and its worktree as objects, whatever an agent made of them.

Everything is made with an index of our own and among objects that are taken over when all of them
are there; neither the worktree nor its index is touched, and a failure leaves nothing.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from runs.core.kept_ports import Snapshot
from runs.core.ports import SeamError, UnremovableError
from runs.machine import files, shell, worktree_links
from runs.machine.git import QUICK, failed
from runs.machine.repos import CLOSED_FOLDER, OTHERS
from runs.machine.run_repositories import LASTING, GitRunRepositories, Lost

Tell = Callable[[int], None]

LONG = 6 * 3600.0
DEAD_SECONDS = 86_400.0  # nobody writes any more in what git began so long ago
QUARANTINE = "tmp_objdir-labsite-"  # git's own tidying removes folders of this form too
_PLAIN = (
    *("-c", "core.autocrlf=false"),
    *("-c", "core.safecrlf=false"),
    *("-c", "core.sparseCheckout=false"),
    *("-c", "pack.compression=1"),
    *("-c", "advice.addEmbeddedRepo=false"),
)
# Line endings and the operator's own filters as where somebody commits here.
_AS_COMMITTED = (
    *("-c", "core.safecrlf=false"),
    *("-c", "core.sparseCheckout=false"),
    *("-c", "core.untrackedCache=false"),
    *("-c", "core.compression=1"),
    *("-c", "advice.addEmbeddedRepo=false"),
)
_READING = ("add", "ls-files")
_SUBMODULE = "160000"
_SUFFIXES = (".pack", ".rev", ".bitmap", ".idx")  # a pack is seen once its .idx is there


@dataclass(frozen=True, slots=True)
class _Work:
    """One storing: where to run git, with which index and settings, and what it found beside.

    `own`: the git folder of a run's own repository. With `keeps_links` nothing of a submodule is
    stored but the commit on which it stands.
    `beside` collects commits of repositories inside, which only they named.
    """

    folder: Path
    index: Path
    plain: Sequence[str]
    env: Mapping[str, str]
    tell: Callable[[str], None] | None = None
    own: Path | None = None
    keeps_links: bool = False
    beside: set[str] = field(default_factory=set)


class GitSnapshots(GitRunRepositories):
    """`Keeping.snapshot` (core/kept_ports.py)."""

    def snapshot(
        self, repo: Path, tip: str, path: Path | None, tell: Tell | None = None
    ) -> Snapshot:
        if path is None or not path.exists():
            tree = self._tree(repo, tip)
            return Snapshot(tip, tip, tree, tree, is_dirty=False, has_worktree=False)
        with _scratch() as scratch, _quarantine(repo) as fresh:
            env = {
                "GIT_OBJECT_DIRECTORY": str(fresh),
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(repo / "objects"),
            }
            heard = (lambda _: tell(_size(fresh))) if tell is not None else None
            admin = worktree_links.admin_of(repo, path)
            own = admin if admin == path / ".git" else None
            plain = self._plain(repo if own is None else path)
            work = _Work(path, scratch / "files", plain, env, heard, own)
            if admin is None:
                return self._foreign(repo, tip, work)
            are_pushed = not self.holds_submodule_work(repo, path)
            return self._linked(repo, tip, replace(work, keeps_links=are_pushed))

    def holds_submodule_work(self, repo: Path, path: Path) -> bool:
        """Say yes, so that everything is kept; `GitWorktrees` looks."""
        return True

    def worktree_tree(self, worktree: Path) -> str:
        """Its objects are made in a place of their own and go with it.

        A repository inside counts by the commit it stands on, as in what git would commit.
        """
        with _scratch() as place:
            fresh = place / "objects"
            fresh.mkdir()
            here = {
                "GIT_WORK_TREE": str(worktree),
                "GIT_CEILING_DIRECTORIES": str(worktree.parent),
            }
            argv = ("rev-parse", "--path-format=absolute", "--git-path", "objects")
            at = self._git(worktree, *argv, env=here, timeout=QUICK)
            if at.status != 0:
                raise failed("rev-parse", at)
            env = {
                **here,
                "GIT_OBJECT_DIRECTORY": str(fresh),
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": at.stdout.strip(),
            }
            work = _Work(worktree, place / "files", _AS_COMMITTED, env)
            self._begin("HEAD", work)
            self._unhide("HEAD", work)
            repo = worktree_links.shared_of(worktree)
            placed = worktree_links.placed_in(repo, worktree).names if repo else frozenset()
            but = self._open(placed, work)
            self._ask(work, "add", "--all", *(("--", ".", *_but(but)) if but else ()))
            self._add_hidden(work, placed)
            return self._ask(work, "write-tree").strip()

    def tree_of(self, repo: Path, commit: str) -> str:
        return self._tree(repo, commit)

    def weight(self, repo: Path, path: Path) -> int:
        if not path.exists():
            return 0
        if worktree_links.admin_of(repo, path) is None:
            return _size(path)
        argv = ("ls-files", "--modified", "--others", "--exclude-per-directory=.gitignore", "-z")
        listed = self._git.ask(path, *argv, timeout=QUICK, looks_at_files=True)
        names = {name.rstrip("/") for name in listed.split("\0") if name}
        names |= set(self._submodules(path))
        admin = worktree_links.admin_of(repo, path)
        inside = _size(admin / "modules") if admin is not None else 0
        return inside + sum(_size(path / name) for name in names)

    def _submodules(self, path: Path) -> list[str]:
        listed = self._git.ask(path, "ls-files", "-s", "-z", timeout=QUICK)
        return [name for name in _links(listed) if (path / name / ".git").exists()]

    def _linked(self, repo: Path, tip: str, work: _Work) -> Snapshot:
        path = work.folder
        at = self._git(path, "rev-parse", "--verify", "-q", "HEAD", timeout=QUICK)
        head = at.stdout.strip() or tip  # a branch without a commit yet holds nothing of its own
        staged = replace(work, index=work.index.with_name("staged"))
        lost = Lost()
        if work.own is not None:
            lost = self._own_commits(repo, head, work)
        base = self._ask(work, "rev-parse", "--verify", f"{head}^{{tree}}").strip()
        self._begin(head, staged)
        index = self._staged(staged) or base
        files = self._files(repo, head, work)
        ends = set(lost.ends) - {head}
        dirty = {index, files} != {base} or bool(ends)
        beside = tuple(sorted(work.beside | ends))
        return Snapshot(tip, head, index, files, dirty, True, beside, lost.names)

    def _own_commits(self, repo: Path, head: str, work: _Work) -> Lost:
        """Take in what only an own repository has: its commits, and what is staged there."""
        self._bring_of(repo, work.folder)
        lost = self._lost(repo, work.folder, LASTING)
        limit = LONG if work.tell is not None else None
        wanted = [head, *lost.ends, *sorted(self._staged_in(work.folder))]
        self._take(repo, work.folder, wanted, env=work.env, timeout=limit)
        return lost

    def _foreign(self, repo: Path, tip: str, work: _Work) -> Snapshot:
        """A worktree that is the repository's no more: its files, as work upon the branch.

        Where it was made a repository of its own, whose commits are kept beside.
        """
        base = self._tree(repo, tip)
        files = self._whole(repo, work.folder, work, tip)
        beside = tuple(sorted(work.beside))
        return Snapshot(tip, tip, base, files, files != base or bool(beside), True, beside)

    def _whole(self, repo: Path, folder: Path, work: _Work, base: str = "") -> str:
        """The tree of a folder's files, read with the reference repository's own eyes.

        The commits of a repository that lies there are taken over as well.
        """
        name = f"files-{secrets.token_hex(4)}"
        env = {**work.env, "GIT_DIR": str(repo), "GIT_WORK_TREE": str(folder)}
        inner = replace(work, folder=repo, index=work.index.with_name(name), env=env)
        if base:
            self._ask(inner, "read-tree", base)
        tree = self._add_all(repo, folder, inner)
        if (folder / ".git").exists():
            work.beside.update(self._take_over(repo, folder, work))
        return tree

    def _files(self, repo: Path, head: str, work: _Work) -> str:
        """The tree of everything on disk that is not ignored.

        What an index calls unchanged without a look is looked at nevertheless; what a sparse
        checkout left out is there as committed.
        """
        self._begin(head, work)
        self._unhide(head, work)
        return self._add_all(repo, work.folder, work)

    def _unhide(self, head: str, work: _Work) -> None:
        """Have the index look at what it was told to call unchanged, or to leave out."""
        flags = self._git(
            work.folder, *work.plain, "ls-files", "-v", "-z", index=work.index, env=work.env
        )
        if flags.status != 0:
            self._fresh(head, work)
            return
        lines = [line for line in flags.stdout.split("\0") if line]
        hidden = [line[2:] for line in lines if line[0].islower()]
        left_out = [line[2:] for line in lines if line[0] in "Ss"]
        present = [name for name in left_out if os.path.lexists(work.folder / name)]
        for flag, names in (("--no-assume-unchanged", hidden), ("--no-skip-worktree", present)):
            if names:
                self._given(work, ("update-index", flag, "-z", "--stdin"), names)

    def _add_all(self, repo: Path, folder: Path, work: _Work) -> str:
        """Take in every file below the folder; repositories inside with their files and commits."""
        links, inner = self._inner(folder, work)
        # They hold secrets and are no work. One that somebody made git track is in git already.
        placed = worktree_links.placed_in(repo, folder).names
        but = [*links, *inner, *self._open(placed, work)]
        self._ask(work, "add", "--all", "--", ".", *_but(but))
        self._add_hidden(work, placed)
        for name in links:
            at = self._git.ask(folder / name, "rev-parse", "--verify", "HEAD", timeout=QUICK)
            link = f"{_SUBMODULE},{at.strip()},{name}"
            self._ask(work, "update-index", "--cacheinfo", link)
        for name in inner:
            tree = self._whole(repo, folder / name, work)
            self._given(work, ("update-index", "--force-remove", "-z", "--stdin"), [name])
            if tree != self._empty(repo, work):
                self._ask(work, "read-tree", f"--prefix={name}/", tree)
        return self._ask(work, "write-tree").strip()

    def _open(self, names: Collection[str], work: _Work) -> list[str]:
        """Return those that git would add; it refuses to be told of others that it shall not."""
        if not names:
            return []
        argv = ("ls-files", "--others", "--exclude-standard", "-z", "--")
        listed = self._ask(work, *argv, *(f":(top,literal){name}" for name in sorted(names)))
        return [name for name in listed.split("\0") if name in names]

    def _inner(self, folder: Path, work: _Work) -> tuple[list[str], list[str]]:
        """Submodules whose commit is enough, then all other repositories inside, by their paths."""
        listed = self._ask(work, *OTHERS)
        found = {name.rstrip("/") for name in listed.split("\0") if name.endswith("/")}
        links = set(_links(self._ask(work, "ls-files", "-s", "-z")))
        there = [name for name in sorted(found | links) if (folder / name / ".git").exists()]
        kept = links if work.keeps_links else set[str]()
        return [name for name in there if name in kept], [one for one in there if one not in kept]

    def _take_over(self, repo: Path, folder: Path, work: _Work) -> set[str]:
        """Take in every commit that a repository names, its logs too; the ends of its history."""
        own = folder / ".git"
        if own.is_dir() and not worktree_links.is_repository(own):
            return set()  # what is left of it is no repository
        env = {"GIT_CEILING_DIRECTORIES": str(folder.parent)}
        argv = (
            "rev-parse",
            "--path-format=absolute",
            "--git-common-dir",
            "--is-shallow-repository",
        )
        about = self._git(folder, *argv, env=env, timeout=QUICK)
        if about.status != 0 and worktree_links.leads_somewhere(own):
            raise _unreadable(folder)
        if about.status != 0:
            return set()  # its link leads nowhere
        common, is_shallow = about.stdout.split("\n")[:2]
        if Path(common).resolve() in (repo.resolve(), work.own):
            # One more worktree of the same repository, whose commits are taken in with it.
            at = self._git(folder, "rev-parse", "--verify", "-q", "HEAD", env=env, timeout=QUICK)
            return {at.stdout.strip()} - {""}
        if is_shallow == "true":
            raise SeamError(
                f"{folder} is a repository of its own without its whole history (a shallow "
                "clone), which a rescue cannot hold. Move it away or remove it, then try again"
            )
        return self._all_of(repo, folder, work, env)

    def _all_of(self, repo: Path, folder: Path, work: _Work, env: Mapping[str, str]) -> set[str]:
        """Take in all objects of a repository inside; the ends of its history."""
        limit = LONG if work.tell is not None else None
        listed = self._git(
            folder, "rev-list", "--all", "--reflog", "--parents", env=env, timeout=limit
        )
        if listed.status != 0:
            raise _unreadable(folder)
        lines = [line.split(" ") for line in listed.stdout.splitlines()]
        ends = {line[0] for line in lines} - {one for line in lines for one in line[1:]}
        if not ends:
            return set()
        base = work.index.with_name("inner")
        words = (
            "pack-objects",
            "-q",
            "--revs",
            "--all",
            "--reflog",
            "--indexed-objects",
            str(base),
        )
        packed = self._git(folder, *words, env=env, timeout=limit, on_progress=work.tell)
        if packed.status != 0:
            raise _unreadable(folder)
        pack = base.with_name(f"inner-{packed.stdout.strip()}.pack")
        self._ask(replace(work, folder=repo), "index-pack", "--stdin", given=pack)
        pack.unlink()
        return ends

    def _empty(self, repo: Path, work: _Work) -> str:
        return self._ask(
            replace(work, folder=repo), "hash-object", "-t", "tree", "/dev/null"
        ).strip()

    def _add_hidden(self, work: _Work, placed: Collection[str]) -> None:
        """Take in what only lists of the whole repository ignore, and not the project's own files.

        Those lists are shared by all worktrees, so another run may have written them.
        """
        listed = self._ask(work, *OTHERS).split("\0")
        names = [name for name in listed if name and not name.endswith("/")]
        names = [name for name in names if name not in placed]
        if names:
            argv = ("add", "--force", "--pathspec-from-file={}", "--pathspec-file-nul")
            env = {**work.env, "GIT_LITERAL_PATHSPECS": "1"}
            self._given(replace(work, env=env), argv, names)

    def _given(self, work: _Work, argv: Sequence[str], names: Sequence[str]) -> None:
        """Run git on many names, which it reads from a file."""
        listed = work.index.with_name("names")
        # What is no UTF-8 was read with its bytes spelled out.
        raw = "".join(f"{name}\0" for name in names).encode()
        raw = re.sub(rb"\\x([0-9a-f]{2})", lambda one: bytes([int(one[1], 16)]), raw)
        listed.write_bytes(raw)
        self._ask(work, *(word.replace("{}", str(listed)) for word in argv), given=listed)

    def _ask(self, work: _Work, *argv: str, given: Path | None = None) -> str:
        done = self._run(work, *argv, given=given)
        if CLOSED_FOLDER in done.stderr and work.plain is not _AS_COMMITTED:
            done = self._run_opened(work, *argv, given=given)
        if done.status != 0 and "No space left" in done.stderr:
            raise SeamError("the disk is full, so nothing was stored. Make room first")
        if done.status != 0:
            raise failed(argv[0], done)
        return done.stdout

    def _run(self, work: _Work, *argv: str, given: Path | None = None) -> shell.Finished:
        return self._git(
            work.folder,
            *work.plain,
            *argv,
            index=work.index,
            env=work.env,
            given=given,
            looks_at_files=argv[0] in _READING or work.plain is _AS_COMMITTED,
            on_progress=work.tell,
            timeout=LONG if work.tell is not None else None,
        )

    def _run_opened(self, work: _Work, *argv: str, given: Path | None = None) -> shell.Finished:
        """Run git again once the folders that it could not read are opened: they may hold work."""
        folder = Path(work.env.get("GIT_WORK_TREE", work.folder))
        files.open_folders(folder)
        done = self._run(work, *argv, given=given)
        if CLOSED_FOLDER in done.stderr:
            named = re.search(rf"{CLOSED_FOLDER} '(.*?)/?'", done.stderr)
            raise UnremovableError(files.describe_closed(folder / named[1] if named else folder))
        return done

    def _staged(self, work: _Work) -> str:
        """The tree of what is staged; empty while a merge is unfinished, which no tree can hold."""
        done = self._git(work.folder, *work.plain, "write-tree", index=work.index, env=work.env)
        return done.stdout.strip() if done.status == 0 else ""

    def _begin(self, head: str, work: _Work) -> None:
        """A copy of the worktree's index knows what is unchanged, so only the rest is read.

        With its time: git trusts a file's size and time only when they are older than the index.
        """
        argv = ("rev-parse", "--absolute-git-dir")
        git_dir = self._git.ask(work.folder, *argv, timeout=QUICK).strip()
        try:
            shutil.copy2(Path(git_dir) / "index", work.index)
        except OSError:
            self._fresh(head, work)

    def _fresh(self, head: str, work: _Work) -> None:
        work.index.unlink(missing_ok=True)
        self._ask(work, "read-tree", head)

    def _tree(self, repo: Path, commit: str) -> str:
        text = self._git.ask(repo, "rev-parse", "--verify", f"{commit}^{{tree}}", timeout=QUICK)
        return text.strip()

    def _plain(self, folder: Path) -> tuple[str, ...]:
        """Settings under which no filter that a repository names runs, and bytes stay as they are."""
        argv = ("config", "--name-only", "--get-regexp", r"^filter\..*")
        done = self._git(folder, *argv, timeout=QUICK)
        names = {line.rpartition(".")[0] for line in done.stdout.splitlines()}
        off = [
            f"{name}.{verb}=" for name in sorted(names) for verb in ("clean", "smudge", "process")
        ]
        off += [f"{name}.required=false" for name in sorted(names)]
        return (*_PLAIN, *(word for one in off for word in ("-c", one)))


def _but(names: Sequence[str]) -> list[str]:
    return [f":(top,exclude,literal){name}" for name in names]


def _links(listed: str) -> list[str]:
    """The submodules in a list of an index."""
    parts = (line.partition("\t") for line in listed.split("\0"))
    return [name for about, _, name in parts if about.startswith(_SUBMODULE)]


def _unreadable(folder: Path) -> SeamError:
    return SeamError(
        f"{folder} is a repository of its own that git cannot read whole, so a rescue cannot hold "
        "it. Move it away or remove it, then try again"
    )


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="labsite-") as folder:
        yield Path(folder)


@contextlib.contextmanager
def _quarantine(repo: Path) -> Iterator[Path]:
    """A place for new objects, which become the repository's at the end; without one, nothing does.

    What a killed storing left is removed first, and what a killed git left long ago.
    """
    objects = repo / "objects"
    try:
        with files.private_folder(objects, QUARANTINE) as fresh:
            _remove_old_leftovers(objects, fresh.stat().st_mtime)
            yield fresh
            _take_in(fresh, objects)
    except OSError as error:
        raise SeamError(f"{objects} cannot be written: {error.strerror}") from error


def _remove_old_leftovers(objects: Path, now: float) -> None:
    """Remove files that a killed git left; a young one may be of a git that is at work."""
    for old in (*objects.glob("pack/tmp_*"), *objects.glob("??/tmp_obj_*")):
        with contextlib.suppress(FileNotFoundError):
            if now - old.stat().st_mtime > DEAD_SECONDS:
                old.unlink()


def _take_in(fresh: Path, objects: Path) -> None:
    """Give each object its place; one that is there already is the same."""
    found = [path for path in fresh.rglob("*") if path.is_file() and "tmp_" not in path.name]
    packs = [path for path in found if path.parent.name == "pack"]
    loose = [path for path in found if len(path.parent.name) == 2]
    order = sorted(
        (path for path in packs if path.suffix in _SUFFIXES),
        key=lambda path: _SUFFIXES.index(path.suffix),
    )
    for path in (*loose, *order):
        place = objects / path.relative_to(fresh)
        place.parent.mkdir(exist_ok=True)
        if not place.exists():
            path.rename(place)


def _size(folder: Path) -> int:
    """Bytes of a file, or of all below a folder; files come and go meanwhile."""
    size = 0
    for at, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                size += (Path(at) / name).lstat().st_size
    with contextlib.suppress(OSError):
        return size + folder.lstat().st_size
    return size
