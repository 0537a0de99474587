"""Carries out the clone of a new project: ready or failed, and what was there before is kept."""

from __future__ import annotations

import contextlib
import fcntl
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from django.db import transaction

from runs.core.ports import Lab, SeamError
from runs.core.states import NoticeKind, ProjectState
from runs.models import Project
from runs.projects import git_credentials
from runs.timeline import announce

CLONE_SECONDS = 3600.0
PATIENCE = timedelta(seconds=90)
PROGRESS_EVERY = timedelta(milliseconds=500)


def carry_out_clone(lab: Lab, project_id: int) -> None:
    """Clone a project in *cloning*; ends in *ready* or *failed*. Safe to call twice.

    A repository that lies there already and holds a branch is renamed and never removed: after a
    lost database it may be all that is left of agents' work.
    """
    with alone(lab, project_id) as is_ours:
        project = Project.objects.filter(pk=project_id, state=ProjectState.CLONING).first()
        if project is None or not is_ours:
            return
        made: list[Path] = []
        try:
            branch = _clone(lab, project, made)
        except (SeamError, OSError) as error:
            for repo in made:
                shutil.rmtree(repo, ignore_errors=True)
            _end(lab, project, ProjectState.FAILED, error=str(error))
            return
        _end(lab, project, ProjectState.READY, default_branch=branch)


@contextlib.contextmanager
def alone(lab: Lab, project_id: int) -> Iterator[bool]:
    """Whether nobody else clones or removes this project now.

    The system itself gives the lock back when its holder dies, so that a clone is taken over
    then and never before, however long it keeps quiet.
    """
    folder = lab.paths.state / "clones"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{project_id}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def _renew(lab: Lab, project: Project) -> None:
    """Until then nobody needs to ask whether the clone goes on."""
    Project.objects.filter(pk=project.pk).update(clone_deadline=lab.now() + PATIENCE)


def _clone(lab: Lab, project: Project, made: list[Path]) -> str:
    repo, origin = project.repo(lab.paths), project.origin(lab.paths)
    url = project.url
    _renew(lab, project)
    if project.is_hosted:
        _make_room(lab, origin, made)
        lab.repos.create_origin(origin, Path(project.source))
        url = str(origin)
        Project.objects.filter(pk=project.pk).update(url=url)
    _make_room(lab, repo, made)
    token = git_credentials.of_git(lab, project)
    lab.repos.create(repo, url, token)
    lab.repos.fetch(repo, token, progress=_ProgressLine(lab, project), timeout=CLONE_SECONDS)
    return lab.repos.default_branch(repo, token)


def _make_room(lab: Lab, repo: Path, made: list[Path]) -> None:
    """From here on the folder is this attempt's own, to be removed when the attempt fails."""
    lab.repos.set_aside(repo, f"{lab.now():%Y%m%dT%H%M%SZ}")
    made.append(repo)


class _ProgressLine:
    """Keeps the last line of git that tells how far it is, at most twice a second.

    Anything else, an empty text too, means that git still works.
    """

    def __init__(self, lab: Lab, project: Project) -> None:
        self._lab = lab
        self._pk = project.pk
        self._next = lab.now()

    def __call__(self, text: str) -> None:
        lines = text.replace("\r", "\n").split("\n")
        line = next((line.strip()[:200] for line in reversed(lines) if _tells_how_far(line)), "")
        now = self._lab.now()
        if now < self._next:
            return
        row = Project.objects.filter(pk=self._pk)
        if line:
            self._next = now + PROGRESS_EVERY
            row.update(clone_progress=line, clone_deadline=now + PATIENCE)
            self._lab.bell.timeline()
        else:
            row.update(clone_deadline=now + PATIENCE)


def _tells_how_far(line: str) -> bool:
    return "%" in line or line.rstrip().endswith("done.")


def _end(
    lab: Lab, project: Project, state: ProjectState, error: str = "", default_branch: str = ""
) -> None:
    with transaction.atomic():
        won = Project.objects.filter(pk=project.pk, state=ProjectState.CLONING).update(
            state=state,
            error=error,
            default_branch=default_branch or project.default_branch,
            clone_deadline=None,
        )
        if won and state is ProjectState.READY:
            announce.tell(
                lab,
                NoticeKind.PROJECT_READY,
                f"is ready, default branch {default_branch}",
                project=project,
            )
            transaction.on_commit(lambda: lab.queue.refresh(project.pk), robust=True)
        elif won:
            announce.tell(
                lab, NoticeKind.PROJECT_FAILED, f"could not be cloned: {error}", project=project
            )
