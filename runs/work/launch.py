"""Carries out a run in *starting*: fetch, claim, prepare, spawn, look again (LAB-57, LAB-59 to LAB-61).

Runs as an ordinary task. Each step is guarded by the row; if the process dies, the next tick
finishes or rolls back (`recover`).
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from django.db import transaction

from runs.domain import commands, naming, tokens
from runs.domain.ports import Lab, Order, SeamError, Sighting
from runs.domain.states import AnswerCode, NoticeKind, Outcome, RunState
from runs.models import AgentProfile, Run, Settings, StartRequest
from runs.work import announce, looking, outcomes, reaper

logger = logging.getLogger(__name__)

SECOND_LOOK_SECONDS = 0.5
DEADLINE = timedelta(minutes=5)
QUEUE_LOSS = timedelta(seconds=5)


class StartFailed(Exception):
    """The start cannot go on; the text is for the person who pressed the button."""

    def __init__(self, text: str, code: AnswerCode = AnswerCode.START_FAILED) -> None:
        super().__init__(text)
        self.code = code


class NoLongerWanted(Exception):
    """The run was ended while it was starting; whatever exists stays as it is."""


def carry_out(lab: Lab, run_id: int) -> None:
    """Bring one run from *starting* to *working*, or roll everything back. Safe to call twice."""
    taken = (
        Run.objects.starting()
        .filter(pk=run_id, launcher="")
        .update(launcher=lab.process, launch_deadline=lab.now() + DEADLINE)
    )
    if not taken:
        return
    run = Run.objects.select_related("project").get(pk=run_id)
    try:
        _start(lab, run)
    except NoLongerWanted:
        _let_go(lab, run)
    except (StartFailed, SeamError) as error:
        give_up(lab, run, str(error), getattr(error, "code", AnswerCode.START_FAILED))


def give_up(lab: Lab, run: Run, why: str, code: AnswerCode = AnswerCode.START_FAILED) -> None:
    """Roll back a start that never came to a live session, so that the issue is selectable again.

    First the traces, then the row: while the roll-back lasts the row still keeps others out.
    """
    logger.warning("start failed", extra={"run_id": run.pk, "error": why})
    left = ""
    try:
        lab.sessions.kill(run.session, reaper.marker(lab, run))
        repo = run.project.repo(lab.paths)
        lab.repos.roll_back(
            repo, Path(run.worktree or _worktree(lab, run)), run.branch, run.fork_point
        )
    except SeamError as error:
        left = f" Rolling back failed too: {error}"
    reason = f"did not start: {why}{left}"
    with transaction.atomic():
        if outcomes.record(lab, run, Outcome.FAILED, reason, seen={"launcher": ""}):
            StartRequest.objects.filter(run=run).update(answer=code, text=f"{why}{left}")
    if left:
        Run.objects.filter(pk=run.pk).update(warning=left.strip())
    elif run.outcome == Outcome.FAILED:
        Run.objects.filter(pk=run.pk).update(worktree="")
        run.refresh_from_db()
    reaper.settle(lab, run)


def recover(lab: Lab, run: Run, sightings: Mapping[str, Sighting] | None) -> None:
    """Finish or roll back a start whose process is gone or whose time is up (design.md 4.6)."""
    if not run.launcher:
        if lab.now() - run.requested_at > QUEUE_LOSS:
            lab.queue.launch(run.pk)
        return
    is_overdue = run.launch_deadline is not None and lab.now() >= run.launch_deadline
    if sightings is None or (lab.is_process_alive(run.launcher) is not False and not is_overdue):
        return
    seen = sightings.get(run.session)
    if seen is not None and seen.alive:
        with contextlib.suppress(NoLongerWanted):
            _mark_working(lab, run)
        return
    give_up(
        lab,
        run,
        "the product was interrupted while it made the session; everything was rolled back",
    )


def is_being_launched(lab: Lab, run: Run) -> bool:
    """Whether a live launcher still handles an ended run and will clean up after itself."""
    if run.did_start or not run.launcher or lab.is_process_alive(run.launcher) is False:
        return False
    return run.launch_deadline is None or lab.now() < run.launch_deadline


def _start(lab: Lab, run: Run) -> None:
    settings = Settings.current()
    profile = run.project.agent or settings.agent
    if profile is None:
        raise StartFailed("no agent is chosen; choose one on the settings page")
    if profile.login_command and lab.login.check(profile.login_command, profile.env) is False:
        text = f"{profile.name} is not logged in on this machine. Log in, then start again."
        raise StartFailed(text, AnswerCode.LOGGED_OUT)
    _fetch(lab, run)
    _claim(lab, run)
    lab.trust.approve(profile.trust, Path(run.worktree), profile.env)
    order = _order(lab, run, profile, settings)
    _still_wanted(run)
    started_at = lab.now()
    lab.sessions.start(order)
    lab.pause(SECOND_LOOK_SECONDS)
    _look_again(lab, run)
    run.started_at = started_at
    _mark_working(lab, run)


def _fetch(lab: Lab, run: Run) -> None:
    """The base is origin's default branch as it is now; there is no fallback (LAB-60)."""
    project = run.project
    if project.is_hosted:
        try:
            warning = lab.repos.refill(project.origin(lab.paths), Path(project.source))
        except SeamError as error:
            warning = f"the checkout could not be read, so labsite's own origin was used: {error}"
        if warning:
            _step(lab, run, warning)
    lab.repos.fetch(project.repo(lab.paths), project.token)


def _claim(lab: Lab, run: Run) -> None:
    _still_wanted(run)
    path = _worktree(lab, run)
    repo = run.project.repo(lab.paths)
    run.fork_point = lab.repos.add_worktree(repo, path, run.branch, run.project.default_branch)
    run.worktree = str(path)
    with transaction.atomic():
        Run.objects.filter(pk=run.pk).update(
            fork_point=run.fork_point, worktree=run.worktree, claimed_at=lab.now()
        )
        announce.tell(
            lab,
            NoticeKind.RUN_STEP,
            f"claimed: branch {run.branch} at {run.fork_point[:7]}, worktree made",
            run=run,
        )


def _order(lab: Lab, run: Run, profile: AgentProfile, settings: Settings) -> Order:
    """Token, prompt and environment of the session, in its private folder."""
    folder = lab.paths.run_folder(run.pk)
    prompt = commands.task_text(
        key=run.issue_key, title=run.issue_title, branch=run.branch, base=run.project.default_branch
    )
    token = tokens.new_token()
    files = {"token": token, "prompt.md": prompt}
    if run.project.token:
        files["git-token"] = str(run.project.token)
    env = {**_session_env(lab, run, folder), **{str(k): str(v) for k, v in profile.env.items()}}
    Run.objects.filter(pk=run.pk).update(prompt=prompt, token_hash=tokens.hash_token(token))
    values = {
        "prompt": prompt,
        "prompt_file": str(folder / "prompt.md"),
        "model": run.model,
        "effort": run.effort,
        "worktree": run.worktree,
    }
    argv = commands.fill(profile.argv, values)
    return Order(
        session=run.session,
        folder=folder,
        cwd=Path(run.worktree),
        argv=argv,
        env=env,
        files=files,
        marker=reaper.marker(lab, run),
        nofile=settings.nofile_limit,
    )


def _session_env(lab: Lab, run: Run, folder: Path) -> dict[str, str]:
    """What labctl and git need inside the session; paths only, no secret."""
    return {
        "LAB_RUN_FOLDER": str(folder),
        "LAB_ADDRESS_FILE": str(lab.paths.address),
        "LAB_WAKE_SOCKET": str(lab.paths.worker_socket),
        "LAB_PROJECT": run.project.slug,
        "LAB_ISSUE": run.issue_key,
        "LAB_BRANCH": run.branch,
        "GIT_TERMINAL_PROMPT": "0",
        **({"GIT_ASKPASS": str(lab.paths.bin / "git-askpass")} if run.project.token else {}),
    }


def _look_again(lab: Lab, run: Run) -> None:
    """A session that vanished at once is a failed start, with its last words as the reason (LAB-61)."""
    seen = lab.sessions.look().get(run.session)
    if seen is not None and seen.alive:
        return
    words = ""
    try:
        words = looking.last_line(lab.sessions.screens([run.session], 20).get(run.session, ""))
    except SeamError as error:
        logger.info("last words were not read", extra={"run_id": run.pk, "error": str(error)})
    status = (
        f" with status {seen.exit_status}"
        if seen is not None and seen.exit_status is not None
        else ""
    )
    said = f" Its last words: {words}" if words else ""
    raise StartFailed(f"the agent exited immediately{status}.{said}")


def _mark_working(lab: Lab, run: Run) -> None:
    """From here on the budget clock runs, counted from the spawn (C-19)."""
    started_at = run.started_at or lab.now()
    with transaction.atomic():
        won = (
            Run.objects.starting()
            .filter(pk=run.pk)
            .update(state=RunState.WORKING, started_at=started_at, launcher="")
        )
        if won:
            announce.tell(
                lab, NoticeKind.RUN_STARTED, f"agent started in session {run.session}", run=run
            )
    if not won:
        raise NoLongerWanted


def _still_wanted(run: Run) -> None:
    if not Run.objects.starting().filter(pk=run.pk).exists():
        raise NoLongerWanted


def _let_go(lab: Lab, run: Run) -> None:
    """Stop came first: no session may stay, but nothing on disk is removed (LAB-46)."""
    Run.objects.filter(pk=run.pk).update(launcher="")
    run.refresh_from_db()
    reaper.settle(lab, run)


def _worktree(lab: Lab, run: Run) -> Path:
    return lab.paths.worktrees / naming.worktree_name(run.project.slug, run.issue_key)


def _step(lab: Lab, run: Run, text: str) -> None:
    with transaction.atomic():
        announce.tell(lab, NoticeKind.RUN_STEP, text, run=run)
