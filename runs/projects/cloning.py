"""Carries out the clone of a new project: ready or failed, and what was there before is kept."""

from __future__ import annotations

import contextlib
import fcntl
import logging
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
STEP_SECONDS = 0.5
PROGRESS_EVERY = timedelta(milliseconds=500)

logger = logging.getLogger(__name__)


def carry_out_clone(lab: Lab, project_id: int) -> None:
    """Clone a project in *cloning*; ends in *ready* or *failed*. Safe to call twice.

    A repository that lies there already and holds a branch is renamed and never removed: after a
    lost database it may be all that is left of agents' work.
    """
    with alone(lab, project_id) as is_ours:
        project = Project.objects.filter(pk=project_id, state=ProjectState.CLONING).first()
        if project is None or not is_ours or not _is_home(lab, project):
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


def _is_home(lab: Lab, project: Project) -> bool:
    """Whether this host clones it first; whoever comes first where none was named."""
    unclaimed = Project.objects.filter(pk=project.pk, home__in=("", lab.host))
    return bool(unclaimed.update(home=lab.host))


def bring_here(lab: Lab, project: Project) -> bool:
    """Clone a ready project of another host on this one too; False when its clone is here already.

    Nobody finds half a clone: it is made aside and renamed. Raises SeamError, and then nothing is
    left of it.
    """
    repo = project.repo(lab.paths)
    put_foreign_aside(lab, project)
    if project.home in ("", lab.host) or repo.is_dir():
        return False
    if project.is_hosted:
        raise SeamError(
            f"its repository is kept on host {project.home}, and {lab.host} has no clone of it"
        )
    _wait_alone(lab, project, repo)
    return True


def put_foreign_aside(lab: Lab, project: Project) -> None:
    """Rename a clone of another repository that lies here under the project's name, worktrees too.

    A removed project of that name left it: its removal tidied up its own host. Taken for this one's,
    its branches would claim issues, and agents would push to its origin. Raises SeamError.
    """
    if not _is_foreign(lab, project):
        return
    with alone(lab, project.pk) as is_ours:
        if is_ours and _is_foreign(lab, project):  # not one that was made meanwhile
            _put_aside(lab, project.repo(lab.paths))


def _is_foreign(lab: Lab, project: Project) -> bool:
    repo = project.repo(lab.paths)
    if project.home in ("", lab.host) or not repo.is_dir():
        return False
    return lab.repos.remote_url(repo) not in (None, project.url)


def _put_aside(lab: Lab, repo: Path) -> None:
    stamp = f"{lab.now():%Y%m%dT%H%M%SZ}"
    logger.warning("a clone of another project was put aside", extra={"repo": repo.name})
    with lab.repos.hold(repo):
        trees = [path for path in lab.repos.registered(repo) if path.is_dir()]
        try:
            moved = [path.rename(path.with_name(f"{path.name}.kept-{stamp}")) for path in trees]
        except OSError as error:
            raise SeamError(f"a worktree could not be put aside: {error.strerror}") from error
        lab.repos.set_aside(repo, stamp, always=True, trees=moved)


def _wait_alone(lab: Lab, project: Project, repo: Path) -> None:
    for _ in range(int(CLONE_SECONDS / STEP_SECONDS)):
        with alone(lab, project.pk) as is_ours:
            if repo.is_dir():
                return
            if is_ours:
                _clone_aside(lab, project, repo)
                return
        lab.pause(STEP_SECONDS)
    raise SeamError("another clone of the repository did not end in an hour")


def _clone_aside(lab: Lab, project: Project, repo: Path) -> None:
    aside = repo.with_name(f"{project.slug}.part")
    shutil.rmtree(aside, ignore_errors=True)
    token = git_credentials.of_git(lab, project)
    try:
        lab.repos.create(aside, project.url, token)
        lab.repos.fetch(aside, token, timeout=CLONE_SECONDS)
        aside.rename(repo)
    except OSError as error:
        shutil.rmtree(aside, ignore_errors=True)
        raise SeamError(f"the clone could not be kept: {error.strerror}") from error
    except SeamError:
        shutil.rmtree(aside, ignore_errors=True)
        raise


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
