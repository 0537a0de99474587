"""Carries out a run in *starting*: fetch, claim, prepare, spawn, look again.

Runs as an ordinary task. Each step is guarded by the row; if the process dies, the next tick
finishes or rolls back (`recover`).
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from types import MappingProxyType

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Exists, Q, QuerySet

from runs.accounts import holds
from runs.accounts.refusal_rules import Refused
from runs.agents import checks, orders
from runs.core import database, naming
from runs.core.database import prepared_with_keys, run_beside
from runs.core.ports import Lab, Order, SeamError, Sighting, Taken, UnremovableError
from runs.core.states import AnswerCode, NoticeKind, Outcome, RunState, Trouble
from runs.forges import mirror
from runs.guard import acts as guard
from runs.lifecycle import outcomes, reaper, resuming
from runs.lifecycle.beginnings import NotAlive, StartFailed, Undecided, look_again
from runs.lifecycle.recovery import Recovery, StartFacts, recovery
from runs.lifecycle.resuming import Gone
from runs.models import AgentProfile, Notice, Run, Settings, StartRequest
from runs.projects import cloning, origin
from runs.setup import after_run, commands, preparation
from runs.setup.commands import AGAIN, NEW, Stage
from runs.telemetry import log_context
from runs.timeline import announce
from trackers.base import TrackerError

logger = logging.getLogger(__name__)

_Ordered = tuple[Order, str]
SECOND_LOOK_SECONDS = 0.5
SET_UP_LEFT = (
    "the set-up left changes that git does not ignore: they may get into the agent's commits"
)
CLEARING = "the project's commands before removal run in its worktree; ask again when they are over"
STEPS_MARGIN = timedelta(minutes=3)
AHEAD = timedelta(seconds=5)  # how long ago a fetch may have begun that a start takes for its own
CHECKOUT_LIMIT = timedelta(minutes=15)  # as runs/machine/git.py:CHECKOUT


class NotPrepared(StartFailed):
    """A command that runs before the agent failed, so that its program was not started."""


class _Mistake(Exception):
    """Our own code failed; nobody else's doing."""


class NoLongerWanted(Exception):
    """The run was ended while it was starting; whatever exists stays as it is."""


def carry_out(lab: Lab, run_id: int) -> None:
    """Bring one run from *starting* to *working*, or roll everything back. Safe to call twice."""
    git_limit = timedelta(seconds=Settings.current().git_timeout_seconds)
    taken = (
        Run.objects.starting()
        .filter(pk=run_id, host=lab.host, launcher="")
        .update(launcher=lab.process, launch_deadline=lab.now() + 3 * git_limit + STEPS_MARGIN)
    )
    if not taken:
        return
    (run,) = _to_launch().rows(keys=[run_id])
    with log_context.about(**log_context.of(run)):
        _launch(lab, run)


@prepared_with_keys(1)
def _to_launch(_now: datetime, run: int) -> QuerySet[Run]:
    return Run.objects.select_related("project__agent", "profile").filter(pk=run)


def _launch(lab: Lab, run: Run) -> None:
    try:
        _start(lab, run)
    except NoLongerWanted:
        _let_go(lab, run)
    except Gone as error:
        resuming.gone(lab, run, str(error))
    except Undecided as error:
        logger.warning("second look failed", extra={"run_id": run.pk, "error": str(error)})
        _leave_to_tick(lab, run)
    except (StartFailed, SeamError, TrackerError) as error:
        _fail(lab, run, error)
    except (OperationalError, InterfaceError) as error:
        logger.warning("start was not stored", extra={"run_id": run.pk, "error": str(error)})
        _leave_to_tick(lab, run)
    except Exception as error:
        logger.exception("start failed by a mistake of ours", extra={"run_id": run.pk})
        _fail(lab, run, _Mistake(f"labsite made a mistake ({type(error).__name__}); see its log"))


def _fail(lab: Lab, run: Run, error: Exception) -> None:
    code = getattr(error, "code", AnswerCode.START_FAILED)
    if code is AnswerCode.LOGGED_OUT and run.is_resuming and run.profile is not None:
        holds.hold_start(lab, run.profile, Refused(Trouble.LOGIN, str(error)))
    if not run.is_resuming and not _may_have_no_session(run, error):
        give_up(lab, run, str(error), code)
    elif code is AnswerCode.START_FAILED and isinstance(error, StartFailed):
        _resume_failed(lab, run, str(error), keeps_session=isinstance(error, NotPrepared))
    else:
        _wait_again(lab, run, str(error))


def _may_have_no_session(run: Run, error: Exception) -> bool:
    """Whether a program that ended at once was to take up a session that it may not have any more."""
    return run.takes_up and bool(run.agent_session) and isinstance(error, NotAlive)


def _resume_failed(lab: Lab, run: Run, why: str, *, keeps_session: bool) -> None:
    """A program that did not take its own session up again gets its task; without one it failed.

    One that was not started `keeps_session`, and can be asked to take it up the next time.
    """
    may_try = keeps_session or bool(run.agent_session)
    if may_try and run.resume_failures < resuming.MOST_FAILURES and not run.is_nudged_only:
        _wait_again(lab, run, why, anew=not keeps_session)
    elif outcomes.record(lab, run, Outcome.FAILED, f"could not be started again: {why}"):
        Run.objects.filter(pk=run.pk).update(launcher="")
        run.launcher = ""
        reaper.settle(lab, run)


def _wait_again(lab: Lab, run: Run, why: str, *, anew: bool = False) -> None:
    if not resuming.wait_again(lab, run, why, states=[RunState.STARTING], anew=anew):
        _let_go(lab, run)


def _leave_to_tick(lab: Lab, run: Run) -> None:
    """The next tick finishes or rolls back; if not even this can be stored, when time is up."""
    with contextlib.suppress(OperationalError, InterfaceError):
        database.renew_connection()
        Run.objects.starting().filter(pk=run.pk).update(launch_deadline=lab.now())


def give_up(
    lab: Lab,
    run: Run,
    why: str,
    code: AnswerCode = AnswerCode.START_FAILED,
    seen: Mapping[str, object] = MappingProxyType({}),
) -> None:
    """Roll back a start that never came to a live session, so that the issue is selectable again.

    First the traces, then the row: while the roll-back lasts the row still keeps others out.
    Only what this run made is touched, and what an agent wrote into it stays.
    """
    logger.warning("start failed", extra={"run_id": run.pk, "error": why})
    if not Run.objects.starting().filter(pk=run.pk).exists():
        _let_go(lab, run)
        return
    left = ""
    try:
        lab.sessions.kill(run.session, run.marker(lab.paths))
        preparation.clear_unfinished(lab, run, run.project.repo(lab.paths))
        if run.continues_id is None and run.fork_point and not _roll_back(lab, run):
            left = " What its agent had already written was kept, and so was the claim."
    except UnremovableError as error:
        left = f" Its worktree is not gone yet: {error}"
    except SeamError as error:
        left = f" Rolling back failed too, and is tried again at every tick: {error}"
    with transaction.atomic():
        text = f"did not start: {why}{left}"
        if outcomes.record(lab, run, Outcome.FAILED, text, seen={**seen, "launcher": ""}):
            StartRequest.objects.filter(run=run).update(answer=code, text=f"{why}{left}")
    if run.outcome == Outcome.FAILED and not left and run.continues_id is None:
        Run.objects.filter(pk=run.pk).update(worktree="")
        run.refresh_from_db()
    reaper.settle(lab, run)


def _roll_back(lab: Lab, run: Run) -> bool:
    repo = run.project.repo(lab.paths)
    return lab.repos.roll_back(repo, Path(run.worktree), run.branch, run.fork_point)


def recover(lab: Lab, run: Run, sightings: Mapping[str, Sighting] | None) -> None:
    """Take the next step of a start that a tick found unfinished. Safe to repeat."""
    step = recovery(_facts(lab, run, sightings))
    if step is Recovery.ASK_AGAIN:
        lab.queue.on(run.host).launch(run.pk)
    elif step is Recovery.GOES_ON:
        with contextlib.suppress(NoLongerWanted):
            _mark_working(lab, run)
    elif step is Recovery.ROLL_BACK and run.is_resuming:
        _wait_again(lab, run, "labsite was interrupted while it made the session")
    elif step is Recovery.ROLL_BACK:
        why = "labsite was interrupted while it made the session; it left nothing behind"
        # Nobody could start it, and nobody tried in vain: its watch session may take it again.
        give_up(lab, run, why, seen={} if run.continues_id else {"claimed_at": None})


def _facts(lab: Lab, run: Run, sightings: Mapping[str, Sighting] | None) -> StartFacts:
    seen = sightings.get(run.session) if sightings is not None else None
    is_ours = seen is not None and seen.marker == run.marker(lab.paths)
    return StartFacts(
        has_launcher=bool(run.launcher),
        waited=lab.now() - (run.resumed_at or run.requested_at),
        launcher_lives=lab.is_process_alive(run.launcher) if run.launcher else None,
        is_overdue=run.launch_deadline is not None and lab.now() >= run.launch_deadline,
        has_session=None if sightings is None else is_ours,
        has_exit=reaper.exit_of(lab, run) is not None,
    )


def is_being_launched(lab: Lab, run: Run) -> bool:
    """Whether a live launcher still handles an ended run and will clean up after itself."""
    if not run.launcher or lab.is_process_alive(run.launcher) is False:
        return False
    return run.launch_deadline is None or lab.now() < run.launch_deadline


def _start(lab: Lab, run: Run) -> None:
    settings = Settings.current()
    chosen = run.project.agent or settings.agent
    profile = (run.profile or chosen) if run.takes_up or run.is_loop else chosen
    if profile is None:
        raise StartFailed("no agent is chosen; choose one on the settings page")
    refused = checks.refusal(lab, profile)
    if refused is not None:
        raise StartFailed(*refused)
    lab.sessions.make_temporary(lab.paths.temporary_folder(run.pk))
    # What was fetched under settings that had to be put right is fetched again.
    is_sound = guard.check_shared(lab, run.project, starting=run)
    since = max(run.requested_at, lab.now() - AHEAD) if is_sound else None
    make_order = partial(_make_order, lab, run, profile, settings)
    ordered: _Ordered | None = None
    if run.is_resuming:
        resuming.check_place(lab, run)
        _set_up(lab, run, AGAIN)
    elif run.continues_id is not None:
        _take_up(lab, run, since)
    else:
        _fetch(lab, run, since)
        ordered = _claim(lab, run, make_order)
        _set_up(lab, run, NEW)
    lab.trust.approve(profile.trust, Path(run.worktree), profile.env)
    order, why_unsigned = ordered or make_order()
    _still_wanted(run)
    started_at = run.started_at or lab.now()
    _tell_payment(lab, run, profile)
    if why_unsigned:
        _step(lab, run, why_unsigned)
    lab.sessions.start(order)
    lab.pause(SECOND_LOOK_SECONDS)
    is_alive = look_again(lab, run)
    run.started_at = started_at
    _mark_working(lab, run)
    if not is_alive or _was_told_of(run):
        lab.bell.look(run.project.slug)  # looks pass over a run while it is still *starting*


def _make_order(lab: Lab, run: Run, profile: AgentProfile, settings: Settings) -> _Ordered:
    """Return the order of the session, and why git signs nothing in it, else an empty text."""
    return orders.without_signing(lab, orders.make(lab, run, profile, settings))


def _tell_payment(lab: Lab, run: Run, profile: AgentProfile) -> None:
    """Say on the run that a key pays for it; that its log-in does is what people expect."""
    paid = checks.payment(lab, profile)
    if paid.key:
        _step(lab, run, paid.text)


def _fetch(lab: Lab, run: Run, since: datetime | None) -> None:
    """The base is origin's default branch as it is now; there is no fallback.

    A fetch that began at `since` or later is enough.
    """
    _bring_clone(lab, run)
    warning = origin.freshen(lab, run.project, since)
    if warning:
        _step(lab, run, warning)


def _bring_clone(lab: Lab, run: Run) -> None:
    """A host that has not worked for the project yet clones it first, which may take long."""
    project = run.project
    cloning.put_foreign_aside(lab, project)
    if project.home in ("", lab.host) or project.repo(lab.paths).is_dir():
        return
    limit = timedelta(seconds=cloning.CLONE_SECONDS) + STEPS_MARGIN
    Run.objects.starting().filter(pk=run.pk).update(launch_deadline=lab.now() + limit)
    _step(lab, run, f"{project.name} is cloned on {lab.host}, which has no clone of it yet")
    began = lab.steady().seconds
    try:
        cloning.bring_here(lab, project)
    except SeamError as error:
        raise StartFailed(f"host {lab.host} could not clone {project.name}: {error}") from error
    _step(lab, run, f"Cloned in {lab.steady().seconds - began:.0f} s")


def _claim(lab: Lab, run: Run, make_order: Callable[[], _Ordered]) -> _Ordered:
    """Branch and worktree, then the tracker's own mark, without which neither stays.

    What is about to be made is stored first, so that it can be undone. While git writes the files of
    the worktree the order of the session is made, which is returned.
    """
    path = _worktree(lab, run)
    repo = run.project.repo(lab.paths)
    commit = lab.repos.upstream(repo, run.project.default_branch)
    _check_name(lab, run, repo)
    deadline = lab.now() + CHECKOUT_LIMIT + STEPS_MARGIN
    if not _keep(run, fork_point=commit, worktree=str(path), launch_deadline=deadline):
        raise NoLongerWanted
    folders = run.project.checked_out_folders
    checkout = run_beside(
        "checkout", lambda: lab.repos.add_worktree(repo, path, run.branch, commit, folders)
    )
    try:
        ordered = make_order()
    finally:
        # Whatever went wrong here, nothing is undone while git still writes, or of somebody else.
        error = checkout.exception()
        if isinstance(error, Taken):
            _keep(run, fork_point="", worktree="")
            raise StartFailed(str(error)) from error
    checkout.result()
    if not mirror.claim(lab, run):
        raise NoLongerWanted
    with transaction.atomic():
        Run.objects.filter(pk=run.pk).update(claimed_at=lab.now())
        text = f"Branch {run.branch} created from {commit[:7]}"
        announce.tell(lab, NoticeKind.RUN_STEP, text, run=run)
    return ordered


def _set_up(lab: Lab, run: Run, stage: Stage) -> None:
    """Write the project's files into the worktree and run its set-up commands there.

    While they run nobody takes the run over. Raises NotPrepared when something of it fails.
    """
    # In a worktree that was there too: the start before may have failed or been killed meanwhile.
    has_large = lab.repos.lacks_large_files(Path(run.worktree))
    longest = commands.longest(run.project, stage) + CHECKOUT_LIMIT * has_large
    if longest:
        Run.objects.starting().filter(pk=run.pk).update(
            launch_deadline=lab.now() + longest + STEPS_MARGIN
        )
    ours = Run.objects.starting().filter(pk=run.pk, launcher=lab.process)
    try:
        if has_large:
            preparation.fetch_large_files(lab, run)
        preparation.place_files(lab, run, stage)
        preparation.run_commands(lab, run, ours.exists, stage)
    except preparation.SetUpFailedError as error:
        raise NotPrepared(str(error)) from error
    except preparation.CalledOffError as error:
        raise NoLongerWanted from error
    if longest and stage is NEW and lab.repos.is_dirty(Path(run.worktree)):
        _step(lab, run, SET_UP_LEFT)


def _take_up(lab: Lab, run: Run, since: datetime | None) -> None:
    """The branch of the run before, and its worktree, which is made again where it was removed.

    What others have pushed to it is fetched, and is in the worktree where nothing is in its way.
    """
    repo, path = run.project.repo(lab.paths), Path(run.worktree or _worktree(lab, run))
    try:
        _fetch(lab, run, since)
    except origin.Away as error:
        _step(lab, run, f"origin could not be read, so what others pushed is not here: {error}")
    if not lab.repos.has(path):
        _keep(run, launch_deadline=lab.now() + CHECKOUT_LIMIT + STEPS_MARGIN)
    with lab.repos.hold(repo):
        if after_run.is_clearing(run):  # whoever asks for them holds the repository too
            raise StartFailed(CLEARING)
        tip = lab.repos.tip(repo, f"refs/heads/{run.branch}")
        if tip is None:
            raise StartFailed(f"its branch {run.branch} is not there any more")
        is_new = lab.repos.add_again(repo, path, run.branch, run.project.checked_out_folders)
        if is_new:
            _step(lab, run, f"Worktree made again on {run.branch} at {tip[:7]}")
        there = lab.repos.tip(repo, f"refs/remotes/origin/{run.branch}")
        _catch_up(lab, run, repo, path)
        before = run.head_before or there or tip
        if not _keep(run, worktree=str(path), head_before=before):
            raise NoLongerWanted
    _set_up(lab, run, NEW if is_new else AGAIN)


def _catch_up(lab: Lab, run: Run, repo: Path, path: Path) -> None:
    """Its agent is told of what could not be brought in, so that nothing is forced over it."""
    try:
        if lab.repos.forward(repo, path, run.branch):
            _step(lab, run, f"{run.branch} brought to where origin has it")
    except SeamError as error:
        logger.info("branch was not forwarded", extra={"run_id": run.pk, "error": str(error)})


def _check_name(lab: Lab, run: Run, repo: Path) -> None:
    """Raise StartFailed when origin has other commits under the branch's name: no push would work."""
    there = lab.repos.ref(repo, f"refs/remotes/origin/{run.branch}")
    if there is not None and lab.repos.is_ahead(repo, there, run.project.default_branch):
        raise StartFailed(
            f"origin has a branch {run.branch} with other commits ({there[:7]}), so that this run "
            "could not push its own. Discard that branch, then start again."
        )


def _keep(run: Run, **facts: str | datetime) -> bool:
    """Store facts of a run that is still *starting*, on the object too."""
    won = Run.objects.starting().filter(pk=run.pk).update(**facts)
    if won:
        for name, value in facts.items():
            setattr(run, name, value)
    return bool(won)


def _mark_working(lab: Lab, run: Run) -> None:
    """From here on the budget clock runs, counted from the spawn."""
    started_at = run.started_at or lab.now()
    with transaction.atomic():
        won = (
            Run.objects.starting()
            .filter(pk=run.pk)
            .update(
                state=RunState.WORKING,
                started_at=started_at,
                launcher="",
                server=lab.sessions.server(),
            )
        )
        if won:
            announce.tell(lab, *_started(run), run=run)
            mirror.ask(lab, run)
    if not won:
        raise NoLongerWanted


def _started(run: Run) -> tuple[NoticeKind, str]:
    if run.takes_up:
        return NoticeKind.RUN_RESUMED, f"the agent goes on in session {run.session}"
    return NoticeKind.RUN_STARTED, f"agent started in session {run.session}"


def _was_told_of(run: Run) -> bool:
    """Return whether a delivery of the run may have been told since its agent was started.

    One query: a pull request that `labctl` opened, the agent's word that it is done, or a webhook.
    """
    opened = Notice.objects.filter(run=run, kind=NoticeKind.PULL_OPENED, at__gte=run.started_at)
    by_hook = Q(project__pulls_hooked_at__gte=run.started_at)
    told = by_hook | Q(look_asked_at__isnull=False) | Exists(opened)
    return Run.objects.filter(told, pk=run.pk).exists()


def _still_wanted(run: Run) -> None:
    if not Run.objects.starting().filter(pk=run.pk).exists():
        raise NoLongerWanted


def _let_go(lab: Lab, run: Run) -> None:
    """Stop came first: no session may stay, but nothing on disk is removed."""
    Run.objects.filter(pk=run.pk).update(launcher="")
    run.refresh_from_db()
    reaper.settle(lab, run)


def _worktree(lab: Lab, run: Run) -> Path:
    return lab.paths.worktrees / naming.worktree_name(run.project.slug, run.issue_key)


def _step(lab: Lab, run: Run, text: str) -> None:
    with transaction.atomic():
        announce.tell(lab, NoticeKind.RUN_STEP, text, run=run)
