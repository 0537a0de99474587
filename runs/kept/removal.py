"""Removes a project: told first, refused while something is active, then carried out in the worker.

What origin does not have is kept in folders: branches and rescues in the reference repository, which
is renamed, rows in a file. Killed in the middle, the project stays in *removing* and a tick asks
again.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import chain
from pathlib import Path

from django.core import serializers
from django.db import transaction
from django.db.models import F, Model, Q, Value
from django.db.models.deletion import Collector
from django.db.models.functions import Concat

from runs.core import naming
from runs.core.kept_ports import Branch
from runs.core.ports import Lab, SeamError
from runs.core.refusal import ActRefused
from runs.core.states import NoticeKind, ProjectState, TrackerKind
from runs.kept import counts, owners, removal_rules, rescue, teardown
from runs.kept.removal_rules import Holdings
from runs.lifecycle.querysets import TO_TELL
from runs.models import (
    Attempt,
    CheckRun,
    Discarding,
    Fixer,
    Host,
    ManualSession,
    Monitor,
    Notice,
    Parked,
    Project,
    ProjectFile,
    Rescue,
    RetiredFile,
    Run,
    Validation,
    WatchSession,
    Workflow,
)
from runs.projects import cloning, git_credentials
from runs.pulls import mergeable
from runs.setup import after_run, commands
from runs.setup.commands import REMOVAL
from runs.timeline import announce
from trackers.base import PullState
from trackers.builtin import store
from trackers.builtin.models import Issue, PullRequest, Root

logger = logging.getLogger(__name__)

SOON = timedelta(seconds=10)
LOOKED_AT = 100
AT_ONCE = 500


class RemovalRefused(ActRefused):
    """Nothing was removed; the text says what to stop first."""

    code = "in_use"


def holdings(lab: Lab, project: Project) -> Holdings:
    """What a project holds now, asked of git and the database. Never raises for what git does."""
    parked, unpushed, uncommitted = _parked(lab, project)
    builtin = Q(root_id__in=[store.root_id(root) for root in _roots(project)])
    return Holdings(
        parked,
        unpushed,
        uncommitted,
        rescues=Rescue.objects.waiting().filter(project=project).count(),
        runs=project.runs.count(),
        watch_sessions=project.watch_sessions.count(),
        groups=project.task_groups.count(),
        issues=Issue.objects.filter(builtin).count(),
        pulls=PullRequest.objects.filter(builtin).count(),
        is_hosted=project.is_hosted,
    )


def to_stop(lab: Lab, project: Project) -> list[str]:
    """What has to be stopped or waited for before a project can go, as things to do.

    Raises SeamError when tmux does not answer: then nobody knows what is at work.
    """
    runs = list(Run.objects.filter(Q(outcome="") | Q(settled_at=None), project=project))
    found = [
        f"wait until run {run.pk} is cleaned up"
        if run.outcome
        else f"stop run {run.pk} (issue {run.issue_key})"
        for run in runs
    ]
    open_sessions = WatchSession.objects.filter(project=project, ended_at=None)
    found += [
        "turn automatic work off" if one.is_auto else f"stop watch session {one.pk}"
        for one in open_sessions
    ]
    found += [f"end session {pk}" for pk in _open(ManualSession, project)]
    found += [f"wait until validation {pk} is over" for pk in _open(Validation, project)]
    found += [f"wait until fixer {pk} is over" for pk in _open(Fixer, project)]
    workflows = Workflow.objects.filter(project=project, ended_at=None)
    found += [f"stop workflow {name}" for name in workflows.values_list("name", flat=True)]
    monitors = Monitor.objects.running().filter(group__project=project)
    names = monitors.values_list("group__name", flat=True)
    found += [f"end the monitor of group {name}" for name in names]
    found += [f"wait until {head} is merged" for head in _merging(lab, project)]
    found += _gates(project)
    discards = Discarding.objects.filter(project=project, error="")
    found += [f"wait until {one.branch} is discarded" for one in discards]
    known = {run.session for run in runs}
    for name in lab.sessions.look():
        parsed = naming.parse_session(name, project.keys)
        if parsed is not None and parsed.project == project.slug and name not in known:
            found.append(f"end the tmux session {name}")
    return found


def remove(lab: Lab, project: Project, by: str) -> None:
    """Have a project removed; from here on nothing of it starts. Safe to repeat.

    Raises RemovalRefused while something is active, SeamError when that could not be told.
    """
    refusal = removal_rules.refusal(project.name, to_stop(lab, project))
    if refusal:
        raise RemovalRefused(refusal)
    is_left = _is_left(lab, project)
    with transaction.atomic():
        rows = Project.objects.filter(pk=project.pk).exclude(state=ProjectState.REMOVING)
        won = rows.update(
            home="" if is_left else F("home"),
            state=ProjectState.REMOVING,
            error="",
            warning="",
            clone_progress="",
            clone_deadline=lab.now() + SOON,
        )
        if won:
            text = "is being removed"
            announce.tell(lab, NoticeKind.PROJECT_REMOVED, text, project=project, by=by)
            home = "" if is_left else project.home
            queue = lab.queue.on(home) if home else lab.queue
            transaction.on_commit(lambda: queue.clone(project.pk), robust=True)


def _is_here(lab: Lab, project: Project) -> bool:
    """Whether this host has to put its work away: the one that has its repository, or had none."""
    return project.home in ("", lab.host)


def _is_left(lab: Lab, project: Project) -> bool:
    """Whether the host that had its repository was taken out, so that any other one removes it."""
    there = Host.objects.filter(name=project.home, removed_at=None)
    return not _is_here(lab, project) and not there.exists()


def clone_or_remove(lab: Lab, project_id: int) -> None:
    """Clone or remove a project, as its state says. Safe to call twice."""
    cloning.carry_out_clone(lab, project_id)
    carry_out(lab, project_id)


def carry_out(lab: Lab, project_id: int) -> None:
    """Remove a project in *removing*: its work is put away first, its rows go last.

    Only on the host that has its repository, whose own tick finds it. Safe to call twice and to kill; what could not be done is told on the project and tried again.
    """
    with cloning.alone(lab, project_id) as is_ours:
        project = Project.objects.filter(pk=project_id, state=ProjectState.REMOVING).first()
        if project is None or not is_ours or not _is_here(lab, project):
            return
        try:
            waits = to_stop(lab, project) or _commands_at_work(lab, project)
            if waits:
                _note(lab, project, progress=f"Waits: {', '.join(waits)}"[:200])
                return
            _note(lab, project, patience=cloning.PATIENCE)
            kept = _put_away(lab, project)
        except (SeamError, OSError) as error:
            logger.warning("project was not removed", extra={"project": project.slug})
            _note(lab, project, error=str(error))
            return
        _forget(lab, project, kept)


def _commands_at_work(lab: Lab, project: Project) -> list[str]:
    """Ask for what the project runs before worktrees are removed; what is to be waited for."""
    if not commands.list_commands(project, REMOVAL):
        return []
    rows = Run.objects.filter(project=project, host=lab.host).exclude(worktree="")
    trees = set(rows.values_list("branch", "worktree"))
    found = [
        after_run.find_unprepared(lab, project, branch)
        for branch, tree in sorted(trees)
        if Path(tree).is_dir()
    ]
    runs = {run.pk: run for run in found if run is not None}
    return [
        f"wait until the commands before the removal of {run.branch} are over"
        for run in runs.values()
        if not after_run.are_over(lab, run, REMOVAL)
    ]


def _note(
    lab: Lab, project: Project, patience: timedelta = SOON, progress: str = "", error: str = ""
) -> None:
    rows = Project.objects.filter(pk=project.pk, state=ProjectState.REMOVING)
    until = lab.now() + patience
    rows.update(clone_progress=progress, error=error, clone_deadline=until)


def _open(model: type[Model], project: Project) -> Iterator[int]:
    rows = model._default_manager.filter(project=project, settled_at=None)
    yield from rows.order_by("pk").values_list("pk", flat=True)


def _gates(project: Project) -> Iterator[str]:
    """What the gates have still at work for runs that ended, and whose issue is to be closed.

    A tracker that refused is not waited for: nobody could remove the project of one that is gone.
    """
    attempts = Attempt.objects.filter(project=project, settled_at=None).exclude(run__outcome="")
    for pk in attempts.order_by("pk").values_list("run", flat=True):
        yield f"wait until the gates of run {pk} are over"
    checks = CheckRun.objects.filter(run__project=project, is_running=True)
    for pk in checks.exclude(run__outcome="").order_by("pk").values_list("pk", flat=True):
        yield f"wait until check {pk} is over"
    closings = Run.objects.filter(TO_TELL, project=project, close_asked_at__isnull=False)
    closings = closings.filter(tracker_retry_at=None).order_by("pk")
    for key in closings.values_list("issue_key", flat=True):
        yield f"wait until issue {key} is closed"


def _roots(project: Project) -> list[str]:
    """Its trackers that labsite keeps itself: the one in use, and one that it had before."""
    used = project.tracker_root if project.tracker == TrackerKind.BUILTIN else ""
    return [root for root in {used, project.builtin_root} if root.isdigit()]


def _merging(lab: Lab, project: Project) -> list[str]:
    roots = [store.root_id(root) for root in _roots(project)]
    rows = PullRequest.objects.filter(root_id__in=roots, state=PullState.OPEN)
    return [pull.head for pull in rows if mergeable.is_busy(pull, lab.now())]


def _parked(lab: Lab, project: Project) -> tuple[int | None, int | None, Sequence[str] | None]:
    """How many branches are parked, what origin lacks of them, and which have uncommitted work.

    None where another host would have to be asked.
    """
    repo = project.repo(lab.paths)
    others = Parked.objects.filter(project=project).exclude(host__in=("", lab.host))
    if others.exists() or not (_is_here(lab, project) or repo.is_dir()):
        return None, None, None
    if not repo.is_dir():
        return 0, 0, ()
    try:
        known = owners.remembered(project)
        found = counts.everything(lab, project, known)
        unpushed, dirty = 0, []
        for one in found[:LOOKED_AT]:
            path = counts.worktree_of(lab, one, known)
            if one.tip:
                unpushed += lab.repos.unpushed(repo, one.name, project.default_branch)
            if path is not None and teardown.unsaved(lab, repo, path, one.name) is not False:
                dirty.append(one.name)
    except SeamError as error:
        logger.info("what is parked is unknown", extra={"error": str(error)})
        return None, None, None
    return len(found), unpushed, dirty


def _put_away(lab: Lab, project: Project) -> list[Path]:
    """Keep what origin does not have, and remove the rest; where it is kept. Safe to repeat."""
    repo, stamp = project.repo(lab.paths), f"{lab.now():%Y%m%dT%H%M%SZ}"
    moved: list[Path] = []
    if repo.is_dir():
        # Without an answer of origin this may be the last copy of everything.
        is_whole = not _did_fetch(lab, project)
        with lab.repos.hold(repo):
            try:
                heads = lab.repos.branches(repo, ("",))
            except SeamError:
                heads, is_whole = (), True
            moved = _clear_worktrees(lab, project, heads, stamp)
            if not is_whole:
                _drop_pushed(lab, project, heads)
            lab.repos.set_aside(repo, stamp, always=is_whole, trees=moved)
    if project.is_hosted:
        lab.repos.set_aside(project.origin(lab.paths), stamp)
    places = (repo, project.origin(lab.paths))
    there = [sorted(place.parent.glob(f"{place.name}.kept-*")) for place in places]
    return [*chain.from_iterable(there), *moved, _write_rows(lab, project, stamp)]


def _did_fetch(lab: Lab, project: Project) -> bool:
    try:
        token = git_credentials.of_git(lab, project)
        lab.repos.fetch(project.repo(lab.paths), token, url=project.url)
    except SeamError as error:
        logger.info("origin was not asked", extra={"error": str(error)})
        return False
    return True


def _clear_worktrees(lab: Lab, project: Project, heads: Sequence[Branch], stamp: str) -> list[Path]:
    """Rescue and remove each worktree; one that a rescue cannot hold is renamed as it lies there."""
    repo = project.repo(lab.paths)
    by_path = {Path(one.worktree): one for one in heads if one.worktree}
    tips = {one.name: one for one in heads}
    for name, known in owners.remembered(project).items():
        if known.worktree and name in tips:
            by_path.setdefault(lab.paths.worktrees / known.worktree, tips[name])
    moved = []
    for path in dict.fromkeys([*by_path, *lab.repos.registered(repo)]):
        if not path.is_dir() or not teardown.is_ours(lab, path):
            continue
        try:
            branch = by_path.get(path)
            tip = branch.tip if branch else lab.repos.standing(repo, path).head
            name = branch.name if branch else path.name
            why, stays = "the project was removed", branch is not None
            rescue.keep(lab, project, name, tip, path, why=why, tip_stays=stays)
            lab.repos.force_remove(repo, path)
        except SeamError as error:
            logger.info("a worktree is kept as it lies", extra={"error": str(error)})
            moved.append(path.rename(path.with_name(f"{path.name}.kept-{stamp}")))
    return moved


def _drop_pushed(lab: Lab, project: Project, heads: Sequence[Branch]) -> None:
    """Branches of which origin has every commit, unless somebody else has them checked out.

    One of which that cannot be told stays, as where origin's default branch is gone.
    """
    repo = project.repo(lab.paths)
    for one in heads:
        if one.worktree and Path(one.worktree).is_dir():
            continue
        try:
            if lab.repos.unpushed(repo, one.name, project.default_branch) == 0:
                lab.repos.delete_branch(repo, one.name, one.tip)
        except SeamError as error:
            logger.info("a branch is kept", extra={"branch": one.name, "error": str(error)})


def _write_rows(lab: Lab, project: Project, stamp: str) -> Path:
    """Everything that the database has of a project, without its secrets, as a private JSON file."""
    folder = lab.paths.state / "removed"
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{project.slug}-{stamp}.json"
    with path.open("w") as file:
        path.chmod(0o600)
        serializers.serialize("json", _rows(project), indent=1, stream=file)
    return path


def _rows(project: Project) -> Iterator[Model]:
    """Whole rows, a piece at a time: the collector itself loads little more than their keys."""
    for row in (project, *Root.objects.filter(pk__in=_roots(project))):
        collector = Collector(using="default")
        collector.collect([row])
        keys = {model: sorted(one.pk for one in some) for model, some in collector.data.items()}
        wanted = [
            model._base_manager.filter(pk__in=found[start : start + AT_ONCE])
            for model, found in keys.items()
            for start in range(0, len(found), AT_ONCE)
        ]
        for rows in (*wanted, *collector.fast_deletes):
            many = [field.name for field in rows.model._meta.many_to_many]
            for one in rows.prefetch_related(*many).iterator(chunk_size=AT_ONCE):
                if isinstance(one, Project):
                    one.token = one.hook_secret = ""
                if isinstance(one, ProjectFile | RetiredFile):
                    one.content = ""
                yield one


def _forget(lab: Lab, project: Project, kept: Sequence[Path]) -> None:
    """Remove the rows, many of them a piece at a time; what people did stays in the audit log."""
    runs = list(project.runs.values_list("pk", flat=True))
    fixers = Fixer.objects.filter(project=project).values_list("pk", flat=True)
    folders = [lab.paths.run_folder(pk) for pk in runs]
    folders += [lab.paths.fixer_folder(pk) for pk in fixers]
    for gone in (
        *Attempt.objects.filter(project=project),
        *CheckRun.objects.filter(run__project=project),
    ):
        folders.append(gone.folder(lab.paths))
    folders += [one.folder(lab.paths) for one in Validation.objects.filter(project=project)]
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    told = Notice.objects.filter(project=project)
    named = Concat(Value(f"{project.name}: "), F("text"))
    told.exclude(by="").update(project=None, run=None, group=None, watch=None, text=named)
    for model in (Notice, Run):
        rows = model._default_manager.filter(project=project).order_by("pk")
        while some := list(rows.values_list("pk", flat=True)[:AT_ONCE]):
            model._default_manager.filter(pk__in=some).delete()
    with transaction.atomic():
        Project.objects.filter(pk=project.pk, state=ProjectState.REMOVING).delete()
        for root in _roots(project):
            store.drop_root(root)
        places = ", ".join(str(path) for path in kept)
        text = f"{project.name} was removed. What it held is kept in {places}"
        announce.tell(lab, NoticeKind.PROJECT_REMOVED, text)
