"""Asks the outside what it shows now. Errors become "could not tell"; nothing is changed here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from runs.core.history_ports import Change, Commit
from runs.core.ports import Lab, SeamError
from runs.models import Run
from runs.transcript import screens

SCROLLBACK_LINES = 1000
PATCH_BYTES = 400_000
MOST_COMMITS = 50


@dataclass(frozen=True, slots=True)
class Screen:
    """A session's screen with its colours, and when it was seen. `live`: it is being read from tmux."""

    text: str
    as_of: datetime | None
    live: bool
    error: str = ""


@dataclass(frozen=True, slots=True)
class Changes:
    """What a run changed since its fork point. `error` says why that could not be told."""

    files: Sequence[Change] = ()
    commits: Sequence[Commit] = ()
    patch: str = ""
    is_cut: bool = False
    error: str = ""

    @property
    def added(self) -> int:
        return sum(change.added or 0 for change in self.files)

    @property
    def uncommitted(self) -> int:
        """How many of the files are not committed, at least not all of them."""
        return sum(change.is_open for change in self.files)

    @property
    def removed(self) -> int:
        return sum(change.removed or 0 for change in self.files)


def terminal(lab: Lab, run: Run) -> Screen:
    """The agent's output: live while the session exists, else the last words that were kept."""
    lab = lab.at(run.host)
    if run.settled_at is not None or not run.did_start:
        words = run.last_words or run.last_line  # a session killed from outside leaves no screen
        return Screen(words, run.exited_at or run.ended_at, live=False)
    try:
        text = lab.sessions.screens([run.session], SCROLLBACK_LINES).get(run.session)
    except SeamError as error:
        return Screen(run.last_words, run.last_output_at, live=False, error=str(error))
    if text is None:
        return Screen(run.last_words, run.exited_at, live=False)
    return Screen(screens.tidy(text), lab.now(), live=run.is_active)


def changes(lab: Lab, run: Run) -> Changes:
    """What the run changed, committed or not: its worktree, or once that is gone its branch.

    A newer run of the issue has the same worktree and branch; then only what is known of its own
    last commit. One query, only for a run that has ended.
    """
    if not run.fork_point:
        return Changes()
    lab = lab.at(run.host)
    is_others = bool(run.outcome) and _has_newer(run)
    path, head = Path(run.worktree), ""
    try:
        if is_others or not run.worktree or not lab.repos.has(path):
            path = run.project.repo(lab.paths)
            head = run.head if is_others else _tip(lab, run, path) or run.head
            if not head or head == run.fork_point:
                return Changes()
        files = lab.repos.changes(path, run.fork_point, head)
        patch = lab.repos.patch(path, run.fork_point, PATCH_BYTES, head)
    except SeamError as error:
        return Changes(error=str(error))
    commits = _commits(lab, path, run.fork_point, head or "HEAD")
    return Changes(files, commits, patch, is_cut=_is_cut(files, patch))


def _has_newer(run: Run) -> bool:
    rows = Run.objects.filter(project=run.project_id, branch=run.branch, pk__gt=run.pk)
    return rows.exclude(worktree="").exists()


def _tip(lab: Lab, run: Run, repo: Path) -> str | None:
    """Where its branch stands; an agent that died committed what no tick saw."""
    try:
        return lab.repos.tip(repo, f"refs/heads/{run.branch}")
    except SeamError:
        return None


def _commits(lab: Lab, path: Path, fork_point: str, head: str) -> Sequence[Commit]:
    """Newest first; none where they cannot be listed, of which the diff says enough."""
    try:
        return lab.repos.commits(path, fork_point, head, MOST_COMMITS)
    except SeamError:
        return ()


def _is_cut(files: Sequence[Change], patch: str) -> bool:
    """Whether tracked files are missing from the patch because it was too long."""
    return patch.count("\ndiff --git ") + patch.startswith("diff --git ") < sum(
        f.kind != "?" for f in files
    )
