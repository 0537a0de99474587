"""Discard: a person lets parked work go, here and on origin, at once or in the worker. It is rescued first."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from django.db import IntegrityError, InterfaceError, OperationalError, transaction
from django.db.models import QuerySet

from runs.core import database, lease, naming
from runs.core.kept_ports import Branch
from runs.core.ports import Lab, Moved, Rejected, SeamError, UnremovableError
from runs.core.refusal import ActRefused
from runs.core.states import NoticeKind, Outcome, TrackerKind
from runs.forges import cadence
from runs.kept import counts, discard_rules, owners, rescue, teardown
from runs.models import Discarding, Parked, Project, Rescue, Run, StartRequest
from runs.projects import git_credentials
from runs.pulls import acts as pulls
from runs.pulls import mergeable
from runs.setup import after_run
from runs.setup.commands import REMOVAL
from runs.timeline import announce
from trackers.base import PullState, TrackerError
from trackers.builtin.models import PullRequest

logger = logging.getLogger(__name__)


class DiscardRefused(ActRefused):
    """Nothing was removed. `code` is for programs, the text for a person."""


@dataclass(frozen=True, slots=True)
class Discarded:
    """What holds the work now, and what became of it on origin, as sentences or empty."""

    rescue: Rescue
    on_origin: str = ""


@dataclass(frozen=True, slots=True)
class _Pushed:
    """Origin's branch of the same name: a commit that the base does not hold, None when there is
    none; `error` when origin could not be asked."""

    tip: str | None = None
    error: str = ""


def accepted(project: Project, branch: str) -> str:
    """What accepted work a discard of this branch would give up, in sentences; empty without any."""
    row = _accepted(project, branch).order_by("-pk").first()
    if row is None:
        return ""
    found = discard_rules.Accepted(
        row.pk, row.issue_key, row.accepted_commit, row.close_asked_at is not None
    )
    return discard_rules.warning(found)


def accepted_among(project: Project, branches: Sequence[str]) -> frozenset[str]:
    """Those of these branches that hold such work."""
    rows = _accepted(project, *branches).values_list("branch", flat=True)
    return frozenset(rows) if branches else frozenset()


def _accepted(project: Project, *branches: str) -> QuerySet[Run]:
    """Runs on these branches that their gates accepted and whose issue labsite has still to close."""
    rows = Run.objects.filter(project=project, branch__in=branches, outcome=Outcome.SUCCEEDED)
    return rows.filter(closed_at=None).exclude(accepted_commit="")


def check(lab: Lab, project: Project, branch: str) -> None:
    """Raise DiscardRefused or SeamError for what `discard` would not even begin."""
    _check_name(project, branch)
    _check_merge(lab, project, branch)
    _look(lab, project, branch, _Pushed())


def discard(
    lab: Lab,
    project: Project,
    branch: str,
    by: str,
    tell: Callable[[int], None] | None = None,
    even_accepted: bool = False,
) -> Discarded:
    """Remove a parked branch and its worktree, whatever their state, and its branch on origin.

    What origin has under that name would keep the next run of the issue from pushing, and an open
    pull request of it would pass for that run's delivery. What origin does not let go stays, and
    the answer says so. Of a branch that is gone its worktree goes. Killed in the middle, it is
    still parked, here or on origin, and the rescues are there; pressed again it goes on. With
    `tell` it may take hours, and hears of the bytes stored. Accepted work whose issue labsite has
    still to close goes `even_accepted` alone, and that issue stays open then. Raises DiscardRefused,
    and SeamError when something could not be told, kept or removed.
    """
    _check_name(project, branch)
    if not even_accepted:
        _check_accepted(project, branch)
    repo = project.repo(lab.paths)
    _check_merge(lab, project, branch)
    there = _on_origin(lab, project, branch)
    with lab.repos.hold(repo):
        found, path = _look(lab, project, branch, there)
        _check_commands(lab, project, branch)
        states: list[tuple[str, Path | None, str]] = []
        if there.tip is not None and (found is None or there.tip != found.tip):
            states.append((there.tip, None, f"discarded by {by}: what origin had"))
        if found is not None or path is not None:
            tip = found.tip if found is not None else _stands_at(lab, project, path)
            states.append((tip, path, f"discarded by {by}"))
        for tip, place, why in states:
            kept = rescue.keep(
                lab, project, branch, tip, place, why=why, by=by, always=True, tell=tell
            )
        assert kept is not None  # noqa: S101  (always)
        if path is not None:
            _remove(lab, repo, path, branch)
        if found is not None:
            lab.repos.delete_branch(repo, branch, found.tip)
    # Not while others wait for the repository: a push may take a minute.
    told = _let_go_on_origin(lab, project, branch, there, by)
    _tell(lab, project, branch, by, told)
    counts.take(lab, project)
    return Discarded(kept, told)


def _check_commands(lab: Lab, project: Project, branch: str) -> None:
    """Ask for what the project runs before a worktree is removed; DiscardRefused until it is over."""
    run = after_run.find_unprepared(lab, project, branch)
    if run is not None and not after_run.are_over(lab, run, REMOVAL):
        text = (
            f"The commands that {project.name} runs before a worktree is removed run first. Nothing "
            f"was removed. Discard {branch} again once they have ended."
        )
        raise DiscardRefused(text, code=COMMANDS_RUN)


def _remove(lab: Lab, repo: Path, path: Path, branch: str) -> None:
    """Raises DiscardRefused for what only a person can remove, and SeamError."""
    try:
        lab.repos.force_remove(repo, path)
    except UnremovableError as error:
        text = f"{branch} was kept whole under Rescued, and its branch is still here. {error}"
        text += f" Then discard {branch} again."
        raise DiscardRefused(text, code="not_removable") from error


def _check_accepted(project: Project, branch: str) -> None:
    if said := accepted(project, branch):
        text = f"{said} Nothing was removed. Say so explicitly to discard it all the same."
        raise DiscardRefused(text, code="accepted")


def _check_name(project: Project, branch: str) -> None:
    if not naming.is_managed(branch, project.managed_prefixes):
        text = f"{branch} is not a branch that labsite manages, so nothing was removed."
        raise DiscardRefused(text, code="not_managed")


def _look(
    lab: Lab, project: Project, branch: str, there: _Pushed
) -> tuple[Branch | None, Path | None]:
    """The branch and its worktree, as far as they are here. Raises as `discard` does."""
    branches = lab.repos.branches(project.repo(lab.paths), (branch,))
    found = next((one for one in branches if one.name == branch), None)
    path = _folder_of(lab, project, branch, found)
    _check_there(lab, project, branch, found is not None or path is not None, there)
    _check_place(lab, path)
    return found, path


def _folder_of(lab: Lab, project: Project, branch: str, found: Branch | None) -> Path | None:
    """The worktree that goes with a branch, or what is left of one whose branch is gone."""
    known = owners.remembered(project)
    if found is not None:
        return counts.worktree_of(lab, found, known)
    lost = (one for one in counts.everything(lab, project, known) if one.name == branch)
    return next((Path(one.worktree) for one in lost if not one.tip), None)


def _stands_at(lab: Lab, project: Project, path: Path | None) -> str:
    """The commit that a worktree without its branch stands on; the base where git cannot tell."""
    repo = project.repo(lab.paths)
    head = lab.repos.standing(repo, path).head if path is not None else ""
    return head or lab.repos.upstream(repo, project.default_branch)


def _check_there(lab: Lab, project: Project, branch: str, is_here: bool, there: _Pushed) -> None:
    """Raises DiscardRefused for what is gone or somebody's, SeamError for what nobody can tell."""
    if not is_here and there.error:
        raise SeamError(f"there is none here, and origin could not be asked: {there.error}")
    if not is_here and there.tip is None:
        raise DiscardRefused(
            f"There is no branch {branch} any more. Nothing was removed.", code="gone"
        )
    if counts.is_live(lab, project, branch, lab.sessions.look()):
        text = f"A live session works on {branch}, so nothing was removed. Stop it first."
        raise DiscardRefused(text, code="owned")


def _check_merge(lab: Lab, project: Project, branch: str) -> None:
    """Nothing is taken from under a merge that somebody has begun."""
    if project.tracker != TrackerKind.BUILTIN or not project.tracker_root.isdigit():
        return
    rows = PullRequest.objects.filter(
        root_id=int(project.tracker_root), head=branch, state=PullState.OPEN
    )
    if any(mergeable.is_busy(pull, lab.now()) for pull in rows):
        text = f"Somebody is merging {branch} just now, so nothing was removed. Try again."
        raise DiscardRefused(text, code="owned")


def _on_origin(lab: Lab, project: Project, branch: str) -> _Pushed:
    """What origin has under that name now; what its base holds already keeps nobody from pushing."""
    repo = project.repo(lab.paths)
    try:
        token = git_credentials.of_git(lab, project)
        tip = lab.repos.pushed(repo, branch, token, project.url)
        if tip is not None and lab.repos.tip(repo, f"refs/remotes/origin/{branch}") != tip:
            lab.repos.fetch(repo, token, url=project.url)
        if tip is None or not lab.repos.is_ahead(repo, tip, project.default_branch):
            return _Pushed()
    except SeamError as error:
        logger.info("origin was not asked", extra={"branch": branch, "error": str(error)})
        return _Pushed(error=str(error))
    return _Pushed(tip)


def _let_go_on_origin(lab: Lab, project: Project, branch: str, there: _Pushed, by: str) -> str:
    """Close the pull requests of a branch and delete it on origin; what came of it, in sentences.

    A forge closes pull requests by itself when their branch is deleted.
    """
    if there.error:
        return (
            f"Origin could not be asked whether it has {branch} too ({there.error}). If it has, "
            "discard it again once origin answers."
        )
    closed = _close_pulls(lab, project, branch, by)
    if there.tip is None:
        return closed
    repo = project.repo(lab.paths)
    try:
        token = git_credentials.of_git(lab, project)
        lab.repos.delete_pushed(repo, branch, there.tip, token, project.url)
    except (Moved, Rejected) as error:
        said = (
            f"Origin kept its branch {branch}: {error}. Delete it there, or no run can push to it."
        )
    except SeamError as error:
        said = f"Whether origin let its branch {branch} go is not known: {error}."
    else:
        said = f"{branch} was deleted on origin too."
    return f"{closed} {said}".strip()


def _close_pulls(lab: Lab, project: Project, branch: str, by: str) -> str:
    """Close what is open of the branch in the built-in tracker."""
    tracker = lab.tracker_for(project.tracker)
    if tracker is None or project.tracker != TrackerKind.BUILTIN:
        return ""
    root = project.tracker_root
    closed = []
    try:
        for pull in tracker.pulls({root: [branch]})[root] or ():
            is_open = pull.state is PullState.OPEN and pull.head == branch
            if is_open and pulls.close(lab, project, pull.number, by=by):
                closed.append(str(pull.number))
    except TrackerError as error:
        return f"Its pull request was not closed: {error}"
    return f"Pull request {', '.join(closed)} was closed." if closed else ""


def _check_place(lab: Lab, path: Path | None) -> None:
    if path is not None and not teardown.is_ours(lab, path):
        text = (
            f"Its worktree {path} was not made by labsite, so nothing was removed. "
            "Remove that worktree yourself, then discard the branch."
        )
        raise DiscardRefused(text, code="not_ours")


def _tell(lab: Lab, project: Project, branch: str, by: str, on_origin: str) -> None:
    key = project.claimed_key(branch) or ""
    free = f"; issue {key} can be claimed again" if key else ""
    with transaction.atomic():
        text = f"{branch} was discarded with its worktree{free}"
        text = f"{text}. {on_origin}" if on_origin else text
        # Nothing is left to be proven or pushed: labsite does not close that issue any more.
        if _accepted(project, branch).update(accepted_commit="", close_asked_at=None):
            text = f"{text.rstrip('.')}. The work was accepted; its issue stays open"
        announce.tell(lab, NoticeKind.WORK_DISCARDED, text, project=project, issue_key=key, by=by)
        cadence.wake(lab, project.pk)
        transaction.on_commit(lambda: lab.bell.look(project.slug), robust=True)


COMMANDS_RUN = "commands_run"
LARGE = 64 * 1024 * 1024
TAKEN_WITHIN = timedelta(minutes=2)
TOLD_EVERY = timedelta(seconds=1)
NO_DATABASE = (OperationalError, InterfaceError)
_CARRIED_OUT: set[tuple[str, int]] = set()  # what this process is at, whatever its rows say


def begin(
    lab: Lab, project: Project, branch: str, by: str, *, even_accepted: bool = False
) -> Discarded | Discarding:
    """Discard at once what is small, and have the worker discard what is large or waits for commands.

    Raises DiscardRefused and SeamError as `discard.discard` does.
    """
    if not even_accepted:
        _check_accepted(project, branch)
    weight = _weight(lab, project, branch)
    _refuse_second(project, branch)
    if weight is not None and weight < LARGE:
        try:
            done = discard(lab, project, branch, by, even_accepted=True)
        except DiscardRefused as refused:
            if refused.code != COMMANDS_RUN:
                raise
        else:
            Discarding.objects.filter(project=project, branch=branch).delete()
            return done
    check(lab, project, branch)
    try:
        with transaction.atomic():
            Discarding.objects.filter(project=project, branch=branch).exclude(error="").delete()
            row = Discarding.objects.create(
                project=project, branch=branch, by=by, total=weight or 0, asked_at=lab.now()
            )
    except IntegrityError:  # somebody pressed in the same moment
        _refuse_second(project, branch)
        raise
    lab.queue.discard(row.pk)
    return row


def describe_wait(project: Project, branch: str) -> str:
    """Say why a discard goes on in the worker."""
    if project.setup_removal:
        return f"{branch} is being discarded, after the project's commands before removal."
    return f"{branch} is being discarded. It holds large files, which are rescued first."


def of(project: Project) -> Sequence[Discarding]:
    """What is being discarded, and what could not be."""
    return list(Discarding.objects.filter(project=project).order_by("pk"))


def carry_out(lab: Lab, pk: int) -> None:
    """Discard what was asked for. Safe to call twice; killed in the middle, it is begun again."""
    key = (lab.process, pk)
    if key in _CARRIED_OUT:
        return
    _CARRIED_OUT.add(key)
    try:
        mine = Discarding.objects.filter(pk=pk, error="", process="")
        if mine.update(process=lab.process):
            _carry_out(lab, pk)
    finally:
        _CARRIED_OUT.discard(key)


def _carry_out(lab: Lab, pk: int) -> None:
    row = Discarding.objects.select_related("project").get(pk=pk)
    why = ""
    try:
        # Whoever asked was told what is given up before the row was made.
        discard(lab, row.project, row.branch, row.by, _told(lab, row.pk), even_accepted=True)
    except DiscardRefused as error:
        if error.code == COMMANDS_RUN:  # their end asks for it again, and so does `tend`
            mine = Discarding.objects.filter(pk=pk, process=lab.process)
            mine.update(process="", asked_at=lab.now())
            return
        # Killed after it was done, or there was nothing: the new run is asked for all the same.
        why = "" if row.restarts and error.code == "gone" else str(error)
    except SeamError as error:
        why = str(error)
    except NO_DATABASE as error:
        logger.warning("a discard lost the database", extra={"error": str(error)})
        why = "the database went away meanwhile. Discard it again to go on where it stopped"
    except Exception as error:
        logger.exception("a discard failed by a mistake of ours", extra={"branch": row.branch})
        why = f"labsite made a mistake ({type(error).__name__}); see its log"
    database.renew_connection()
    rows = Discarding.objects.filter(pk=pk, process=lab.process)
    try:
        if why:
            rows.update(error=why, process="")
        else:
            _done(lab, row)
    except NO_DATABASE as error:  # `tend` begins it again
        logger.warning("the end of a discard was not stored", extra={"error": str(error)})
        database.renew_connection()


def _done(lab: Lab, row: Discarding) -> None:
    """Forget what was carried out, and ask for the new run that was wanted; both or neither."""
    with transaction.atomic():
        gone, _ = Discarding.objects.filter(pk=row.pk, process=lab.process).delete()
        if not gone or not row.restarts:
            return
        StartRequest.objects.create(
            project=row.project, by=row.by, wanted_key=row.restarts, at=lab.now()
        )
        transaction.on_commit(lambda: lab.bell.look(row.project.slug), robust=True)


def tend(lab: Lab) -> None:
    """Ask again for what no worker carries out any more."""
    for row in Discarding.objects.filter(error=""):
        if _is_kept_elsewhere(lab, row):
            continue
        is_lost = not row.process and lab.now() - row.asked_at > TAKEN_WITHIN
        if row.process and _is_gone(lab, row):
            is_lost = True
        if row.process == lab.process and (row.process, row.pk) not in _CARRIED_OUT:
            is_lost = True  # its end could not be stored
        same = Discarding.objects.filter(pk=row.pk, error="", process=row.process)
        if is_lost and same.update(process="", asked_at=lab.now()):
            lab.queue.discard(row.pk)


def _is_kept_elsewhere(lab: Lab, row: Discarding) -> bool:
    """Whether another host has the branch and this one has not: that host carries it out."""
    hosts = _keepers(row)
    return bool(hosts) and lab.host not in hosts


def _is_gone(lab: Lab, row: Discarding) -> bool:
    """Whether nobody carries it out any more; where this host alone has the branch, nobody else did."""
    if _keepers(row) == {lab.host}:
        return lab.is_process_alive(row.process) is False
    return lease.is_gone(lab, row.process)


def _keepers(row: Discarding) -> set[str]:
    """The hosts that are known to have the branch."""
    kept = Parked.objects.filter(project=row.project_id, branch=row.branch)
    return set(kept.values_list("host", flat=True))


def _refuse_second(project: Project, branch: str) -> None:
    """Raise DiscardRefused while the same branch is being discarded."""
    if Discarding.objects.filter(project=project, branch=branch, error="").exists():
        text = f"{branch} is being discarded already. Its page shows how far it is."
        raise DiscardRefused(text, code="owned")


def _weight(lab: Lab, project: Project, branch: str) -> int | None:
    """Bytes that have to be stored first; None when they could not be counted soon."""
    if not naming.is_managed(branch, project.managed_prefixes):
        return 0
    repo = project.repo(lab.paths)
    known = owners.remembered(project)
    try:
        found = (one for one in counts.everything(lab, project, known) if one.name == branch)
        path: Path | None = next((counts.worktree_of(lab, one, known) for one in found), None)
        return lab.repos.weight(repo, path) if path is not None else 0
    except SeamError as error:
        logger.info("kept work was not weighed", extra={"branch": branch, "error": str(error)})
        return None


def _told(lab: Lab, pk: int) -> Callable[[int], None]:
    """Store how many bytes are there, at most once a second."""
    next_at: datetime | None = None

    def tell(done: int) -> None:
        nonlocal next_at
        now = lab.now()
        if next_at is None or now >= next_at or next_at - now > TOLD_EVERY:
            next_at = now + TOLD_EVERY
            Discarding.objects.filter(pk=pk).update(done=done)

    return tell
