"""Whether a worktree and its repository still name each other, read from git's small files alone.

git itself would look for a repository in the folders above, so it is not asked about a worktree
whose link an agent removed or replaced. There are two kinds. A linked worktree has a `.git` file
and is noted in `worktrees` of its repository, by git. A run's own repository is a `.git` folder
that borrows the objects of the shared one, which notes where it lies and whose branches it holds.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from runs.machine.files import read_piece, read_small

LINK_BYTES = 8000
NOTES, CLAIMS = "labsite-worktrees", "labsite-branches"  # folders of the shared repository
PLACED = "labsite-files"  # another one, with the names of files that labsite placed in worktrees
MARK = "labsite"  # a file of a run's own repository, with the name of its note
UNFETCHED = "labsite-large-files"  # a file beside it until those of Git LFS are fetched
MAKING = "making"  # the second line of a note until everything is checked out
UNSURE = "unsure"
STASHES = "stash-"  # and a number, the oldest first
_REF_BYTES, _PLACED_BYTES, _PACKED_BYTES = 200, 1_000_000, 20_000_000
_COMMIT_ID = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_NAME = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Placed:
    """The files that labsite placed in a worktree; until it is done, they may be incomplete."""

    path: Path
    names: frozenset[str] = frozenset()
    is_done: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    """What a shared repository knows of a run's own one."""

    file: Path
    path: Path
    is_made: bool


def admin_of(repo: Path, path: Path) -> Path | None:
    """The git folder of a worktree; None when it and the repository's notes do not name each other."""
    if own := own_git(path):
        found = _read_note(repo / NOTES / mark_of(own))
        return own if found is not None and found.path == place(path) else None
    target = _target(path / ".git")
    if target is None:
        return None
    try:
        admin = target.resolve()
        back = read_small(admin / "gitdir", LINK_BYTES)
        is_ours = back is not None and (
            admin.parent == (repo / "worktrees").resolve()
            and (admin / back.strip()).resolve() == path.resolve() / ".git"
        )
    except (OSError, ValueError, RuntimeError):
        return None
    return admin if is_ours else None


def made_at(admin: Path) -> str:
    """Return the commit at which a worktree was made, as its log says; empty where it says none."""
    piece = read_piece(admin / "logs" / "HEAD", 0, _REF_BYTES)
    words = piece.data.decode("utf-8", "replace").split(" ") if piece is not None else []
    return words[1] if len(words) > 1 and _COMMIT_ID.fullmatch(words[1]) else ""


def own_git(path: Path) -> Path | None:
    """The git folder of a run's own repository; None where there is none, or only a link to one."""
    own = path / ".git"
    try:
        is_folder = stat.S_ISDIR(own.lstat().st_mode)
    except (OSError, ValueError):
        return None
    return own if is_folder and mark_of(own) else None


def is_unfetched(path: Path) -> bool:
    """Return whether files of Git LFS may still be short texts in a worktree with an own repository."""
    own = own_git(path)
    return own is not None and os.path.lexists(own / UNFETCHED)


def mark_unfetched(path: Path) -> None:
    """Store that they may be. Raises OSError."""
    if own := own_git(path):
        os.close(os.open(own / UNFETCHED, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o600))


def mark_fetched(path: Path) -> None:
    """Store that none is; where that fails, they are only looked at once more."""
    if own := own_git(path):
        with contextlib.suppress(OSError):
            (own / UNFETCHED).unlink()


def environment(path: Path) -> Mapping[str, str]:
    """What has git take a run's own repository for what it is, whatever its settings say.

    They could call it bare, or name the files or the refs of somebody else for its own.
    """
    own = own_git(path)
    if own is None:
        return {}
    return {"GIT_DIR": str(own), "GIT_COMMON_DIR": str(own), "GIT_WORK_TREE": str(path)}


def note_of(repo: Path, path: Path) -> Note | None:
    """The note of the own repository that was made at a path, whatever has become of it."""
    found = _read_note(repo / NOTES / name_of(str(place(path))))
    return found if found is not None and found.path == place(path) else None


def write_note(repo: Path, path: Path, *, is_made: bool) -> str:
    """Note that a run's own repository lies at a path; the name of the note. Raises OSError."""
    name = name_of(str(place(path)))
    _write(repo / NOTES / name, f"{place(path)}\n{'' if is_made else MAKING}\n")
    return name


def move_note(note: Note, path: Path) -> None:
    """Note that an own repository lies elsewhere now. Raises OSError."""
    _write(note.file, f"{place(path)}\n\n")


def notes(repo: Path) -> list[Note]:
    """All notes of runs' own repositories, as far as they can be read."""
    found = (_read_note(file) for file in _inside(repo / NOTES))
    return [one for one in found if one is not None]


def place_of(repo: Path, branch: str) -> Path | None:
    """Where the own repository lies that holds a branch."""
    claim = claim_of(repo, branch)
    return claim[0] if claim else None


def claim_of(repo: Path, branch: str) -> tuple[Path, str] | None:
    """Where the own repository lies that holds a branch, and where it last said that origin has it."""
    lines = (read_small(repo / CLAIMS / name_of(branch), LINK_BYTES) or "").split("\n")
    return (Path(lines[0]), lines[2]) if len(lines) > 2 and lines[0] else None


def held_branches(repo: Path) -> list[str]:
    """The branches that runs hold in repositories of their own."""
    texts = (read_small(file, LINK_BYTES) for file in _inside(repo / CLAIMS))
    return [lines[1] for text in texts if text and len(lines := text.split("\n")) > 1]


def write_claim(repo: Path, branch: str, path: Path, pushed: str = "") -> None:
    """Note which own repository holds a branch, and where origin had it by that. Raises OSError."""
    _write(repo / CLAIMS / name_of(branch), f"{place(path)}\n{branch}\n{pushed}\n")


def claims_of(repo: Path, path: Path) -> list[tuple[str, str]]:
    """The branches that one own repository holds, each with where it last said that origin has it."""
    found = ((branch, claim_of(repo, branch)) for branch in held_branches(repo))
    return [(branch, one[1]) for branch, one in found if one and one[0] == place(path)]


def forget_claim(repo: Path, branch: str) -> None:
    """Let what an own repository makes of a branch count no more. Raises OSError."""
    (repo / CLAIMS / name_of(branch)).unlink(missing_ok=True)


def forget(repo: Path, path: Path) -> None:
    """Remove all notes of an own repository. Raises OSError."""
    for branch, _ in claims_of(repo, path):
        forget_claim(repo, branch)
    forget_placed(repo, path)
    if note := note_of(repo, path):
        note.file.unlink(missing_ok=True)


def placed_in(repo: Path, path: Path) -> Placed:
    """Return which files labsite placed in a worktree, as the shared repository notes it."""
    found = _read_placed(repo / PLACED / name_of(str(place(path))))
    return found if found is not None and found.path == place(path) else Placed(place(path))


def all_placed(repo: Path) -> list[Placed]:
    """Return the same of all worktrees that still exist."""
    found = (_read_placed(file) for file in _inside(repo / PLACED))
    return [one for one in found if one is not None and one.path.is_dir()]


def write_placed(repo: Path, placed: Placed) -> None:
    """Note which files labsite places in a worktree. Raises OSError."""
    lines = [str(placed.path), "" if placed.is_done else MAKING, *sorted(placed.names)]
    _write(repo / PLACED / name_of(str(placed.path)), "".join(f"{line}\n" for line in lines))


def forget_placed(repo: Path, path: Path) -> None:
    """Forget which files labsite placed at a path, where a new worktree is made. Raises OSError."""
    (repo / PLACED / name_of(str(place(path)))).unlink(missing_ok=True)


def _read_placed(file: Path) -> Placed | None:
    lines = (read_small(file, _PLACED_BYTES) or "").split("\n")
    if len(lines) < 3 or not lines[0]:
        return None
    return Placed(Path(lines[0]), frozenset(filter(None, lines[2:])), lines[1] != MAKING)


def shared_of(path: Path) -> Path | None:
    """Return the shared repository of a worktree, as the worktree itself names it."""
    if own := own_git(path):
        lines = (read_small(own / "objects/info/alternates", LINK_BYTES) or "").splitlines()
        return Path(lines[0]).parent if lines else None
    target = _target(path / ".git")
    try:
        return target.resolve().parent.parent if target is not None else None
    except (OSError, ValueError, RuntimeError):
        return None


def name_of(text: str) -> str:
    """The name of a note; neither paths nor branches are names of files."""
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:32]


def standing_on(own: Path) -> str:
    """The branch that an own repository has checked out; empty for none."""
    text = (read_small(own / "HEAD", LINK_BYTES) or "").strip()
    return text.removeprefix("ref: refs/heads/") if text.startswith("ref: refs/heads/") else ""


def mark_of(own: Path) -> str:
    """The name of an own repository's note, as it says itself; empty where it says none."""
    text = (read_small(own / MARK, LINK_BYTES) or "").strip()
    return text if _NAME.fullmatch(text) else ""


def _read_note(file: Path) -> Note | None:
    text = read_small(file, LINK_BYTES)
    if not text or not text.strip():
        return None
    path, _, state = text.partition("\n")
    return Note(file, Path(path), state.strip() != MAKING)


def _write(file: Path, text: str) -> None:
    """In one step, so that nobody reads half of it."""
    file.parent.mkdir(exist_ok=True)
    fresh = file.with_name(f".{file.name}-{os.getpid()}-{os.urandom(4).hex()}")
    fresh.write_bytes(os.fsencode(text))
    fresh.replace(file)


def place(path: Path) -> Path:
    """A path as notes have it; a link at its end is not followed."""
    return path.parent.resolve() / path.name


def registered(repo: Path) -> list[tuple[Path, Path]]:
    """A repository's git folder of each worktree, and where it lies by its notes.

    Notes that cannot be read are left out.
    """
    found = (
        (admin, read_small(admin / "gitdir", LINK_BYTES)) for admin in _inside(repo / "worktrees")
    )
    linked = [(admin, Path(text.strip()).parent) for admin, text in found if text and text.strip()]
    return linked + [(one.path / ".git", one.path) for one in notes(repo)]


def _inside(folder: Path) -> list[Path]:
    try:
        return sorted(one for one in folder.iterdir() if not one.name.startswith("."))
    except OSError:
        return []


def is_repository(folder: Path) -> bool:
    """Whether a folder looks like the inside of a repository of git."""
    head = folder / "HEAD"
    has_head = head.is_file() or head.is_symlink()
    return has_head and (folder / "objects").is_dir() and (folder / "refs").is_dir()


def leads_somewhere(own: Path) -> bool:
    """Whether `.git` is a folder, or a link to something that exists."""
    try:
        return own.is_dir() or ((target := _target(own)) is not None and target.exists())
    except (OSError, ValueError):
        return True  # it may, and nobody can see where


def _target(own: Path) -> Path | None:
    link = read_small(own, LINK_BYTES)
    if link is None or not link.startswith("gitdir: "):
        return None
    return own.parent / link.removeprefix("gitdir: ").strip()


def ref_in_files(repo: Path, name: str) -> str | None:
    """The commit of a branch as git keeps it in files (gitrepository-layout(5)), None where there is none, `UNSURE` where git knows.

    A file of its own counts before the list of all, and is looked for first: git removes it only
    when the list has it. Whether the commit is there is not looked at.
    """
    if not name.startswith(("refs/heads/", "refs/remotes/", "refs/tags/")) or ".." in name:
        return UNSURE
    if not (repo / "refs").is_dir() or (repo / "reftable").exists():
        return UNSURE
    text = _text_of(repo / name, _REF_BYTES)
    if text is None:
        return UNSURE
    if text:
        found = text.strip()
        return found if _COMMIT_ID.fullmatch(found) else UNSURE
    packed = _text_of(repo / "packed-refs", _PACKED_BYTES)
    if packed is None:
        return UNSURE
    end = packed.find(f" {name}\n")
    if end < 0:
        return None
    found = packed[packed.rfind("\n", 0, end) + 1 : end]
    return found if _COMMIT_ID.fullmatch(found) else UNSURE


def _text_of(path: Path, limit: int) -> str | None:
    """A plain file's text; empty where there is none, None where it is anything else."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError:
        return None
    try:
        facts = os.fstat(handle)
        if stat.S_ISDIR(facts.st_mode):
            return ""
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > limit:
            return None
        raw = b""
        while piece := os.read(handle, limit + 1 - len(raw)):
            raw += piece
    except OSError:
        return None
    finally:
        os.close(handle)
    return raw.decode("utf-8", "replace") or None


def named_in(own: Path) -> Mapping[str, str] | None:
    """What in an own repository names commits of a run's own: branches, tags, stashes, heads.

    None where its refs cannot be read from files. What it fetched from origin is not among them.
    """
    packed = _text_of(own / "packed-refs", _PACKED_BYTES)
    if packed is None or (own / "reftable").exists():
        return None
    words = (line.partition(" ") for line in packed.splitlines())
    found = {name: commit for commit, _, name in words}
    for folder, _, files in os.walk(own / "refs"):
        for file in (Path(folder) / name for name in files):
            found[str(file.relative_to(own))] = _line_of(file)
    found = {name: one for name, one in found.items() if not name.startswith("refs/remotes/")}
    log = (read_small(own / "logs" / "refs" / "stash", _PACKED_BYTES) or "").splitlines()
    found |= {
        f"{STASHES}{n}": line.partition(" ")[2].partition(" ")[0] for n, line in enumerate(log)
    }
    found |= {str(file.relative_to(own)): _line_of(file) for file in (own / "HEAD", *_heads(own))}
    return {name: one for name, one in found.items() if _COMMIT_ID.fullmatch(one)}


def _line_of(file: Path) -> str:
    return (read_small(file, _REF_BYTES) or "").strip()


def _heads(own: Path) -> list[Path]:
    """Those of worktrees that an agent made of its own repository."""
    return [folder / "HEAD" for folder in _inside(own / "worktrees")]
