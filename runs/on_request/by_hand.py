"""Runs a project's commands on a commit for a person at a terminal. No row is written."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runs.changed_files import file_kinds
from runs.core.paths import Paths
from runs.core.ports import Lab, SeamError
from runs.core.refusal import ActRefused
from runs.core.states import ProjectState
from runs.models import Project
from runs.on_request.wish import Lines, Subject, Wish
from runs.projects import acts as projects
from runs.projects import origin
from runs.validation import clean_room, e2e, specs
from runs.validation.clean_room import Lost, Room
from runs.validation.spec_models import terms_of
from runs.validation.specs import Scope, Spec, Switch, Terms

PASSED, FAILED, NOT_RUN, INTERRUPTED = 0, 1, 3, 130
PLACE, KEPT = "by-hand", "kept"
MOST_FOLDERS = 20
ORIGIN, LOCAL = "refs/remotes/origin/", "refs/heads/"


class NotRun(SeamError):
    """Nothing could be run; the text says why and what to do."""


def carry_out(lab: Lab, wish: Wish, lines: Lines, goes_on: Callable[[], bool]) -> int:
    """Run it to its end, with nothing left of it; the exit code. Raises ActRefused, SeamError."""
    project = projects.named(wish.project)
    terms = specs.over(terms_of(project), wish.switches)
    if wish.scope is Scope.RUN_LEVEL and Switch.RUN_LEVEL in terms.disabled:
        lines.skipped("The run level is turned off for this project; nothing was run.")
        return PASSED
    spec = specs.effective(terms, wish.scope)
    if project.state != ProjectState.READY:
        raise NotRun(ProjectState(project.state).not_ready)
    if not spec.commands and not spec.e2e.enabled:
        raise NotRun("This project has no commands to run. Add them on its page, under Checks.")
    _tidy(lab)
    commit, name, warning = _commit(lab, project, wish)
    base = lab.repos.tip(project.repo(lab.paths), f"{ORIGIN}{project.default_branch}") or ""
    _refuse_lacking(lab, project, terms, spec, (base, commit))
    room = _room(lab, project, (base, commit), terms)
    lines.begun(Subject(project.name, commit, name, wish.scope, str(room.folder), warning))
    journal = _Journal(lines, goes_on)
    try:
        found = clean_room.run(lab, room, spec, journal)
    except Lost:
        return INTERRUPTED
    if found.artifacts["worktree_state"] == clean_room.KEPT:
        _note_kept(lab, room.path)
    journal.note(found.results)  # those at the end that were not run
    code = PASSED if found.passed else FAILED
    lines.ended(found.to_json(), code)
    return code


def _commit(lab: Lab, project: Project, wish: Wish) -> tuple[str, str, str]:
    """The commit that is meant, its name for people, and a warning. Raises ActRefused."""
    repo = project.repo(lab.paths)
    known = lab.repos.tip(repo, wish.commit) if wish.commit else None
    warning = ""
    if known is None:
        try:
            warning = origin.freshen(lab, project)
        except SeamError as error:
            warning = f"origin was not fetched, so that this is what was last seen of it: {error}"
    if wish.commit:
        known = known or lab.repos.tip(repo, f"{ORIGIN}{wish.commit}")
        if known is None:
            raise ActRefused(f"Error: there is no commit {wish.commit} in {project.name}.")
        return known, wish.commit, warning
    branches = project.branches_for(wish.issue) if wish.issue else [project.default_branch]
    # What an agent has not pushed yet is here alone.
    places = (LOCAL, ORIGIN) if wish.issue else (ORIGIN,)
    for branch in branches:
        for place in places:
            known = lab.repos.tip(repo, f"{place}{branch}")
            if known is not None:
                return known, branch, warning
    raise ActRefused(f"Error: there is no branch {branches[0]} in {project.name}.")


def _refuse_lacking(
    lab: Lab, project: Project, terms: Terms, spec: Spec, span: tuple[str, str]
) -> None:
    """Changed code needs commands that can prove it; told before anything runs. Raises NotRun."""
    lacks = specs.lacking(terms, spec.scope)
    if not lacks:
        return
    base, commit = span
    changed = lab.repos.changes(project.repo(lab.paths), base, commit) if base else ()
    if file_kinds.has_code(one.path for one in changed) or not base or base == commit:
        raise NotRun(" ".join(lacks))


def _room(lab: Lab, project: Project, span: tuple[str, str], terms: Terms) -> Room:
    """A clean room whose places are named after this process, so that the next one finds its rest."""
    name = _own_name(lab)
    base, commit = span
    is_kept = terms.worktrees.keep_on_failure
    place = lab.paths.clean_rooms / (KEPT if is_kept else PLACE)
    return Room(
        project=project,
        commit=commit,
        base="" if base == commit else base,
        path=place / project.slug / name,
        folder=_outputs(lab) / name,
        mark=_mark(name),
        root=lab.paths.clean_rooms,
        keep_on_failure=is_kept,
    )


def _own_name(lab: Lab) -> str:
    stamp = f"{lab.now():%Y%m%dT%H%M%S%f}"
    return f"{stamp}_{lab.process.replace(':', '_')}"


def _mark(name: str) -> str:
    return f"lab-{hashlib.sha256(name.encode()).hexdigest()[:24]}"


def _tidy(lab: Lab) -> None:
    """Remove what killed commands left, and the output of all but the newest with what it kept."""
    for old in sorted(_outputs(lab).glob("*"), reverse=True)[MOST_FOLDERS:]:
        shutil.rmtree(old, ignore_errors=True)
    for path in left(lab.paths, lab.is_process_alive):
        _remove(lab, path)


def left(paths: Paths, is_alive: Callable[[str], bool | None]) -> list[Path]:
    """Clean worktrees that nobody works in any more, and that were not kept on purpose."""
    found = []
    for place in (PLACE, KEPT):
        for path in sorted((paths.clean_rooms / place).glob("*/*")):
            process = path.name.partition("_")[2].replace("_", ":")
            if not _kept_note(paths, path).exists() and is_alive(process) is False:
                found.append(path)
    return found


def _kept_note(paths: Paths, path: Path) -> Path:
    """A file beside its output says that a worktree is kept; it goes with that."""
    return paths.gates / PLACE / path.name / KEPT


def _note_kept(lab: Lab, path: Path) -> None:
    note = _kept_note(lab.paths, path)
    with contextlib.suppress(OSError):
        note.parent.mkdir(parents=True, exist_ok=True)
        note.touch()


def _outputs(lab: Lab) -> Path:
    return lab.paths.gates / PLACE


def _remove(lab: Lab, path: Path) -> None:
    """End what a killed command started, and remove its worktree and its end-to-end fixture."""
    project = Project.objects.filter(slug=path.parent.name).first()
    with contextlib.suppress(SeamError, OSError):
        lab.checks.end(_mark(path.name))
        if project is None:
            shutil.rmtree(path, ignore_errors=True)
            return
        room = Room(
            project=project,
            commit="",
            base="",
            path=path,
            folder=_outputs(lab) / path.name,
            mark=_mark(path.name),
        )
        e2e.settle(lab, room, specs.effective(terms_of(project), Scope.RUN_LEVEL).e2e)
        lab.repos.force_remove(project.repo(lab.paths), path)


@dataclass(slots=True)
class _Journal:
    """Tells each command as it begins and as it ends."""

    lines: Lines
    wanted: Callable[[], bool]
    told: int = 0
    is_open: bool = False

    def goes_on(self) -> bool:
        return self.wanted()

    def note(self, results: Sequence[Mapping[str, Any]], text: str = "") -> None:
        for one in results[self.told :]:
            if one["is_running"] and self.is_open:
                continue
            self.is_open = bool(one["is_running"])
            self.lines.command(one)
            self.told += not self.is_open
