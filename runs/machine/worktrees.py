"""What git says about one worktree: clean or not, what changed, how far it came."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from runs.core.history_ports import EMPTY_TREE, Change, Commit
from runs.core.ports import INCLUDE, Progress, SeamError, UnfitFileError
from runs.guard.shared_files import SharedFiles
from runs.machine import files, listing, shell, worktree_links
from runs.machine.branches import GitKept
from runs.machine.files import read_small
from runs.machine.git import CHECKOUT, QUICK, failed
from runs.machine.merges import GitMerges
from runs.machine.repos import GitRepos
from runs.machine.rescues import GitRescues
from runs.machine.run_repositories import ORIGIN

REF_BYTES = 200
LIST_BYTES = 4_000_000
UNTRACKED_BYTES = 400_000
_UNTRACKED_LIMIT = _INCLUDED_LIMIT = 200
# What a repository's own settings could change in a diff is said here, and it runs no program.
_CAREFUL = (
    *("--no-ext-diff", "--no-textconv", "--no-color", "--no-relative", "--no-abbrev"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--inter-hunk-context=0"),
    *("--submodule=short", "--find-renames=50%", "-l400", "-O/dev/null", "--no-indent-heuristic"),
    *("--diff-algorithm=default", "--ignore-submodules=none", "--ws-error-highlight=none"),
)
_LIST = ("--raw", "--numstat", "-z")
_PATCH = ("--patch", "--unified=3")  # with --unified a list would get the whole patch as well
_EXCLUDE = "info/exclude"
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_LFS_PATTERN = re.compile(r"[,*?\[\]\\]")
_NAMES_BYTES = 100_000  # as one argument they have to be shorter than 128 KiB


class GitWorktrees(GitRescues, GitKept, GitMerges, SharedFiles, GitRepos):
    """`Repos` complete: reference repositories, worktrees, kept work."""

    def is_dirty(self, path: Path) -> bool:
        return self._changes_in(path)

    def has_lfs(self) -> bool | None:
        """Without the filters of the user's own settings, labsite would see each such file as changed."""
        clean = ("config", "--get", "filter.lfs.clean")
        try:
            return all(
                self._git(Path("/"), *argv, timeout=QUICK).status == 0
                for argv in (("lfs", "version"), clean)
            )
        except SeamError:
            return None

    def fetch_large_files(
        self, path: Path, folders: Sequence[str], token: str = "", place: str = ""
    ) -> None:
        """Its hooks go with them: without one, a push has the names of large files and not these."""
        names = self._large_files(path, folders) if folders else []
        only = [f"--include={','.join(names)}"] if names else []
        if only or not folders:  # no name at all would have Git LFS fetch everything
            env = {"LAB_GIT_PLACE": place}
            done = self._git(path, "lfs", "pull", *only, token=token, timeout=CHECKOUT, env=env)
            if done.status != 0:
                raise failed("lfs pull", done, token)
        hooks = ("-c", f"core.hooksPath={path / '.git/hooks'}")
        if (path / ".git").is_dir():
            self._git(path, *hooks, "lfs", "update", timeout=QUICK)
        worktree_links.mark_fetched(path)

    def _large_files(self, path: Path, folders: Sequence[str]) -> list[str]:
        """Those that are checked out, which Git LFS itself does not look at; else the folders' own."""
        listed = self._git(
            path, "lfs", "ls-files", "--name-only", timeout=QUICK, limit=_NAMES_BYTES
        )
        names = [one for one in listed.stdout.splitlines() if (path / one).is_file()]
        if listed.status != 0 or listed.is_cut or any(_LFS_PATTERN.search(one) for one in names):
            return [f"{one}/**" for one in folders]
        return names

    def holds_submodule_work(self, repo: Path, path: Path) -> bool:
        """What cannot be read counts as work. An ignored file in a submodule does not, as elsewhere."""
        admin = worktree_links.admin_of(repo, path)
        if admin is None:
            return False
        try:
            modules = {own.resolve(): "" for own in _module_folders(admin / "modules")}
            for one, commit in self._checked_out(path, worktree_links.made_at(admin)):
                if (one / ".git").is_dir() or self._changes_in(one):
                    return True
                own = self._git.ask(one, "rev-parse", "--absolute-git-dir", timeout=QUICK).strip()
                if Path(own).resolve() not in modules:
                    return True
                modules[Path(own).resolve()] = commit
            return any(self._is_unpushed(own, commit) for own, commit in modules.items())
        except (SeamError, OSError):
            return True

    def _checked_out(self, path: Path, commit: str) -> Iterator[tuple[Path, str]]:
        """Yield each submodule, theirs too, with the commit of it that a commit around it records."""
        for name in self._submodules(path):
            argv = ("rev-parse", "--verify", "-q", f"{commit}:{name}")
            recorded = self._git(path, *argv, timeout=QUICK).stdout.strip() if commit else ""
            yield path / name, recorded
            yield from self._checked_out(path / name, recorded)

    def _is_unpushed(self, own: Path, cloned: str) -> bool:
        """Whether a submodule's repository has commits or stashes that its origin was not seen to have.

        Tags are left out, since one that was fetched cannot be told from one that was made here.
        `cloned`: the commit on which it was when it was cloned, of which origin may have only a tag.
        """
        argv = ("rev-list", "-n1", "HEAD", "--exclude=refs/tags/*", "--all", "--not", "--remotes")
        for known in ((), (cloned,)) if cloned else ((),):
            done = self._git(own, *argv, *known, env={"GIT_DIR": str(own)}, timeout=QUICK)
            if done.status == 0 and not done.stdout.strip():
                return False
        return True

    def remove_worktree(self, repo: Path, path: Path) -> None:
        """git removes a linked worktree with submodules only by force, so what it checks is checked here."""
        admin = worktree_links.admin_of(repo, path) if path.exists() else None
        is_own = admin is not None and worktree_links.note_of(repo, path) is not None
        if admin is None or not ((admin / "modules").is_dir() or self._submodules(path)):
            super().remove_worktree(repo, path)
            return
        if self.holds_submodule_work(repo, path):
            raise SeamError(f"{path} has a submodule with work that its origin does not have")
        if is_own:
            super().remove_worktree(repo, path)
            return
        if self._changes_in(path):
            raise SeamError(f"{path} contains modified or untracked files")
        self.force_remove(repo, path)

    def is_kept_by(self, repo: Path, path: Path, branch: str) -> bool:
        """Exit 0: the branch holds the worktree's head; 1: commits would be lost; else unknown.

        In an own repository everything counts that only it has: other branches, stashes.
        """
        ref, head = f"refs/heads/{branch}", "HEAD"
        place = path
        if worktree_links.admin_of(repo, path) == path / ".git":
            self._bring(repo, ref)
            if self._lost(repo, path).ends:
                return False
            head, place = self.standing(repo, path).head, repo
        done = self._git(place, "merge-base", "--is-ancestor", head, ref, timeout=QUICK)
        if done.status in (0, 1):
            return done.status == 0
        raise failed("merge-base", done)

    def forward(self, repo: Path, path: Path, branch: str) -> bool:
        """By `reset --keep`, which overwrites no change and asks for no signature, as a merge may."""
        here = self.tip(repo, f"refs/heads/{branch}")
        there = self.tip(repo, f"refs/remotes/origin/{branch}")
        if here is None or there in (None, here) or self.standing(repo, path).branch != branch:
            return False
        held = self._git(repo, "merge-base", "--is-ancestor", here, str(there), timeout=QUICK)
        if held.status != 0 or self.is_dirty(path):
            return False
        argv = ("reset", "-q", "--keep", "--no-recurse-submodules", str(there), "--")
        done = self._git(path, *argv, looks_at_files=True)
        if done.status != 0:
            raise failed("reset", done)
        with contextlib.suppress(OSError):
            worktree_links.mark_unfetched(path)
        self._freshen(repo, path)
        self._bring(repo, f"refs/heads/{branch}")
        return True

    def switch(self, repo: Path, path: Path, branch: str, commit: str, *, clean: bool) -> bool:
        """What was begun and not ended, as a rebase, is dropped: it is none of the next branch's."""
        if clean:
            for act in ("rebase", "am", "cherry-pick", "revert"):
                self._git(path, act, "--quit", timeout=QUICK)
            reset = ("reset", "-q", "--hard", "--no-recurse-submodules")
            self._git.ask(path, *reset, looks_at_files=True)
            self._git.ask(path, "clean", "-q", "-ffd", looks_at_files=True)
        self._freshen(repo, path)
        if worktree_links.admin_of(repo, path) == path / ".git":
            pushed = self._commit_of(repo, f"{ORIGIN}{branch}") or ""
            worktree_links.write_claim(repo, branch, path, pushed)
        is_fresh = self._check_out(path, branch, commit, clean=clean)
        self._bring(repo, f"refs/heads/{branch}")
        return is_fresh

    def _check_out(self, path: Path, branch: str, commit: str, *, clean: bool) -> bool:
        argv = ("checkout", "-q", "--no-track", "--no-recurse-submodules", "-B", branch)
        done = self._git(path, *argv, commit, "--", looks_at_files=True)
        if done.status != 0 and not clean:
            again = self._git(path, *argv, "HEAD", "--", looks_at_files=True)
            if again.status == 0:
                return False
        if done.status != 0:
            raise failed("checkout", done)
        return True

    def glimpse(self, repo: Path, branch: str) -> str | None:
        """A loose ref is one small file; a packed one reads as None, which only costs a later look.

        Of an own repository it is its file, so that nothing is taken over for a glimpse.
        """
        path = worktree_links.place_of(repo, branch)
        is_own = path is not None and worktree_links.admin_of(repo, path) is not None
        folder = path / ".git" if path is not None and is_own else repo
        text = (read_small(folder / "refs" / "heads" / branch, REF_BYTES) or "").strip()
        return text if _COMMIT.fullmatch(text) else None

    def subject(self, path: Path, commit: str) -> str:
        text = self._git.ask(path, "log", "-1", "--format=%s", commit, "--", timeout=QUICK)
        return listing.short(text.strip())

    def progress(self, path: Path, fork_point: str) -> Progress:
        head = self._git.ask(path, "rev-parse", "HEAD", timeout=QUICK).strip()
        count = self._git.ask(path, "rev-list", "--count", f"{fork_point}..HEAD", timeout=QUICK)
        return Progress(head, int(count))

    def changes(self, path: Path, fork_point: str, head: str = "") -> Sequence[Change]:
        found = listing.read(self._diff(path, fork_point, head, *_LIST, limit=LIST_BYTES))
        if head:
            return found
        is_open = self._uncommitted(path)
        left = self._left(path, UNTRACKED_BYTES)
        return [
            *(replace(one, is_open=is_open is None or one.path in is_open) for one in found),
            *(listing.untracked(name, text) for name, text in left),
        ]

    def patch(self, path: Path, fork_point: str, limit: int, head: str = "") -> str:
        done = self._diff(path, fork_point, head, *_PATCH, limit=limit)
        if head or done.is_cut:
            return _cut(done.stdout) if done.is_cut else done.stdout
        left = self._left(path, limit - len(done.stdout))
        return done.stdout + "".join(listing.added(name, text) for name, text in left if text)

    def patch_of(self, repo: Path, change: Change, limit: int) -> str:
        """By the ids of the contents: no file's name is handed to git, and nothing can be stale."""
        old, new = (
            _content(change.old_mode, change.old_id),
            _content(change.new_mode, change.new_id),
        )
        if not (old or new):
            return ""
        argv: tuple[str, ...]
        if old and new:
            argv = ("diff", *_CAREFUL, *_PATCH, old, new)
        else:
            argv = ("cat-file", "blob", old or new)
        done = self._git(repo, *argv, timeout=QUICK, limit=limit)
        if done.status != 0:
            raise failed(argv[0], done)
        text = done.stdout if old and new else listing.whole(done.stdout, is_new=bool(new))
        return listing.mended(text) if done.is_cut else text

    def commits(self, repo: Path, base: str, head: str, limit: int) -> Sequence[Commit]:
        ends = (head,) if base == EMPTY_TREE else (f"{base}..{head}",)
        done = self._git(
            repo,
            *("log", f"--max-count={limit}", f"--format={listing.COMMIT_FORMAT}", "-z"),
            *("--no-mailmap", "--encoding=UTF-8", "--no-show-signature", *ends, "--"),
            timeout=QUICK,
            limit=LIST_BYTES,
        )
        if done.status != 0:
            raise failed("log", done)
        return listing.read_commits(done.stdout)

    def texts(self, repo: Path, commit: str, names: Sequence[str], limit: int) -> Mapping[str, str]:
        """By the ids of their contents: nothing that a repository names is taken for an option."""
        argv = ("ls-tree", "-z", f"{commit}^{{commit}}")
        listed = self._git(repo, *argv, timeout=QUICK, limit=LIST_BYTES)
        if listed.status != 0:
            raise failed("ls-tree", listed)
        found = {}
        for entry in listed.stdout.split("\0"):
            about, _, name = entry.partition("\t")
            if name not in names or not about.startswith("100"):
                continue
            done = self._git(repo, "cat-file", "blob", about.split()[2], timeout=QUICK, limit=limit)
            if done.status != 0:
                raise failed("cat-file", done)
            found[name] = done.stdout
        return found

    def tips(self, repo: Path, refs: Sequence[str]) -> Mapping[str, str]:
        for ref in refs:
            self._bring(repo, ref)
        text = self._git.ask(
            repo, "for-each-ref", "--format=%(objectname) %(refname)", *refs, timeout=QUICK
        )
        pairs = (line.split(" ", 1) for line in text.splitlines())
        return {name: commit for commit, name in pairs if name in refs}

    def _diff(
        self, path: Path, fork_point: str, head: str, *flags: str, limit: int | None = None
    ) -> shell.Finished:
        """One `git diff`: from the fork point to a commit, or to the working copy."""
        ends = (fork_point, head) if fork_point == EMPTY_TREE else (f"{fork_point}...{head}",)
        done = self._git(
            path,
            *("diff", *_CAREFUL, *flags, *(ends if head else (fork_point,)), "--"),
            timeout=QUICK,
            limit=limit,
            looks_at_files=not head,
        )
        if done.status != 0:
            raise failed("diff", done)
        return done

    def _uncommitted(self, path: Path) -> set[str] | None:
        """The tracked files that differ from the last commit; None for no commit that can be read."""
        try:
            done = self._diff(path, "HEAD", "", "--name-only", "-z", limit=LIST_BYTES)
        except SeamError:
            return None
        return set(done.stdout.split("\0"))

    def _left(self, path: Path, room: int) -> Iterator[tuple[str, str | None]]:
        """Untracked files with their text; None for what is not text or does not fit any more."""
        for name in self._untracked(path):
            text = read_small(path / name, max(0, room))
            is_text = text is not None and "\0" not in text
            room -= len(text or "")
            yield name, text if is_text else None

    def _untracked(self, path: Path) -> list[str]:
        return self._others(path)[:_UNTRACKED_LIMIT]

    def place_files(
        self, repo: Path, path: Path, contents: Mapping[str, str], *, is_again: bool = False
    ) -> None:
        """First the note, so that what a killed worker wrote is nobody's work and no secret is kept."""
        try:
            if contents:
                self._place(repo, path, contents, is_again=is_again)
            elif (repo / worktree_links.PLACED).is_dir():
                self._ignore_placed(repo, path)  # those of before are ignored no more
        except OSError as error:
            if files.is_full(path):
                raise SeamError("the disk is full; the set-up's files were not written") from error
            raise SeamError(f"{path} cannot be written: {error.strerror}") from error

    def _place(
        self, repo: Path, path: Path, contents: Mapping[str, str], *, is_again: bool
    ) -> None:
        before = worktree_links.placed_in(repo, path)
        left_alone = {name for name in contents if os.path.lexists(path / name)}
        if not before.is_done:
            left_alone -= before.names
        if is_again:  # an agent may have made, committed or replaced any of them since
            left_alone |= self._find_tracked(path, contents.keys() - left_alone).keys()
            contents = {name: text for name, text in contents.items() if name not in left_alone}
        _refuse_unfit(path, contents)
        if not is_again:
            for why in self._find_tracked(path, contents).values():
                raise UnfitFileError(f"{why}; not overwritten")
        new = {name: text for name, text in contents.items() if name not in left_alone}
        if not new:
            return
        making = replace(before, names=before.names | new.keys(), is_done=False)
        worktree_links.write_placed(repo, making)
        written: set[str] = set()
        try:
            self._ignore_placed(repo, path)
            self._refuse_unignored(path, new)
            for name, text in new.items():
                files.write_inside(path, name, text)
                written.add(name)
        except (SeamError, OSError):
            # What an agent makes where none was written is its work.
            with contextlib.suppress(OSError):
                worktree_links.write_placed(repo, replace(before, names=before.names | written))
                self._ignore_placed(repo, path)
            raise
        worktree_links.write_placed(repo, replace(making, is_done=True))

    def _find_tracked(self, path: Path, names: Collection[str]) -> Mapping[str, str]:
        """Return which of these names git has files of its own at, and what it has there."""
        if not names:
            return {}
        argv = ("ls-files", "-z", "--", *(f":(top,literal){name}" for name in sorted(names)))
        tracked = set(self._git.ask(path, *argv, timeout=QUICK).split("\0"))
        found = {name: f"{name} is tracked by git" for name in sorted(names) if name in tracked}
        for name in sorted(set(names) - found.keys()):
            if any(one.startswith(f"{name}/") for one in tracked):
                found[name] = f"{name} is a folder that git tracks"
        return found

    def _ignore_placed(self, repo: Path, path: Path) -> None:
        """Have git ignore what is placed, in linked worktrees for all that share the list."""
        own = worktree_links.own_git(path)
        with files.locked(repo / worktree_links.PLACED / ".lock"):
            placed = [worktree_links.placed_in(repo, path)]
            if own is None:
                placed = worktree_links.all_placed(repo)
            names = sorted({name for one in placed for name in one.names})
            text = read_small((own or repo) / _EXCLUDE, LIST_BYTES) or ""
            wanted = listing.ignoring(text, names)
            if wanted != text:
                # In one step: agents in other worktrees commit meanwhile.
                files.replace_inside(own or repo, _EXCLUDE, wanted)

    def _refuse_unignored(self, path: Path, names: Collection[str]) -> None:
        """What a .gitignore file takes out of the list again would get into the agent's commits."""
        try:
            ignored = self._ignored(path, names)
        except SeamError as error:
            raise UnfitFileError(f"{error}; nothing was written") from error
        for name in sorted(set(names) - ignored):
            raise UnfitFileError(
                f"{name} is not ignored by git, since a .gitignore file of the repository says so; "
                "nothing was written, because an agent could commit it"
            )

    def _ignored(self, path: Path, names: Collection[str]) -> set[str]:
        with tempfile.TemporaryDirectory(prefix="labsite-") as folder:
            given = Path(folder) / "names"
            # With ./ a colon at the beginning of a name means nothing to git.
            given.write_text("".join(f"./{name}\0" for name in names))
            done = self._git(path, "check-ignore", "-z", "--stdin", given=given, timeout=QUICK)
        if done.status not in (0, 1):
            raise failed("check-ignore", done)
        return {name.removeprefix("./") for name in done.stdout.split("\0")}

    def included(self, checkout: Path, limit: int) -> Mapping[str, str | None]:
        if read_small(checkout / INCLUDE, LIST_BYTES) is None:
            return {}
        argv = ("ls-files", "--others", "--ignored", f"--exclude-from={INCLUDE}", "-z")
        done = self._git(checkout, *argv, timeout=QUICK, limit=LIST_BYTES)
        if done.status != 0:
            raise failed("ls-files", done)
        listed = [name for name in done.stdout.split("\0")[:-1] if not name.endswith("/")]
        ignored = self._ignored(checkout, listed) if listed else set[str]()
        names = sorted(ignored.intersection(listed))[:_INCLUDED_LIMIT]
        return {name: read_small(checkout / name, limit) for name in names}


def _refuse_unfit(path: Path, names: Collection[str]) -> None:
    for name in sorted(names):
        if why := _why_unfit(path, name):
            raise UnfitFileError(f"{name} cannot be written: {why}; nothing was written")


def _why_unfit(path: Path, name: str) -> str:
    """Return what stands in the way of a file in a worktree; empty for nothing."""
    for parent in (path / name).parents:
        if parent == path:
            break
        if parent.is_symlink():
            return f"{parent.relative_to(path)} is a link, which may lead elsewhere"
        if parent.exists() and not parent.is_dir():
            return f"{parent.relative_to(path)} is a file"
    return f"{name} is a folder" if (path / name).is_dir() else ""


def _cut(patch: str) -> str:
    """Whole files only, so that what is left is still a patch."""
    end = patch.rfind("\ndiff --git ")
    return patch[: end + 1] if end > 0 else ""


def _content(mode: str, ident: str) -> str:
    """The id of a side's content, '' for one that has none: missing, not stored, or a submodule."""
    has_none = not ident.strip("0") or mode == listing.SUBMODULE
    return "" if has_none else ident


def _module_folders(modules: Path) -> Iterator[Path]:
    """The repositories of submodules, and of theirs; their names may hold slashes."""
    if not modules.is_dir():
        return
    for folder in sorted(modules.iterdir()):
        if (folder / "HEAD").exists() and (folder / "objects").is_dir():
            yield folder
            yield from _module_folders(folder / "modules")
        elif folder.is_dir() and not folder.is_symlink():
            yield from _module_folders(folder)
