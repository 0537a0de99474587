"""`./lab restore FILE`: a new state folder from a backup, whole or not at all."""

from __future__ import annotations

import argparse
import errno
import os
import re
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from labsite import env, folders
from labsite.backup import repository, tables, tree, worktree
from labsite.backup.archive import Reader, clear, lay, read_about
from labsite.backup.form import Head, Unfit, lines_of, moved, safe
from labsite.backup.places import beside
from labsite.backup.save import GIT_SECONDS, ROOT, say
from labsite.doctor.machine import is_running
from runs.core.paths import Paths
from runs.core.ports import SeamError
from runs.core.upgrading import gap
from runs.machine.git import Git

OUR_STEPS = {"runs": "runs/migrations", "builtin": "trackers/builtin/migrations"}
# Our own lists, never a file of that name that somebody saved.
LISTS = re.compile(
    r"state\.json|(?:git/\d+(?:/worktrees/\d+)?|loose/\d+|inner/\d+)/about\.json", re.ASCII
)


def restore(paths: Paths, file: Path) -> list[str]:
    """Make the state folder anew; the answer says what to do next. Raises Unfit and OSError.

    Everything is checked first, then made in a folder beside, which gets its name at the end.
    """
    folders.refuse_odd_letters(paths.state)
    _refuse_target(paths)
    _refuse_file(file)
    say("Checking the file …")
    reader = Reader(file)
    _refuse_head(reader.head, paths)
    _refuse_small(paths, sum(reader.sizes.values()))
    with beside(paths.state, "restoring") as staging:
        made = Paths(staging / "state")
        made.state.mkdir(mode=0o700)
        _Making(reader, made.state, staging / "parts", paths.state).everything()
        member = staging / "parts" / tables.MEMBERS[reader.head.engine]
        for folder in (made.repos, made.origins, made.worktrees, made.run_folders):
            folder.mkdir(mode=0o700, exist_ok=True)
        say("Putting the database in place …")
        tables.load(member, reader.head.engine, made, reader.head.state, str(paths.state))
        os.sync()
        _publish(made.state, paths.state)
    return _summary(reader.head, paths)


def _refuse_target(paths: Paths) -> None:
    if is_running(paths):
        raise Unfit(f"labsite runs on {paths.state}: end it first. Nothing was changed.")
    if paths.state.is_symlink() or (paths.state.exists() and not paths.state.is_dir()):
        raise Unfit(f"{paths.state} is there and is no folder. Nothing was changed.")
    if paths.state.is_dir() and any(paths.state.iterdir()):
        raise Unfit(
            f"{paths.state} is not empty, and a restore only fills a new folder: move it away, or set "
            "LAB_STATE_DIR to another one. Nothing was changed."
        )
    if not paths.state.parent.is_dir():
        raise Unfit(f"There is no folder {paths.state.parent}: make it first. Nothing was changed.")


def _refuse_file(file: Path) -> None:
    if file.is_dir():
        raise Unfit(f"{file} is a folder: name the backup file. Nothing was changed.")
    if not file.exists():
        raise Unfit(f"There is no file {file}. Nothing was changed.")
    if not file.is_file():
        raise Unfit(f"{file} is no plain file. Nothing was changed.")


def _refuse_head(head: Head, paths: Paths) -> None:
    """A newer version's database, another engine, or the product still at work where it was saved."""
    if head.engine != tables.engine():
        has, wants = head.engine, tables.engine()
        do = (
            "set LAB_DATABASE_URL to an empty database"
            if has != "sqlite"
            else "unset LAB_DATABASE_URL"
        )
        raise Unfit(
            f"This backup holds a {has} database, and {wants} is chosen: {do}. Nothing was changed."
        )
    _refuse_steps(head.steps)
    if is_running(Paths(Path(head.state))):
        raise Unfit(
            f"The labsite that this backup was made from still runs here, on {head.state}: end it "
            "first, since two would work on the same projects. Nothing was changed."
        )
    if head.engine == tables.POSTGRESQL and not tables.is_empty():
        raise Unfit(
            "The PostgreSQL database already holds a labsite: name an empty one in LAB_DATABASE_URL. "
            "Nothing was changed."
        )


def _refuse_steps(steps: Sequence[str]) -> None:
    known = [
        (app, path.stem) for app, at in OUR_STEPS.items() for path in (ROOT / at).glob("0*.py")
    ]
    applied = ((app, name) for app, _, name in (step.partition(".") for step in steps))
    found = gap(applied, known)
    if found.newer:
        raise Unfit(
            f"This backup was made by a newer labsite ({', '.join(found.newer[:3])}): update labsite "
            "first. Nothing was changed."
        )
    if found.older:
        raise Unfit(
            f"This backup was made by an older labsite ({', '.join(found.older)}) than this version "
            "can bring up to date: restore and start it with a version in between, as "
            "docs/operating.md says. Nothing was changed."
        )


def _refuse_small(paths: Paths, needed: int) -> None:
    room = os.statvfs(paths.state.parent)
    if room.f_bavail * room.f_frsize < needed:
        raise Unfit(
            f"The disk of {paths.state.parent} has too little room: at least "
            f"{needed / 1024**2:.0f} MiB are needed. Nothing was changed."
        )


class _Making:
    """Lays the members out, then has git make repositories and worktrees of them."""

    def __init__(self, reader: Reader, root: Path, parts: Path, final: Path) -> None:
        self._reader = reader
        self._root, self._parts, self._final = root, parts, final
        self._old = reader.head.state
        self._about: dict[str, dict[str, Any]] = {}
        self._git = Git(os.environ, Path(os.devnull), lambda: GIT_SECONDS)

    def everything(self) -> None:
        self._parts.mkdir(mode=0o700)
        with self._reader.told():
            for name, member, file in self._reader.members():
                if LISTS.fullmatch(name):
                    self._about[name.rpartition("/")[0]] = read_about(file)
                elif name.startswith("state/"):
                    lay(self._root, name.removeprefix("state/"), file, member)
                else:
                    lay(self._parts, name, file, member)
        tree.put_back(self._root, self._about.pop("", {}))
        prefixes = sorted(self._about, key=self._turn)
        for prefix in prefixes:
            about = self._about[prefix]
            target = safe(str(about.get("path", "")))
            say(f"Making {target} …")
            if "repo" in about:
                self._worktree(prefix, about, target.as_posix())
            elif prefix.startswith(("git/", "inner/")) and not about.get("raw"):
                self._repository(prefix, about, target.as_posix())
            else:
                self._raw(prefix, about, target.as_posix())

    def _turn(self, prefix: str) -> tuple[int, int, str]:
        """Repositories, their worktrees, what was copied as it lay there, repositories inside."""
        kind = prefix.partition("/")[0]
        path = str(self._about[prefix].get("path", ""))
        depth = path.count("/") if kind == "inner" else prefix.count("/")
        return ("git", "loose", "inner").index(kind), depth, prefix

    def _raw(self, prefix: str, about: dict[str, Any], rel: str) -> None:
        target = self._take(f"{prefix}/{'raw' if about.get('raw') else 'files'}", rel)
        tree.put_back(target, about)
        for name in ("config", ".git"):
            self._renew(target / name)

    def _repository(self, prefix: str, about: dict[str, Any], rel: str) -> None:
        """Settings first, since they say how git keeps objects; logs last, since git adds to them."""
        repo = clear(self._root, rel)
        repository.begin(self._git, repo)
        saved = self._parts / prefix / "files"
        for name in ("config", "HEAD", "shallow"):
            if (saved / name).is_file():
                shutil.copy2(saved / name, clear(repo, name))
        self._renew(repo / "config")
        pack = self._parts / prefix / "objects.pack"
        if pack.exists():
            repository.unpack(self._git, repo, pack)
            pack.unlink()
        repository.name_refs(self._git, repo, about, self._parts / "orders")
        if saved.is_dir():
            (saved / "config").unlink(missing_ok=True)
            shutil.copytree(saved, repo, dirs_exist_ok=True)
        tree.put_back(repo, about)

    def _worktree(self, prefix: str, about: dict[str, Any], rel: str) -> None:
        repo = safe(str(about["repo"])).as_posix()
        is_own = about.get("own") is True
        admin_rel = f"{repo}/worktrees/{safe(str(about.get('id', ''))).name}"
        files = clear(self._root, rel)
        files.mkdir(mode=0o700, parents=True)
        admin = self._take(f"{prefix}/admin", f"{rel}/.git" if is_own else admin_rel)
        notes = about.get("admin", {})
        tree.put_back(admin, notes if isinstance(notes, dict) else {})
        if is_own:
            worktree.borrow(admin, self._root / repo)
            self._renew(admin / "config")
        if (admin / "index").exists() and not self._is_raw(repo):
            worktree.check_out(self._git, admin, files)
        tree.remove(files, lines_of(about, "deleted"))
        self._over(self._parts / prefix / "files", files)
        tree.put_back(files, about)
        if is_own:
            worktree.join_own(
                files, self._root / repo, self._final / rel, self._final / repo, about
            )
            return
        worktree.join(files, admin, self._final / rel, self._final / admin_rel)

    def _is_raw(self, repo: str) -> bool:
        """Whether git could not read a repository; then its worktrees were copied as a whole."""
        return any(about.get("path") == repo and about.get("raw") for about in self._about.values())

    def _take(self, prefix: str, rel: str) -> Path:
        """Move laid-out files to where they belong."""
        target = clear(self._root, rel)
        source = self._parts / prefix
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if source.is_dir():
            source.rename(target)
        else:
            target.mkdir(mode=0o700)
        return target

    def _over(self, saved: Path, files: Path) -> None:
        """Saved files over what git wrote, in real folders even where git wrote a link."""
        for path in sorted(saved.rglob("*")) if saved.is_dir() else ():
            if path.is_file():
                path.rename(clear(files, path.relative_to(saved).as_posix()))

    def _renew(self, file: Path) -> None:
        """Let a small file of git's name the new state folder."""
        if file.is_file() and not file.is_symlink():
            text = file.read_text(errors="surrogateescape")
            file.write_text(moved(text, self._old, str(self._final)), errors="surrogateescape")


def _publish(made: Path, target: Path) -> None:
    """One step: the folder is there with everything in it, or not at all."""
    made.rename(target)  # onto an empty folder too
    folder = os.open(target.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def _summary(head: Head, paths: Paths) -> list[str]:
    lines = [
        f"Restored {paths.state} as it was on {head.host} at {head.made_at} (labsite {head.product}).",
        "Sessions of agents did not come along: the first tick judges their runs and keeps their work.",
    ]
    if not head.has_key and not os.environ.get("LAB_SECRET_KEY"):
        lines.append(
            "The key is not in it: set LAB_SECRET_KEY as it was, or stored tokens are lost."
        )
    return [*lines, "Next: ./lab doctor, then ./lab up."]


def main(argv: Sequence[str]) -> int:
    """0 and what to do next; 1 and one sentence; 2 for a wrong call."""
    parser = argparse.ArgumentParser(
        prog="./lab restore", description="Make a new state folder from a backup."
    )
    parser.add_argument("file", metavar="FILE", help="a file that ./lab backup made")
    given = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        paths = Paths(env.state_dir())
        lines = restore(paths, Path(given.file).expanduser().absolute())
    except (Unfit, env.WrongSetting) as error:
        print(error, file=sys.stderr)
        return 1
    except (OSError, SeamError) as error:
        print(_why(error), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted. Nothing was restored, and nothing was left behind.", file=sys.stderr)
        return 130
    print("\n".join(lines))
    return 0


def _why(error: Exception) -> str:
    if getattr(error, "errno", None) == errno.ENOSPC or "No space left" in str(error):
        return "The disk is full. Nothing was restored, and nothing was left behind."
    return f"Nothing was restored, and nothing was left behind: {error}"
