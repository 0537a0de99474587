"""One repository in the backup: its refs first, then everything that they and its worktrees reach.

`git bundle` would leave out what is no branch or tag of the repository itself: heads of detached
worktrees, what is only staged, stashes below the newest, a rebase half done. So the list of refs
is ours, and one pack holds all that the list, the worktrees' indexes and the logs name. Objects
are read after the names, and what is named is read from the very copies that go into the file, so
that no commit is named in it that it does not hold. git throws nothing away that was just named.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labsite.backup.archive import Writer
from labsite.backup.form import Unfit
from labsite.backup.tree import Copier
from runs.core.ports import SeamError
from runs.machine.git import Git, failed
from runs.machine.worktree_links import CLAIMS, NOTES, PLACED

LONG = 6 * 3600.0
TRIES = 3
INNER, INDEX = "inner", "index"
_OBJECTS = ("objects", "refs", "packed-refs", "reftable")


@dataclass(frozen=True, slots=True)
class Ref:
    """A name, the object it names, and the name it stands for when it is symbolic."""

    oid: str
    name: str
    target: str = ""


@dataclass
class Saved:
    """What of a repository went into the file. `is_raw`: git could not read it, so it was copied.

    `broken` says what of it cannot be relied on; empty for one whose copy was proved.
    """

    path: str
    refs: int = 0
    is_raw: bool = False
    broken: str = ""
    left_out: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Beside:
    """What worktrees bring along: the branches they were saved at, and objects that they name.

    `staged` are in their indexes and have to be there; `named` are in logs and may be gone.
    """

    pinned: Mapping[str, str] = field(default_factory=dict)
    staged: frozenset[str] = frozenset()
    named: frozenset[str] = frozenset()


def refs_of(git: Git, repo: Path) -> list[Ref]:
    """Every ref in every namespace as it is now. Raises SeamError."""
    text = git.ask(repo, "for-each-ref", "--format=%(objectname) %(refname) %(symref)")
    parts = (line.split(" ") for line in text.splitlines())
    return [Ref(oid, name, target) for oid, name, target in parts]


def save(
    git: Git,
    repo: Path,
    rel: str,
    prefix: str,
    copier: Copier,
    beside: Beside,
) -> Saved:
    """Put one repository under `prefix`; one that git cannot read is copied file by file.

    What an agent committed since its worktree was saved came after the backup. The pack is proved:
    everything that refs and indexes name is in it.
    """
    index = copier.staging / INNER / INDEX
    has_index = index.exists()
    skip = _is_saved_apart if has_index else _is_object_or_lock
    kept = copier.tree(repo, f"{prefix}/files", skip)
    if has_index:
        copier.one(index.parent, INDEX, f"{prefix}/files", kept)
        index.unlink()
    try:
        refs, pack = _proved(git, repo, copier, beside, kept.named)
    except SeamError as error:
        kept = copier.raw(repo, f"{prefix}/raw")
        about: dict[str, Any] = {"path": rel, "raw": True, **kept.about()}
        copier.writer.about(f"{prefix}/about.json", about)
        return Saved(rel, is_raw=True, broken=f"{rel}: {error}", left_out=kept.left_out)
    _store(copier.writer, prefix, pack)
    told = [[ref.oid, ref.name, ref.target] for ref in refs]
    copier.writer.about(f"{prefix}/about.json", {"path": rel, "refs": told, **kept.about()})
    return Saved(rel, len(refs), left_out=kept.left_out)


def _proved(
    git: Git, repo: Path, copier: Copier, beside: Beside, named: set[str]
) -> tuple[list[Ref], Path | None]:
    """The refs and a pack with all that they name; tried again, since git may just be repacking it.

    A repository in which somebody works is not copied file by file for that: half of it would be
    of before. Raises SeamError.
    """
    for left in reversed(range(TRIES)):
        try:
            refs = [
                Ref(beside.pinned.get(ref.name, ref.oid), ref.name, ref.target)
                for ref in refs_of(git, repo)
            ]
            gone = beside.pinned.keys() - {ref.name for ref in refs}
            refs += [Ref(beside.pinned[name], name) for name in sorted(gone)]
            must = {ref.oid for ref in refs} | beside.staged
            wanted = must | named | beside.named
            pack = _pack(git, repo, copier, must, wanted, is_last=not left)
            _prove(git, repo, copier, pack, must)
            break
        except SeamError:
            for part in copier.staging.glob("objects-*"):
                part.unlink()
            if not left:
                raise
    return refs, pack


def _is_object_or_lock(name: str) -> bool:
    """Worktrees are saved on their own, with the index that belongs to their files."""
    parts = name.split("/")
    is_worktree = parts[0] == "worktrees" and len(parts) > 1
    return (
        parts[0] in (*_OBJECTS, NOTES, CLAIMS, PLACED)
        or is_worktree
        or name.endswith((".lock", ".sample", "gc.pid"))
    )


def _is_saved_apart(name: str) -> bool:
    return name == INDEX or _is_object_or_lock(name)


def _pack(
    git: Git, repo: Path, copier: Copier, must: set[str], wanted: set[str], *, is_last: bool
) -> Path | None:
    """One pack of everything reachable from the names that exist; None for an empty repository.

    Logs may name commits whose past git has thrown away; then only the refs count, at the last try.
    """
    there = existing(git, repo, copier, wanted)
    if missing := must - there:
        raise SeamError(f"{min(missing)} is missing, which a ref or an index names")
    if not there:
        return None
    try:
        return _packed(git, repo, copier, there)
    except SeamError:
        if not is_last:
            raise
        return _packed(git, repo, copier, must & there)


def _prove(git: Git, repo: Path, copier: Copier, pack: Path | None, must: set[str]) -> None:
    """Whether a repository made of the pack alone has everything that is named. Raises SeamError."""
    if pack is None:
        return
    proof = copier.staging / "proof.git"
    given = copier.staging / "names"
    given.write_text("".join(f"{name}\n" for name in sorted(must)))
    kind = git.ask(repo, "rev-parse", "--show-object-format").strip()
    try:
        git.ask(proof.parent, "init", "-q", "--bare", f"--object-format={kind}", "--", str(proof))
        if (repo / "shallow").is_file():
            shutil.copy2(repo / "shallow", proof / "shallow")
        for part in pack.parent.glob("objects-*"):
            (proof / "objects" / "pack" / f"pack-{part.name}").hardlink_to(part)
        walk = ("rev-list", "--objects", "--stdin", "--quiet")
        done = git(proof, *walk, timeout=LONG, given=given)
    finally:
        shutil.rmtree(proof, ignore_errors=True)
    if done.status != 0:
        raise SeamError(f"what it names is not all there: {failed('rev-list', done)}")


def existing(git: Git, repo: Path, copier: Copier, names: set[str]) -> set[str]:
    """Return those of the objects that a repository has. Raises SeamError."""
    given = copier.staging / "names"
    given.write_text("".join(f"{name}\n" for name in sorted(names)))
    check = ("cat-file", "--batch-check=%(objectname) %(objecttype)", "--buffer")
    done = git(repo, *check, timeout=LONG, given=given)
    if done.status != 0:
        raise failed("cat-file", done)
    parts = (line.split(" ") for line in done.stdout.splitlines())
    return {name for name, kind in parts if kind in ("commit", "tree", "blob", "tag")}


def _packed(git: Git, repo: Path, copier: Copier, names: set[str]) -> Path:
    given, base = copier.staging / "names", copier.staging / "objects"
    for old in copier.staging.glob("objects-*"):
        old.unlink()
    given.write_text("".join(f"{name}\n" for name in sorted(names)))
    # One pack, whatever size an agent wrote into the settings.
    argv = (
        "-c",
        "pack.packSizeLimit=0",
        "pack-objects",
        "-q",
        "--revs",
        "--delta-base-offset",
        str(base),
    )
    done = git(repo, *argv, timeout=LONG, given=given)
    if done.status != 0:
        raise failed("pack-objects", done)
    return copier.staging / f"objects-{done.stdout.strip()}.pack"


def _store(writer: Writer, prefix: str, pack: Path | None) -> None:
    if pack is not None:
        writer.add_file(f"{prefix}/objects.pack", pack, 0o600)
        for part in pack.parent.glob("objects-*"):
            part.unlink()


def staged_in(git: Git, repo: Path, copier: Copier) -> frozenset[str]:
    """Objects that the index of a repository with files names; none where git cannot read it.

    That very index is saved with them: by the time the other files are read it may be another one.
    """
    index = copier.staging / INNER / INDEX
    index.parent.mkdir(exist_ok=True)
    try:
        shutil.copy2(repo / INDEX, index)
        done = git(repo, "ls-files", "-z", "--stage", index=index, timeout=LONG)
    except (OSError, SeamError):
        index.unlink(missing_ok=True)
        return frozenset()
    parts = (line.split(" ") for line in done.stdout.split("\0") if line)
    return frozenset(part[1] for part in parts if part[0] != "160000")


def begin(git: Git, repo: Path) -> None:
    """An empty repository into which the saved files are then laid. Raises SeamError."""
    repo.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    git.ask(repo.parent, "init", "-q", "--bare", "--template=", "--", str(repo))


def unpack(git: Git, repo: Path, pack: Path) -> None:
    """Take a pack in; git checks each object on the way. Raises SeamError."""
    done = git(repo, "index-pack", "--stdin", timeout=LONG, given=pack)
    if done.status != 0:
        raise failed("index-pack", done)


def name_refs(git: Git, repo: Path, about: Mapping[str, Any], given: Path) -> None:
    """Make the refs as they were; `given` is a place for git's orders. Raises SeamError, Unfit."""
    refs = _refs_in(about)
    plain = [ref for ref in refs if not ref.target]
    given.write_text("".join(f"create {ref.name} {ref.oid}\n" for ref in plain))
    done = git(repo, "-c", "core.logAllRefUpdates=false", "update-ref", "--stdin", given=given)
    given.unlink()
    if done.status != 0:
        raise failed("update-ref", done)
    for ref in refs:
        if ref.target:
            git.ask(repo, "symbolic-ref", ref.name, ref.target)


def _refs_in(about: Mapping[str, Any]) -> list[Ref]:
    found = about.get("refs", [])
    try:
        refs = [Ref(*(str(part) for part in parts)) for parts in found]
    except TypeError as error:
        raise Unfit("The backup's refs cannot be meant. Nothing was changed.") from error
    for ref in refs:
        parts = (ref.oid, ref.name, ref.target or "refs/-")
        if not ref.name.startswith("refs/") or any(set(part) & set(" \n\0") for part in parts):
            raise Unfit("The backup's refs cannot be meant. Nothing was changed.")
    return refs
