"""`./lab backup FILE`: everything that counts in one private file, while the product runs."""

from __future__ import annotations

import argparse
import errno
import os
import signal
import socket
import sys
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from labsite import env
from labsite.backup import repository, tables, worktree
from labsite.backup.archive import Reader, Writer
from labsite.backup.form import FORMAT, Head, Unfit
from labsite.backup.places import beside, is_left_out
from labsite.backup.tree import Copier
from labsite.backup.worktree import Notes
from runs.core.paths import Paths
from runs.core.ports import SeamError
from runs.machine.git import Git
from runs.machine.worktree_links import registered
from runs.machine.worktrees import GitWorktrees

ROOT = Path(__file__).resolve().parent.parent.parent
GIT_SECONDS = 600.0
NOT_IN_IT = (
    "Not in it: what .gitignore names in worktrees, live sessions and their tokens, the worker's "
    "queue."
)


@dataclass
class Counted:
    """What went into the file, for the closing lines."""

    repositories: int = 0
    refs: int = 0
    worktrees: int = 0
    changed: int = 0
    files: int = 0
    left_out: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)


class NotWhole(Exception):
    """A backup was written beside the wanted file, and not all in it can be relied on."""


def say(text: str) -> None:
    """A line of progress, on a terminal only."""
    if sys.stderr.isatty():
        print(text, file=sys.stderr, flush=True)


def backup(paths: Paths, file: Path, force: bool) -> list[str]:
    """Write the backup; the answer says what is in it. Raises Unfit and OSError; then nothing is left.

    Raises NotWhole when a repository in it could not be proved: what there is has another name
    then, so that no good backup is replaced by it.

    The database comes first and the repositories after it: what rows name was in git before.
    """
    _refuse(paths, file, force)
    with beside(file, "saving") as staging:
        database = staging / "database"
        say("Copying the database …")
        steps = tables.save(paths, database)
        made = staging / "made"
        writer = Writer(made, _head(paths, steps))
        try:
            writer.add_file(tables.MEMBERS[tables.engine()], database, 0o600)
            database.unlink()
            counted = _everything(paths, Copier(writer, staging))
            writer.close()
        finally:
            writer.abandon()
        say("Reading the file once more …")
        Reader(made)
        if counted.broken:
            beside_it = file.with_name(f"{file.name}.not-whole")
            _publish(made, beside_it, force=True)
            raise NotWhole(_not_whole(file, beside_it, counted))
        _publish(made, file, force)
    return _summary(paths, file, counted)


def _not_whole(file: Path, made: Path, counted: Counted) -> str:
    return "\n".join(
        [
            f"The backup is not whole, so it is no {file.name}: not everything in it could be proved.",
            *counted.broken,
            f"What could be saved is in {made}, and can be restored as far as it goes. Repair what is "
            "named (a worktree: discard it; a repository: see ./lab doctor), then save again.",
        ]
    )


def _refuse(paths: Paths, file: Path, force: bool) -> None:
    if not paths.state.is_dir():
        raise Unfit(
            f"There is no state folder {paths.state}, so there is nothing to save: "
            "set LAB_STATE_DIR to the folder that labsite uses."
        )
    if file.is_dir():
        raise Unfit(f"{file} is a folder: name a file in it. Nothing was changed.")
    if file.exists() and not force:
        raise Unfit(
            f"{file} is there already: name another file, or use --force. It was left alone."
        )
    if not file.parent.is_dir():
        raise Unfit(f"There is no folder {file.parent}: make it first. Nothing was changed.")
    if file.parent.resolve().is_relative_to(paths.state.resolve()):
        raise Unfit(
            f"{file} would lie in the state folder and be lost with it: choose another place. "
            "Nothing was changed."
        )


def _head(paths: Paths, steps: list[str]) -> Head:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return Head(
        format=FORMAT,
        product=project["version"],
        made_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        host=socket.gethostname(),
        state=str(paths.state),
        engine=tables.engine(),
        has_key=paths.secret_key.exists(),
        steps=steps,
    )


def _everything(paths: Paths, copier: Copier) -> Counted:
    counted = Counted()
    git = Git(os.environ, Path(os.devnull), lambda: GIT_SECONDS)
    say("Copying files …")
    kept = copier.tree(paths.state, "state", is_left_out)
    copier.writer.about("state.json", kept.about())
    counted.files, counted.left_out = kept.files, kept.left_out
    counted.left_out += [_behind(name) for name in sorted(kept.links)]
    folders = [*sorted(paths.repos.glob("*")), *sorted(paths.origins.glob("*"))]
    saved: set[Path] = set()
    for number, folder in enumerate(folders):
        say(f"Saving repository {number + 1} of {len(folders)}: {folder.name} …")
        _repository(git, paths, folder, f"git/{number}", copier, counted, saved)
    for number, folder in enumerate(sorted({*paths.worktrees.glob("*")} - saved)):
        rel = str(folder.relative_to(paths.state))
        if folder.is_symlink():
            counted.left_out.append(_behind(rel))
        elif folder.is_dir():
            raw = worktree.save_raw(folder, rel, f"loose/{number}", copier)
            counted.left_out += [f"{rel} is no worktree of git, so all of its files were copied"]
            counted.left_out += raw.left_out
    _inner(git, paths, copier, counted)
    return counted


def _inner(git: Git, paths: Paths, copier: Copier, counted: Counted) -> None:
    """Repositories that were met in folders, and in these once more; outer ones first."""
    number = 0
    done: set[Path] = set()
    while fresh := sorted(copier.inner - done, key=lambda path: (len(path.parts), path)):
        for folder in fresh:
            rel = str(folder.relative_to(paths.state))
            say(f"Saving the repository {rel} …")
            staged = repository.staged_in(git, folder, copier)
            beside = repository.Beside(staged=staged)
            saved = repository.save(git, folder, rel, f"inner/{number}", copier, beside)
            counted.repositories += 1
            counted.refs += saved.refs
            counted.left_out += saved.left_out
            counted.broken += [saved.broken] if saved.broken else []
            number += 1
            done.add(folder)


def _behind(name: str) -> str:
    return f"{name} is a link, and what it leads to is not in it"


def _repository(
    git: Git,
    paths: Paths,
    folder: Path,
    prefix: str,
    copier: Copier,
    counted: Counted,
    saved: set[Path],
) -> None:
    """One repository with its worktrees; these first, since the branches are saved as they stood."""
    rel = str(folder.relative_to(paths.state))
    if folder.is_symlink():
        counted.left_out.append(_behind(rel))
        return
    if not folder.is_dir():
        return
    all_notes: list[Notes] = []
    found = worktree.places(folder, paths.worktrees)
    for number, place in enumerate(found):
        name = str(place.files.relative_to(paths.state))
        try:
            notes = worktree.save(git, place, name, rel, f"{prefix}/worktrees/{number}", copier)
            if place.is_own:  # an agent may have gone on since it was saved
                kept = repository.existing(git, place.files, copier, notes.objects)
                GitWorktrees(git).take_in(folder, place.files, kept)
        except SeamError as error:
            counted.left_out.append(f"{name}: git could not read it ({error})")
            continue
        saved.add(place.files)
        all_notes.append(notes)
        counted.worktrees += 1
        counted.changed += notes.changed
        counted.left_out += notes.left_out
    pinned = {notes.branch: notes.head for notes in all_notes if notes.branch and notes.head}
    staged = frozenset(oid for notes in all_notes for oid in notes.staged)
    named = {oid for notes in all_notes for oid in notes.named}
    named |= worktree.lost(git, folder, paths.worktrees, copier)
    named |= {notes.head for notes in all_notes if notes.head}
    beside = repository.Beside(pinned, staged, frozenset(named))
    done = repository.save(git, folder, rel, prefix, copier, beside)
    counted.repositories += 1
    counted.refs += done.refs
    counted.left_out += done.left_out
    counted.broken += [done.broken] if done.broken else []
    if done.is_raw:  # what is as committed could not be made again from it
        saved -= {paths.state / notes.path for notes in all_notes}
    if elsewhere := len(registered(folder)) - len(found):
        counted.left_out.append(f"{elsewhere} worktrees of {rel} lie elsewhere and are not in it")


def _publish(made: Path, file: Path, force: bool) -> None:
    """Give the finished file its name in one step; one that came meanwhile is not overwritten."""
    if force:
        made.replace(file)
    else:
        try:
            file.hardlink_to(made)
        except FileExistsError as error:
            raise Unfit(f"{file} came meanwhile and was left alone: name another file.") from error
        except OSError:  # a file system without hard links
            made.rename(file)
    folder = os.open(file.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def _summary(paths: Paths, file: Path, counted: Counted) -> list[str]:
    key = "the key" if paths.secret_key.exists() else "no key (yours is in LAB_SECRET_KEY)"
    return [
        f"Saved {paths.state} to {file} ({file.stat().st_size / 1024**2:.1f} MiB).",
        f"In it: the database, {key}, {counted.repositories} repositories with {counted.refs} refs, "
        f"{counted.worktrees} worktrees with {counted.changed} changed or new files, "
        f"{counted.files} other files.",
        NOT_IN_IT,
        *(f"Note: {text}" for text in counted.left_out),
        "It opens logins and tokens: keep it as private as the state folder itself.",
    ]


def main(argv: Sequence[str]) -> int:
    """0 and what is in the file; 1 and one sentence; 2 for a wrong call."""
    parser = argparse.ArgumentParser(
        prog="./lab backup", description="Save everything that counts, while labsite runs or not."
    )
    parser.add_argument("file", metavar="FILE", help="the file to write, outside the state folder")
    parser.add_argument("--force", action="store_true", help="overwrite FILE")
    given = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    file = Path(given.file).expanduser().absolute()
    try:
        lines = backup(Paths(env.state_dir()), file, given.force)
    except (Unfit, NotWhole, env.WrongSetting) as error:
        print(error, file=sys.stderr)
        return 1
    except (OSError, SeamError) as error:
        print(_why(file, error), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted. Nothing was left behind.", file=sys.stderr)
        return 130
    print("\n".join(lines))
    return 0


def _why(file: Path, error: Exception) -> str:
    if getattr(error, "errno", None) == errno.ENOSPC or "No space left" in str(error):
        return f"The disk of {file.parent} is full, so no backup was made. Nothing was left behind."
    return f"No backup was made, and nothing was left behind: {error}"
