"""Where a reviewer works: a copy of the commit that nobody else uses, and files with what it needs."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from runs.core.ports import Lab, SeamError
from runs.models import Attempt, Reviewer, Run
from runs.reviewers import prompt, rules
from runs.reviewers.programs import Papers
from runs.reviewers.prompt import Matter
from runs.reviewers.rules import Code, Finding
from trackers.account import awaited
from trackers.base import RateLimited, TrackerError, Unreachable

PATCH_BYTES = 2_000_000
COUNTED_BYTES = 8_000_000
_WRITE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class Material:
    """What all reviewers of an attempt are given, and where it lies."""

    matter: Matter
    folder: Path
    changed: frozenset[str]


def gather(lab: Lab, attempt: Attempt) -> Material:
    """Read issue and diff, and write them down. Raises SeamError."""
    run, repo = attempt.run, attempt.run.project.repo(lab.paths)
    base = attempt.base or run.fork_point
    changes = lab.repos.changes(repo, base, attempt.commit)
    matter = Matter(
        attempt.commit,
        base,
        lab.mask(_issue(lab, run)),
        [one.path for one in changes],
        lab.repos.patch(repo, base, PATCH_BYTES, attempt.commit),
    )
    folder = attempt.folder(lab.paths)
    changed = {name for one in changes for name in (one.path, one.old_path) if name}
    made = Material(matter, folder, frozenset(changed))
    _write(folder, "review-issue.md", matter.issue)
    _write(folder, "review-diff.patch", matter.diff)
    _write(folder, "review-schema.json", json.dumps(rules.SCHEMA, indent=2))
    return made


def _issue(lab: Lab, run: Run) -> str:
    """The issue's text; its title alone where its tracker has no more to say. Raises SeamError."""
    tracker = lab.tracker_for(run.project.tracker)
    if tracker is None:
        return run.issue_title
    try:
        with awaited():
            found = tracker.issue(run.project.tracker_root, run.issue_key)
    except (Unreachable, RateLimited) as error:
        raise SeamError(
            f"issue {run.issue_key} could not be read for the review: {error}"
        ) from error
    except TrackerError:
        return run.issue_title
    return prompt.issue_text(found, run.project.readers)


def papers(lab: Lab, attempt: Attempt, reviewer: Reviewer, material: Material) -> Papers:
    """Where what one reviewer is given lies."""
    at = material.folder
    return Papers(
        review=prompt.review_id(attempt.mark, reviewer.name),
        worktree=str(worktree(lab, attempt, reviewer)),
        prompt_file=str(at / f"review-{reviewer.pk}-prompt.md"),
        issue_file=str(at / "review-issue.md"),
        diff_file=str(at / "review-diff.patch"),
        schema_file=str(at / "review-schema.json"),
        commit=material.matter.commit,
        base=material.matter.base,
    )


def write_prompt(given: Papers, text: str) -> Path:
    """Write down what a reviewer is told. Raises SeamError."""
    path = Path(given.prompt_file)
    _write(path.parent, path.name, text)
    return path


def _write(folder: Path, name: str, text: str) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise SeamError(f"{folder} could not be written: {error.strerror}") from error


def worktree(lab: Lab, attempt: Attempt, reviewer: Reviewer) -> Path:
    """Where the copy of one reviewer lies."""
    return lab.paths.reviews / f"{attempt.pk}-{reviewer.pk}"


@contextlib.contextmanager
def copy(
    lab: Lab, attempt: Attempt, reviewer: Reviewer, prepare: Callable[[Path], None]
) -> Iterator[Path]:
    """A copy of the commit for one reviewer, without permission to write; gone afterwards.

    `prepare` may still write in it. Raises SeamError when it cannot be made, and what `prepare`
    raises; one that cannot be removed is left to `tidy`.
    """
    path = worktree(lab, attempt, reviewer)
    _remove(lab, attempt, path)
    project = attempt.run.project
    repo, folders = project.repo(lab.paths), project.checked_out_folders
    lab.repos.add_detached(repo, path, attempt.commit, folders)
    try:
        prepare(path)
        _permit(path, is_writable=False)
        yield path
    finally:
        with contextlib.suppress(SeamError):
            _remove(lab, attempt, path)


def tidy(lab: Lab, attempt: Attempt) -> bool:
    """End what reviewers of an attempt left running, and remove their copies.

    Whether there was anything to remove. Raises SeamError when something is left.
    """
    lab.checks.end(attempt.mark)
    left = sorted(lab.paths.reviews.glob(f"{attempt.pk}-*"))
    for path in left:
        _remove(lab, attempt, path)
    return bool(left)


def _remove(lab: Lab, attempt: Attempt, path: Path) -> None:
    _permit(path, is_writable=True)
    lab.repos.force_remove(attempt.run.project.repo(lab.paths), path)


def _permit(top: Path, *, is_writable: bool) -> None:
    """Give or take the permission to write below a folder. Whoever owns the files may undo it."""
    _permit_one(top, is_writable=is_writable)
    for folder, folders, names in os.walk(top):
        for name in (*folders, *names):  # folders first: a closed one would not be walked
            _permit_one(Path(folder) / name, is_writable=is_writable)


def _permit_one(path: Path, *, is_writable: bool) -> None:
    with contextlib.suppress(OSError):
        mode = path.lstat().st_mode
        if not is_writable and (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            path.chmod(stat.S_IMODE(mode & ~_WRITE))
        elif is_writable and stat.S_ISDIR(mode):
            path.chmod(stat.S_IMODE(mode | stat.S_IRWXU))


def code_of(root: Path, findings: Sequence[Finding], changed: frozenset[str]) -> Code:
    """What the copy of a reviewer holds of the files and folders that its findings name."""
    said = {name for one in findings for name in rules.spellings(one.path, str(root))}
    names = said | {_as_written(root, name) for name in said}
    found = {name: _lines(root, name) for name in names if _is_file(root, name)}
    return Code(found, changed, frozenset(name for name in names if _is_folder(root, name)))


def is_quotation(root: Path, material: Material, answer: str) -> bool:
    """Return whether an answer stands in issue, diff or changed files, all of which others wrote.

    The files are read as well: a diff is cut at its length and leaves out what attributes say.
    """
    texts = [material.matter.issue, *prompt.sides(material.matter.diff)]
    if any(rules.is_quoted(answer, text) for text in texts):
        return True
    names = (name for name in material.changed if _is_file(root, name))
    return any(rules.is_quoted(answer, _content(root, name)) for name in names)


def _content(root: Path, name: str) -> str:
    """The text of a file, as far as it is looked at; empty when it cannot be read."""
    try:
        with (root / name).open("rb") as file:
            return file.read(COUNTED_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _as_written(root: Path, name: str) -> str:
    """A name in the letters that the copy has it in, where that is one alone; else as it is."""
    place, parts = root, list[str]()
    for part in name.split("/"):
        try:
            there = [one.name for one in place.iterdir()]
        except (OSError, ValueError):
            return name
        alike = [one for one in there if one.casefold() == part.casefold()]
        if part not in there and len(alike) != 1:
            return name
        parts.append(part if part in there else alike[0])
        place = place / parts[-1]
        if place.is_symlink():
            return name
    return "/".join(parts)


def _is_folder(root: Path, name: str) -> bool:
    """Whether it is a folder of the copy, with no link on the way."""
    path = root / name
    try:
        return path.resolve().is_relative_to(root.resolve()) and stat.S_ISDIR(path.lstat().st_mode)
    except (OSError, ValueError, RuntimeError):
        return False


def _is_file(root: Path, name: str) -> bool:
    """Whether it is a plain file of the copy itself: a link may lead anywhere."""
    path = root / name
    try:
        is_inside = path.resolve().is_relative_to(root.resolve())
        return is_inside and stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError, RuntimeError):
        return False


def _lines(root: Path, name: str) -> int | None:
    """How many lines a file has; None when that was not counted."""
    try:
        with (root / name).open("rb") as file:
            data = file.read(COUNTED_BYTES + 1)
    except OSError:
        return None
    return None if len(data) > COUNTED_BYTES else len(data.splitlines())
