"""Settles ended runs: end the session, deal with the worktree, free the slot. Safe to repeat.

A run that is held loses its session alone.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from django.db import transaction

from runs.conversation import keeping
from runs.core import budgets, writing
from runs.core.ports import Exit, Lab, SeamError, Sighting, UnremovableError
from runs.core.states import NoticeKind, Outcome, WorktreeFate
from runs.guard import acts as guard
from runs.kept import counts, rescue
from runs.kept import teardown as kept_teardown
from runs.kept.teardown_rules import may_close, teardown
from runs.models import CheckRun, LoopIssue, Run
from runs.setup import after_run, commands, preparation
from runs.setup.commands import AFTER, REMOVAL
from runs.timeline import announce
from runs.transcript import hook_events, listening, own_usage, screens

logger = logging.getLogger(__name__)

MOST_NAMED = 5
LAST_WORDS_LINES = 200
LAST_WORDS_BYTES = 60_000
LEFT_BRANCH = (
    "The worktree holds work on the branch {} of an issue that was given back, so both were kept. "
    "The issue is claimed until the branch is discarded."
)
FORGOTTEN: Mapping[str, object] = {"link_waits": False, "deep_link": ""}


def settle(lab: Lab, run: Run) -> bool:
    """Do what the outcome asks for; True when the run is settled.

    A session that could not be ended, or a failed start that could not be undone, leaves the run
    unsettled, and the next tick tries again, as while the worker runs the project's commands after a
    run; whatever else fails, as files of another user, becomes
    a warning on the run and stops nothing.
    """
    with suppress(SeamError):
        # First of all, since what it delivered may be looked at, and origin fetched, while it closes.
        lab.repos.ref(run.project.repo(lab.paths), f"refs/heads/{run.branch}")
    if _may_close(lab, run):
        return False
    # Once its end was tried, the screen may be that of a program that is ending.
    seen = {} if run.warning and run.last_words else read_last_words(lab, run)
    try:
        _end_checks(lab, run)
        lab.sessions.kill(run.session, run.marker(lab.paths))
    except SeamError as error:
        logger.warning("session was not ended", extra={"run_id": run.pk, "error": str(error)})
        if seen:
            Run.objects.unsettled().filter(pk=run.pk).update(**seen)
        _warn(
            lab,
            run,
            f"The session could not be ended yet: {error}. It is tried again at every tick.",
        )
        return False
    guard.check_shared(lab, run.project)
    guard.check_own(lab, run)
    stuck = ""
    try:
        _undo_start(lab, run)
    except UnremovableError as error:
        stuck = str(error)  # no further try of ours would remove it
    except SeamError as error:
        text = f"The start could not be undone yet: {error}. It is tried again at every tick."
        _warn(lab, run, text)
        return False
    if not _are_commands_over(lab, run):
        _keep_words(run, seen)
        return False
    seen |= _exit_facts(lab, run) | _progress(lab, run) | listening.last_words(lab, run)
    seen |= own_usage.last_numbers(lab, run)
    outlived = _describe_outlived(lab, run)
    fate, warning = _settle_worktree(lab, run)
    lab.sessions.clear_temporary(lab.paths.temporary_folder(run.pk))
    lab.sessions.forget(lab.paths.run_folder(run.pk))
    warning = "; ".join(part for part in (stuck or warning, outlived) if part)
    return _mark(lab, run, fate, warning, seen)


def _describe_outlived(lab: Lab, run: Run) -> str:
    """Which processes go on in its worktree although all that carried its mark was ended.

    They cleaned their environment and left their parents, or are a person's; nobody can tell.
    """
    found = lab.sessions.working_in(Path(run.worktree)) if run.worktree else ()
    if not found:
        return ""
    named = ", ".join(f"{writing.one_line(name)} ({pid})" for pid, name in found[:MOST_NAMED])
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return (
        f"in its worktree there still run {named}{more}, which its session may have left behind: "
        "end them if nobody needs them"
    )


def _keep_words(run: Run, seen: Mapping[str, object]) -> None:
    """Store what was read of a screen that is gone by the next look."""
    if seen:
        Run.objects.unsettled().filter(pk=run.pk).update(**seen)


def rest(lab: Lab, run: Run) -> bool:
    """End the session of a held run, and keep how it ended; whether it is gone. Safe to repeat."""
    seen = read_last_words(lab, run) | listening.last_words(lab, run)
    kept = {name: seen[name] for name in ("last_words", "last_line") if name in seen}
    try:
        lab.sessions.kill(run.session, run.marker(lab.paths))
    except SeamError as error:
        logger.warning("held session was not ended", extra={"run_id": run.pk, "error": str(error)})
        return False
    lab.sessions.forget(lab.paths.run_folder(run.pk))
    if kept:
        Run.objects.held().filter(pk=run.pk, session=run.session).update(**kept)
    return True


def _end_checks(lab: Lab, run: Run) -> None:
    """End the commands that its agent had labsite run (`labctl check`); their worker notes it."""
    for one in CheckRun.objects.filter(run=run, is_running=True).only("mark"):
        lab.checks.end(one.mark)


def seen_exit(sighting: Sighting | None, exit_file: Mapping[str, object]) -> dict[str, object]:
    """Exit facts from tmux if it kept them, else from the wrapper's file."""
    if sighting is not None and (
        sighting.exit_status is not None or sighting.exit_signal is not None
    ):
        return {
            "exit_status": sighting.exit_status,
            "exit_signal": sighting.exit_signal,
            "exited_at": sighting.ended_at,
        }
    return dict(exit_file)


def exit_file(lab: Lab, run: Run) -> dict[str, object]:
    """Exit facts as the launch wrapper wrote them; empty for adopted runs and live ones."""
    if run.is_adopted:
        return {}
    found = exit_of(lab, run)
    if found is None:
        return {}
    return {"exit_status": found.status, "exit_signal": found.signal, "exited_at": found.at}


def exit_of(lab: Lab, run: Run) -> Exit | None:
    """How the program of its last start ended, as its launcher wrote; an older end is none of it."""
    found = lab.sessions.exit_of(lab.paths.run_folder(run.pk))
    is_old = found is not None and run.resumed_at is not None and found.at < run.resumed_at
    return None if is_old else found


def _exit_facts(lab: Lab, run: Run) -> dict[str, object]:
    """Only what was seen before we ended it ourselves: a kill by us is no exit of the agent."""
    if run.exited_at is not None or run.outcome != Outcome.DIED:
        return {}
    return exit_file(lab, run)


def _may_close(lab: Lab, run: Run) -> bool:
    """Whether the program is given time to finish by itself; not, when tmux cannot tell."""
    is_at_it = run.is_one_shot or hook_events.is_answering(lab, run)
    if run.outcome != Outcome.SUCCEEDED or not is_at_it:
        return False
    try:
        seen = lab.sessions.look().get(run.session)
    except SeamError as error:
        logger.info("session was not seen", extra={"run_id": run.pk, "error": str(error)})
        return False
    alive = seen is not None and seen.alive and seen.marker == run.marker(lab.paths)
    since = budgets.age(lab.now(), run.ended_at)
    return may_close(Outcome(run.outcome), is_at_it, alive, since)


def read_last_words(lab: Lab, run: Run) -> dict[str, object]:
    """The end of the screen, before it goes away with the session."""
    try:
        text = lab.sessions.screens([run.session], LAST_WORDS_LINES).get(run.session, "")
    except SeamError as error:
        logger.info("last words were not read", extra={"run_id": run.pk, "error": str(error)})
        return {}
    words = screens.tidy(text)[-LAST_WORDS_BYTES:]
    return {"last_words": words, "last_line": screens.last_line(words)} if words else {}


def _progress(lab: Lab, run: Run) -> dict[str, object]:
    """How far the branch came, so that its commits can be shown when the worktree is gone."""
    if not run.worktree or not run.fork_point or not Path(run.worktree).is_dir():
        return {}
    try:
        progress = lab.repos.progress(Path(run.worktree), run.fork_point)
    except SeamError as error:
        logger.info("progress was not read", extra={"run_id": run.pk, "error": str(error)})
        return {}
    return {"head": progress.head, "commits": progress.commits}


def _undo_start(lab: Lab, run: Run) -> None:
    """A start that failed gives its issue back, what an agent wrote into it stays.

    Again here, since what could not be undone when it failed may still come to life afterwards.
    """
    is_undone = run.outcome == Outcome.FAILED and not run.did_start and run.continues_id is None
    repo, path = run.project.repo(lab.paths), Path(run.worktree)
    preparation.clear_unfinished(lab, run, repo)
    branch, fork_point = (run.branch, run.fork_point) if is_undone else _begun(lab, run, repo)
    if not (fork_point and run.worktree):
        return
    if lab.repos.roll_back(repo, path, branch, fork_point):
        Run.objects.filter(pk=run.pk).update(worktree="")
        run.worktree = ""
    elif branch != run.branch:
        _warn(lab, run, LEFT_BRANCH.format(branch))


def _begun(lab: Lab, run: Run, repo: Path) -> tuple[str, str]:
    """The branch and the fork point of a further issue that was cut short once its branch was made."""
    if not run.is_loop or not run.worktree or not Path(run.worktree).exists():
        return "", ""
    rows = LoopIssue.objects.filter(loop__run=run, end=LoopIssue.End.GIVEN_BACK)
    found = rows.exclude(fork_point="").values_list("branch", "fork_point").last()
    if found is None or lab.repos.standing(repo, Path(run.worktree)).branch != found[0]:
        return "", ""
    return found


def _are_commands_over(lab: Lab, run: Run) -> bool:
    """Whether the worker has run what the project wants after a run, and before its worktree goes."""
    if not after_run.are_over(lab, run, AFTER):
        return False
    if run.setup_removal is None and not _will_be_removed(lab, run):
        return True
    return after_run.are_over(lab, run, REMOVAL)


def _will_be_removed(lab: Lab, run: Run) -> bool:
    path = Path(run.worktree)
    if not (commands.list_commands(run.project, REMOVAL) and run.worktree and path.exists()):
        return False
    repo = run.project.repo(lab.paths)
    unsaved = kept_teardown.unsaved(lab, repo, path, run.branch)
    goes = teardown(Outcome(run.outcome), unsaved).remove
    return goes and not lab.repos.holds_submodule_work(repo, path)


def _settle_worktree(lab: Lab, run: Run) -> tuple[WorktreeFate, str]:
    if not run.worktree:
        return WorktreeFate.NONE, ""
    path = Path(run.worktree)
    if not path.exists():
        text = f"its worktree {path} is not there any more: somebody moved or removed it"
        return WorktreeFate.GONE, text
    repo = run.project.repo(lab.paths)
    unsaved = kept_teardown.unsaved(lab, repo, path, run.branch)
    decision = teardown(Outcome(run.outcome), unsaved)
    if not decision.remove:
        # Where git cannot say what the worktree holds, its word about the branch counts for nothing.
        lost = _without_branch(lab, run, repo) if unsaved is not None else ""
        return WorktreeFate.KEPT, lost or decision.warning
    try:
        if lab.repos.holds_submodule_work(repo, path):
            return WorktreeFate.KEPT, kept_teardown.SUBMODULES
        _remove(lab, run, path)
    except SeamError as error:
        return WorktreeFate.KEPT, f"the worktree could not be removed and was kept: {error}"
    return WorktreeFate.REMOVED, ""


def _without_branch(lab: Lab, run: Run, repo: Path) -> str:
    """What to say of a kept worktree whose branch an agent renamed or deleted; else empty."""
    try:
        if lab.repos.tip(repo, f"refs/heads/{run.branch}") is not None:
            return ""
    except SeamError as error:
        logger.info("branch was not looked at", extra={"run_id": run.pk, "error": str(error)})
        return ""
    return (
        f"its branch {run.branch} is gone, since it was renamed or deleted; its worktree "
        f"{run.worktree} was kept as it is and is listed under Parked"
    )


def _remove(lab: Lab, run: Run, path: Path) -> None:
    """Whatever git calls clean and is not, is kept under a rescue ref before."""
    repo = run.project.repo(lab.paths)
    tip = lab.repos.tip(repo, f"refs/heads/{run.branch}")
    if tip is not None and path.exists():
        why = f"run {run.pk} ended well and its worktree was removed"
        rescue.keep(lab, run.project, run.branch, tip, path, why=why, tip_stays=True)
    lab.repos.remove_worktree(repo, path)


def _mark(lab: Lab, run: Run, fate: WorktreeFate, warning: str, seen: dict[str, object]) -> bool:
    with transaction.atomic():
        won = (
            Run.objects.unsettled()
            .filter(pk=run.pk)
            .update(settled_at=lab.now(), worktree_fate=fate, warning=warning, **FORGOTTEN, **seen)
        )
        if won:
            keeping.ask(lab, run)
            announce.tell(lab, NoticeKind.RUN_REAPED, _told(run, fate, warning), run=run)
    run.refresh_from_db()
    counts.take(lab, run.project)
    return True


def _told(run: Run, fate: WorktreeFate, warning: str) -> str:
    free = f"slot {run.slot} is free" if run.slot else "the session is gone"
    if warning:
        return f"{free}; {warning}"
    if fate is WorktreeFate.REMOVED:
        return f"Cleaned up: worktree removed, branch {run.branch} kept, {free}"
    if fate is WorktreeFate.KEPT:
        return f"Cleaned up: worktree and branch {run.branch} kept, {free}"
    return f"Cleaned up: {free}"


def _warn(lab: Lab, run: Run, text: str) -> None:
    """Say it once, not at every tick."""
    with transaction.atomic():
        if Run.objects.filter(pk=run.pk).exclude(warning=text).update(warning=text):
            announce.tell(lab, NoticeKind.RUN_WARNED, text, run=run)
