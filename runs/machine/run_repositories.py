"""A run's own repository: a `.git` folder in its worktree that borrows the objects of the shared one.

Settings, hooks, refs, stashes and objects that an agent makes are its own. The shared repository
holds the branch, which is the claim, and is brought up to date from here whenever it is asked for
it. What is taken over is read with none of the agent's settings: its objects are listed and packed
in an empty repository, and checked when they are taken in.
"""

from __future__ import annotations

import contextlib
import logging
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from runs.core.ports import SeamError, Taken
from runs.machine import files, worktree_links
from runs.machine.git import CHECKOUT, QUICK, Git, failed
from runs.machine.listing import SUBMODULE

logger = logging.getLogger(__name__)

TAGS = "refs/labsite/tags/"  # origin's; a tag under its own name is somebody's work
LENT = "refs/labsite/lent/"  # what is checked out for a while, on no branch
_LONG = 64
_TRIES = 3
_LISTED = ("for-each-ref", "--format=%(objectname) %(refname)")
HEADS, ORIGIN = "refs/heads/", "refs/remotes/origin/"
LASTING = (HEADS, "refs/remotes/", TAGS)  # unlike rescues, which are dropped one day
_FOLDERS = ("hooks", "info", "objects/info", "objects/pack", "refs/heads", "refs/tags")
_KNOWN = ("for-each-ref", "--format=^%(objectname)")
_SETTINGS = """\
[core]
	repositoryformatversion = {version}
	filemode = true
	bare = false
	logallrefupdates = true
{extension}[gc]
	auto = 0
[push]
	autoSetupRemote = true
[remote "origin"]
	url = "{url}"
	fetch = +refs/heads/*:refs/remotes/origin/*
"""
# A line of a .gitattributes file that is no comment. Each index but some of version 4 has the names
# of its files in full, so that a repository without such files takes no program.
_BY_LFS = "^[[:space:]]*[^#[:space:]].*[[:space:]]filter=lfs([[:space:]]|$)"
_ATTRIBUTES, _FULL_NAMES, _INDEX_BYTES = b".gitattributes\0", (2, 3), 32_000_000
_NO_LARGE_FILES = {"GIT_LFS_SKIP_SMUDGE": "1"}  # `fetch_large_files` brings them, with the token
_TRACKED = '[branch "{name}"]\n\tremote = origin\n\tmerge = "refs/heads/{name}"\n'
# In cone mode: git knows these patterns again, and reads them fast.
_SPARSE = "[core]\n\tsparseCheckout = true\n\tsparseCheckoutCone = true\n"
_SHA256 = "[extensions]\n\tobjectFormat = sha256\n"


@dataclass(frozen=True, slots=True)
class OriginFacts:
    """What a shared repository knows of origin: its address, and its refs as git lists them."""

    url: str
    refs: str

    def commit_of(self, branch: str) -> str:
        """Return where origin had a branch when it was fetched last; empty where it had none."""
        lines = (line.partition(" ") for line in self.refs.splitlines())
        return next((commit for commit, _, ref in lines if ref == f"{ORIGIN}{branch}"), "")


@dataclass(frozen=True, slots=True)
class Lost:
    """Commits that only a run's own repository has: the ends of their history, and their names."""

    ends: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)


class GitRunRepositories:
    """Makes runs' own repositories, and brings what they hold into the shared one."""

    _git: Git
    # What each shared repository calls origin, and the state of the file of settings that says so.
    _urls: dict[Path, tuple[tuple[int, int, int], str]]
    # False in tests that prove what versions before made: worktrees linked to the shared repository.
    # Those of both kinds are looked at, kept, restored and removed (decision 49).
    makes_own = True

    def _make_own(
        self,
        repo: Path,
        path: Path,
        commit: str,
        branch: str = "",
        folders: Sequence[str] | None = (),
        origin: Future[OriginFacts] | None = None,
    ) -> None:
        """Make an own repository at a commit, on a branch or on none, in a new folder.

        `folders`: what is checked out beside the files at the top; empty: everything; None: nothing.
        `origin`: what is to be known of it, where that is being read already.
        Raises Taken when the folder is there, and SeamError for all else; then half of it may be
        there, which its note says.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir()
        except FileExistsError as error:
            raise Taken(f"the folder {path} is there already") from error
        except OSError as error:
            raise SeamError(f"{path} cannot be made: {error.strerror}") from error
        try:
            worktree_links.forget_placed(repo, path)
            name = worktree_links.write_note(repo, path, is_made=False)
            _make_folders(path / ".git")
            known = origin.result() if origin is not None else self._read_origin(repo)
            if branch:
                worktree_links.write_claim(repo, branch, path, known.commit_of(branch))
            _lay_git(repo, path / ".git", commit, branch, known)
            _leave_out_others(path / ".git", folders or ())
            (path / ".git" / worktree_links.MARK).write_text(f"{name}\n")
            worktree_links.mark_unfetched(path)
            if folders is not None:
                argv = ("reset", "-q", "--hard", "--no-recurse-submodules")
                done = self._git(path, *argv, timeout=CHECKOUT, env=_NO_LARGE_FILES)
                if done.status != 0 and files.is_full(path):
                    raise SeamError(f"the disk is full. {failed('reset', done)}")
                if done.status != 0:
                    raise failed("reset", done)
            worktree_links.write_note(repo, path, is_made=True)
        except OSError as error:
            raise SeamError(f"{path} cannot be written: {error.strerror}") from error

    def _add_own(
        self, repo: Path, path: Path, branch: str, commit: str, folders: Sequence[str]
    ) -> None:
        """First the branch, of which git makes one only where there is none: that is the claim.

        What the own repository is told of origin is read beside that.
        """
        beside = ThreadPoolExecutor(1, "origin")
        origin = beside.submit(self._read_origin, repo)
        beside.shutdown(wait=False)
        self._claim(repo, path, branch, commit)
        ref = f"refs/heads/{branch}"
        try:
            self._make_own(repo, path, commit, branch, folders, origin)
        except Taken as error:
            self._git.ask(repo, "update-ref", "-d", ref, commit, timeout=QUICK)
            raise Taken(taken(path, branch)) from error

    def _claim(self, repo: Path, path: Path, branch: str, commit: str) -> None:
        """Make a branch that must not be there. Raises Taken, SeamError."""
        ref = f"refs/heads/{branch}"
        made = self._git(repo, "update-ref", ref, commit, "0" * len(commit), timeout=QUICK)
        if made.status == 0:
            return
        if self._commit_of(repo, ref):
            raise Taken(taken(path, branch))
        if files.is_full(repo):  # git only says which file it could not write
            raise SeamError(f"the disk is full. {failed('update-ref', made)}")
        raise failed("update-ref", made)

    def lacks_large_files(self, path: Path) -> bool:
        """See LargeFiles. Where there are none nobody looks again: an agent's own are there."""
        if not worktree_links.is_unfetched(path):
            return False
        if not _may_have_attributes(path / ".git"):
            worktree_links.mark_fetched(path)
            return False
        argv = ("grep", "--cached", "-q", "-a", "--no-recurse-submodules", "-E", "-e", _BY_LFS)
        done = self._git(path, *argv, "--", ":(top,glob)**/.gitattributes", timeout=QUICK)
        if done.status not in (0, 1):  # 1: there is none
            raise failed("grep", done)
        if done.status == 1:
            worktree_links.mark_fetched(path)
        return done.status == 0

    def _read_origin(self, repo: Path) -> OriginFacts:
        """Ask a shared repository what it knows of origin. Raises SeamError."""
        with ThreadPoolExecutor(1, "origin-url") as beside:
            url = beside.submit(self._read_url, repo)
            refs = self._git.ask(repo, *_LISTED, "refs/remotes/origin/", TAGS, timeout=QUICK)
            return OriginFacts(url.result(), refs)

    def _read_url(self, repo: Path) -> str:
        """Return what a shared repository calls origin; git is asked once for each state of its settings."""
        try:
            facts = (repo / "config").stat()
        except OSError as error:
            raise SeamError(f"{repo} cannot be read: {error.strerror}") from error
        state = (facts.st_ino, facts.st_mtime_ns, facts.st_size)
        known = self._urls.get(repo)
        if known is not None and known[0] == state:
            return known[1]
        done = self._git(repo, "config", "--get", "remote.origin.url", timeout=QUICK)
        if done.status not in (0, 1):  # 1: it has none
            raise failed("config", done)
        url = done.stdout.removesuffix("\n")
        self._urls[repo] = (state, url)
        return url

    def _erase(self, repo: Path, path: Path) -> None:
        """Remove an own repository with its files and its notes. Raises SeamError."""
        files.remove_tree(path)
        try:
            worktree_links.forget(repo, path)
        except OSError as error:
            raise SeamError(f"{repo} cannot be written: {error.strerror}") from error

    def _freshen(self, repo: Path, path: Path) -> None:
        """Let an own repository name origin's branches and tags as the shared one has them."""
        own = path / ".git"
        if worktree_links.admin_of(repo, path) != own:
            return
        listed = self._git.ask(repo, *_LISTED, "refs/remotes/origin/", TAGS, timeout=QUICK)
        wanted = (
            line.replace(f" {TAGS}", " refs/tags/").split(" ") for line in listed.splitlines()
        )
        with tempfile.TemporaryDirectory(prefix="labsite-") as name:
            given = Path(name) / "orders"
            given.write_text(
                "".join(
                    f"update {ref} {commit}\n"
                    for commit, ref in wanted
                    if worktree_links.ref_in_files(own, ref) != commit
                )
            )
            done = self._git(path, "update-ref", "--no-deref", "--stdin", given=given)
        if done.status != 0:  # it only lacks news
            logger.info("refs of origin are of before", extra={"error": done.stderr[:300]})

    def _bring(self, repo: Path, ref: str) -> None:
        """Have a branch of the shared repository stand where its run has it. Raises SeamError.

        Two small files tell that nothing is to do. One that the run renamed or deleted stays.
        """
        branch = ref.removeprefix(HEADS).removeprefix(ORIGIN)
        claim = worktree_links.claim_of(repo, branch) if branch != ref else None
        if claim is None or worktree_links.admin_of(repo, path := claim[0]) is None:
            return
        brought = self._bring_ref(repo, path, f"{HEADS}{branch}")
        pushed = worktree_links.ref_in_files(path / ".git", f"{ORIGIN}{branch}")
        if pushed and pushed not in (claim[1], worktree_links.UNSURE):
            # The run has pushed or fetched it since. What is fetched here later counts again.
            self._bring_ref(repo, path, f"{ORIGIN}{branch}", brought)
            worktree_links.write_claim(repo, branch, path, pushed)

    def _bring_ref(self, repo: Path, path: Path, ref: str, known: str | None = None) -> str | None:
        """Have a ref of the shared repository stand where the own one has it; return its commit.

        `known`: a commit that the shared one is known to hold, with its history.
        """
        for _ in range(_TRIES):
            there = self._commit_of(path / ".git", ref)
            here = self._commit_of(repo, ref)
            if there is None or there == here:
                return here
            if there != known:
                self._take(repo, path, [there])
            moved = self._git(
                repo, "update-ref", ref, there, here or "0" * len(there), timeout=QUICK
            )
            if moved.status == 0:
                return there
        raise failed("update-ref", moved)

    def _bring_all(self, repo: Path, prefixes: Sequence[str] = ("",)) -> None:
        """The same for each branch of these prefixes; one that cannot be read stays as it was."""
        for branch in worktree_links.held_branches(repo):
            if branch.startswith(tuple(prefixes)):
                try:
                    self._bring(repo, f"refs/heads/{branch}")
                except SeamError as error:
                    logger.warning("a branch is not up to date", extra={"error": str(error)})

    def _bring_of(self, repo: Path, path: Path) -> None:
        """The same for each branch of one own repository. Raises SeamError."""
        for branch, _ in worktree_links.claims_of(repo, path):
            self._bring(repo, f"{HEADS}{branch}")

    def take_in(self, repo: Path, path: Path, more: Collection[str] = ()) -> None:
        """Have the shared repository hold all that an own one names and has staged, and `more` of it.

        Raises SeamError.
        """
        self._bring_of(repo, path)
        named = worktree_links.named_in(path / ".git")
        wanted = {*(named or {}).values(), *self._staged_in(path), *more}
        if wanted:
            self._take(repo, path, sorted(wanted))

    def own_refs(self, path: Path) -> Mapping[str, str]:
        """See Repos."""
        if worktree_links.own_git(path) is None:
            return {}
        listed = self._git.ask(path, *_LISTED, HEADS, ORIGIN, timeout=QUICK)
        words = (line.partition(" ") for line in listed.splitlines())
        head = self._git(path, "rev-parse", "--verify", "-q", "HEAD", timeout=QUICK).stdout.strip()
        return {ref: commit for commit, _, ref in words} | ({"HEAD": head} if head else {})

    def _staged_in(self, path: Path) -> set[str]:
        """The contents that an index names; none where git cannot read it."""
        listed = self._git(path, "ls-files", "-s", "-z", timeout=QUICK).stdout
        entries = (line.partition("\t")[0].split(" ") for line in listed.split("\0") if line)
        return {entry[1] for entry in entries if entry[0] != SUBMODULE}

    def _commit_of(self, folder: Path, ref: str) -> str | None:
        """The commit of a ref, by its files where they tell."""
        found = worktree_links.ref_in_files(folder, ref)
        if found is not worktree_links.UNSURE:
            return found
        env = {"GIT_DIR": str(folder), "GIT_COMMON_DIR": str(folder)}
        done = self._git(folder, "rev-parse", "--verify", "-q", ref, env=env, timeout=QUICK)
        return done.stdout.strip() or None

    def _take(
        self,
        repo: Path,
        path: Path,
        commits: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> None:
        """Take in what an own repository has of these commits' history; contents may be among them.

        It is complete, or SeamError is raised: what is not here has to be there. `env` says where
        the objects go, else into the shared repository.
        """
        with self._neutral(repo, path, commits[0]) as (place, apart):
            given, base = place / "given", place / "pack"
            given.write_text("".join(f"{one}\n" for one in commits) + self._known(repo))
            argv = ("pack-objects", "-q", "--revs", "--delta-base-offset", "--non-empty")
            done = self._git(place, *argv, str(base), given=given, env=apart, timeout=timeout)
            if done.status != 0:
                raise _unreadable(path, "pack-objects", done.stderr)
            if not (pack := base.with_name(f"pack-{done.stdout.strip()}.pack")).exists():
                return
            taken = self._git(
                repo, "index-pack", "--stdin", given=pack, env=env or {}, timeout=timeout
            )
        if taken.status != 0:
            raise failed("index-pack", taken)

    def _lost(self, repo: Path, path: Path, refs: Sequence[str] = ()) -> Lost:
        """What of an own repository no ref of the shared one leads to. Raises SeamError.

        Commits that a branch, tag, stash or head names there count. `refs`: the refs that keep, else all.
        """
        names = worktree_links.named_in(path / ".git")
        if names is None:
            raise _unreadable(path, "refs", "")
        if not names:
            return Lost()
        with self._neutral(repo, path, next(iter(names.values()))) as (place, apart):
            given = place / "given"
            wanted = "".join(f"{one}\n" for one in sorted(set(names.values())))
            given.write_text(wanted + self._known(repo, refs))
            argv = ("rev-list", "--parents", "--stdin")
            done = self._git(place, *argv, given=given, env=apart, timeout=QUICK)
        if done.status != 0:
            raise _unreadable(path, "rev-list", done.stderr)
        lines = [line.split(" ") for line in done.stdout.splitlines()]
        found = {line[0] for line in lines}
        ends = found - {one for line in lines for one in line[1:]}
        own = {name: one for name, one in names.items() if one in found}
        return Lost(tuple(sorted(ends)), own)

    def _known(self, repo: Path, refs: Sequence[str] = ()) -> str:
        return self._git.ask(repo, *_KNOWN, *refs, timeout=QUICK)

    @contextlib.contextmanager
    def _neutral(
        self, repo: Path, path: Path, commit: str
    ) -> Iterator[tuple[Path, Mapping[str, str]]]:
        """An empty repository that reads the objects of an own one and of the shared one.

        Its own are in the same folder, since git renames a pack from there, on one disk only.
        """
        with tempfile.TemporaryDirectory(prefix="labsite-") as name:
            place = Path(name)
            (place / "refs").mkdir()
            (place / "objects").mkdir()
            (place / "HEAD").write_text("ref: refs/heads/none\n")
            if len(commit) == _LONG:
                (place / "config").write_text(f"[core]\n\trepositoryFormatVersion = 1\n{_SHA256}")
            yield (
                place,
                {
                    "GIT_DIR": name,
                    "GIT_OBJECT_DIRECTORY": str(place / "objects"),
                    "GIT_ALTERNATE_OBJECT_DIRECTORIES": f"{path / '.git/objects'}:{repo / 'objects'}",
                },
            )


def _make_folders(own: Path) -> None:
    """Make the folders of an empty repository. Raises OSError."""
    for name in _FOLDERS:
        (own / name).mkdir(parents=True)


def _lay_git(repo: Path, own: Path, commit: str, branch: str, origin: OriginFacts) -> None:
    """Write the few files of an empty repository into its folders, which takes no program."""
    is_long = len(commit) == _LONG
    text = _SETTINGS.format(
        version=int(is_long),
        extension=_SHA256 if is_long else "",
        url=_quoted(origin.url),
    )
    if branch and origin.commit_of(branch):
        text += _TRACKED.format(name=_quoted(branch))
    (own / "config").write_text(text)
    (own / "objects/info/alternates").write_text(f"{(repo / 'objects').resolve()}\n")
    (own / "packed-refs").write_text(
        "# pack-refs with: \n" + origin.refs.replace(f" {TAGS}", " refs/tags/")
    )
    (own / "HEAD").write_text(f"ref: refs/heads/{branch}\n" if branch else f"{commit}\n")
    if branch:
        ref = own / "refs/heads" / branch
        ref.parent.mkdir(parents=True, exist_ok=True)
        ref.write_text(f"{commit}\n")


def taken(path: Path, branch: str) -> str:
    """What stands in the way of a claim, and what to do about it."""
    if path.exists():
        return (
            f"the folder {path} is there already and may hold kept work, so it was left alone. "
            "Move it away or remove it, then start again"
        )
    return f"the branch {branch} is there already, so the issue is claimed"


def _quoted(text: str) -> str:
    """A text between quotation marks of git's settings."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _unreadable(path: Path, command: str, said: str) -> SeamError:
    told = f" (git {command}: {said.strip()[:300]})" if said.strip() else ""
    return SeamError(f"the repository of {path} cannot be read whole{told}")


def _may_have_attributes(own: Path) -> bool:
    """Return whether an index may name a .gitattributes file; one that cannot be told may."""
    index = files.read_piece(own / "index", 0, _INDEX_BYTES)
    if index is None or index.size > _INDEX_BYTES or any(own.glob("sharedindex.*")):
        return True
    is_full = int.from_bytes(index.data[4:8]) in _FULL_NAMES
    return not is_full or _ATTRIBUTES in index.data


def _leave_out_others(own: Path, folders: Sequence[str]) -> None:
    """Have git check out these folders and the files beside and above them alone; none: everything.

    Raises OSError.
    """
    if not folders:
        return
    with (own / "config").open("a") as config:
        config.write(_SPARSE)
    (own / "info/sparse-checkout").write_text("\n".join([*cone_of(folders), ""]))


def cone_of(folders: Sequence[str]) -> list[str]:
    """Return the patterns of cone mode for some folders, as `git sparse-checkout set` writes them."""
    wanted = {one for one in folders if not any(one.startswith(f"{two}/") for two in folders)}
    above = {
        "/".join(parts[:depth])
        for one in wanted
        for parts in [one.split("/")]
        for depth in range(1, len(parts))
    }
    parents = (line for one in sorted(above) for line in (f"/{one}/", f"!/{one}/*/"))
    return ["/*", "!/*/", *parents, *(f"/{one}/" for one in sorted(wanted))]
