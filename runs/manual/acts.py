"""Sessions that people drive: started under the cap of all sessions, stopped by the guarded rule.

The row in *starting* is stored under the lease of the one judge, so that no launch pass counts
slots at the same time; an ordinary task then makes worktree and session.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from django.db import IntegrityError, transaction

from runs.agents import checks, claude_settings, commands, orders
from runs.core import budgets, lease, naming, tokens
from runs.core.ports import Lab, Order, SeamError, Sighting, Taken
from runs.core.refusal import ActRefused
from runs.core.states import AgentMode, NoticeKind, PersonState, ProjectState
from runs.dispatch import reserve
from runs.hosts import facts
from runs.manual import endings
from runs.models import AgentProfile, ManualSession, Project, Settings
from runs.projects import git_credentials
from runs.setup import checkout, file_acts
from runs.timeline import announce

logger = logging.getLogger(__name__)

LEASE_STEP, LEASE_PATIENCE = 0.05, 5.0
WAIT_STEP = 0.05
# As long as files may be checked out (runs/machine/git.py:CHECKOUT), as much for large files, and
# as much for all else.
START_LIMIT = timedelta(minutes=45)


class SessionRefused(ActRefused):
    """Nothing was started; the text says why and what to do."""

    code = "not_started"


def start(lab: Lab, project: Project, text: str, by: str) -> ManualSession:
    """Ask for a session; it is being made when this returns. Raises SessionRefused."""
    if len(text) > naming.LABEL_CHARACTERS:
        most = naming.LABEL_CHARACTERS
        raise SessionRefused(f"A label has at most {most} characters. Nothing was started.")
    if project.state != ProjectState.READY:
        raise SessionRefused(f"{ProjectState(project.state).not_ready} Nothing was started.")
    where = facts.carrier(lab, project)
    if where != lab.host:
        raise SessionRefused(
            "This labsite has no sessions on its own machine. Start this one in the labsite of a "
            f"machine that has, such as {where}. Nothing was started."
        )
    settings = Settings.current()
    profile = _profile(project, settings)
    unfit = checks.obstacle(lab, profile)
    if unfit is not None:
        raise SessionRefused(f"{unfit.text} Nothing was started.")
    number = _lease(lab)
    try:
        made = _store(lab, project, profile, settings, text, by)
    finally:
        lease.release(lab, number)
    lab.queue.on(made.host).open(made.pk)
    return made


def wait(lab: Lab, row: ManualSession, seconds: float = 5.0) -> ManualSession:
    """The session once it is no longer starting, or time is up."""
    for _ in range(int(seconds / WAIT_STEP)):
        row.refresh_from_db()
        if row.state != PersonState.STARTING:
            break
        lab.pause(WAIT_STEP)
    return row


def over(row: ManualSession) -> str:
    """Says of a session that has ended at once what happened, what is kept and what to do."""
    return (
        f"The session {row.label} ended at once: its program exited, or somebody stopped it. "
        f"Work on branch {row.branch} is kept. Check that its agent starts in a terminal, then "
        "start another."
    )


def carry_out(lab: Lab, session_id: int) -> None:
    """Make branch, worktree and session of a row in *starting*. Safe to call twice."""
    rows = ManualSession.objects.filter(pk=session_id, host=lab.host)
    free = rows.filter(state=PersonState.STARTING, launcher="")
    if not free.update(launcher=lab.process):
        return
    row = ManualSession.objects.select_related("project__agent").get(pk=session_id)
    try:
        _make(lab, row)
    except (SeamError, SessionRefused) as error:
        _fail(lab, row, str(error))


def watch(lab: Lab) -> None:
    """See which sessions ended by themselves, and finish what a kill left half done."""
    rows = list(
        ManualSession.objects.filter(host=lab.host, settled_at=None).select_related("project")
    )
    if not rows:
        return
    try:
        sightings = lab.sessions.look()
    except SeamError as error:
        logger.info("sessions of people were not seen", extra={"error": str(error)})
        return
    for row in rows:
        _watch_one(lab, row, sightings)


def _watch_one(lab: Lab, row: ManualSession, sightings: Mapping[str, Sighting]) -> None:
    seen = sightings.get(row.session)
    alive = seen is not None and seen.alive and seen.marker == row.mark
    if row.state == PersonState.ENDED:
        endings.settle(lab, row)
    elif row.state == PersonState.LIVE and not alive:
        if endings.end(lab, row, "its program ended; worktree and branch kept"):
            endings.settle(lab, row)
    elif row.state == PersonState.STARTING:
        _recover(lab, row, alive)


def _recover(lab: Lab, row: ManualSession, alive: bool) -> None:
    """A start whose message was lost is asked for again; one whose process died is given up."""
    if not row.launcher:
        lab.queue.on(row.host).open(row.pk)
        return
    is_over = budgets.age(lab.now(), row.asked_at) > START_LIMIT
    if lab.is_process_alive(row.launcher) is False or is_over:
        if alive:
            _mark_live(lab, row)
        else:
            _fail(lab, row, "labsite was interrupted while it made the session")


def _profile(project: Project, settings: Settings) -> AgentProfile:
    profile = project.agent or settings.agent
    if profile is None:
        raise SessionRefused("No agent is chosen. Choose one on the settings page.")
    if profile.mode != AgentMode.INTERACTIVE:
        raise SessionRefused(
            f"{profile.name} ends by itself and cannot be driven. Nothing was started. "
            "Choose an interactive agent for this project."
        )
    return profile


def _lease(lab: Lab) -> int:
    """The lease of the judge, so that slots are counted by one at a time."""
    for _ in range(int(LEASE_PATIENCE / LEASE_STEP)):
        try:
            number = lease.acquire(lab)
        except (lease.OtherMachine, lease.Removed) as error:
            raise SessionRefused(str(error)) from error
        if number is not None:
            return number
        lab.pause(LEASE_STEP)
    raise SessionRefused("labsite is busy just now and nothing was started. Try again in a moment.")


def _store(
    lab: Lab, project: Project, profile: AgentProfile, settings: Settings, text: str, by: str
) -> ManualSession:
    """The row in *starting*, which holds its slot from here on."""
    try:
        sightings = lab.sessions.look()
    except SeamError as error:
        why = f"tmux did not say which sessions are alive, so nothing was started: {error}"
        raise SessionRefused(why) from error
    room = reserve.room(lab, settings, sightings)
    full_at = room.full_at
    if full_at is not None:
        why = f"All {full_at} slots are taken. A slot is free again when a session ends."
        raise SessionRefused(why)
    rows = ManualSession.objects.filter(project=project)
    label = naming.person_label(text, lab.now(), set(rows.values_list("label", flat=True)))
    try:
        with transaction.atomic():
            made = ManualSession.objects.create(
                project=project,
                host=lab.host,
                label=label,
                session=naming.person_session(project.slug, label),
                branch=naming.person_branch(label),
                mark=tokens.new_mark(),
                agent=profile.name,
                by=by,
                asked_at=lab.now(),
            )
            Project.objects.filter(pk=project.pk).update(last_opened_at=lab.now())
    except IntegrityError as error:
        raise SessionRefused("Another session took this label just now. Try again.") from error
    return made


def _make(lab: Lab, row: ManualSession) -> None:
    project, settings = row.project, Settings.current()
    profile = _profile(project, settings)
    refused = checks.refusal(lab, profile)
    if refused is not None:
        raise SessionRefused(refused[0])
    repo = project.repo(lab.paths)
    token = git_credentials.of_git(lab, project)
    branch = lab.repos.fetch_default(repo, token, project.url)
    commit = lab.repos.upstream(repo, branch)
    path = lab.paths.worktrees / naming.worktree_name(project.slug, row.label)
    row.worktree, row.fork_point = str(path), commit
    ManualSession.objects.filter(pk=row.pk).update(worktree=row.worktree, fork_point=commit)
    try:
        lab.repos.add_worktree(repo, path, row.branch, commit, project.checked_out_folders)
    except Taken:
        row.worktree = row.fork_point = ""
        ManualSession.objects.filter(pk=row.pk).update(worktree="", fork_point="")
        raise
    checkout.fetch_large_files(lab, project, path)
    file_acts.place(lab, project, path)
    lab.trust.approve(profile.trust, path, profile.env)
    is_general = profile == settings.agent
    folder = endings.folder(lab, row)
    values = {
        "prompt": "",
        "prompt_file": "",
        "model": settings.model if is_general else "",
        "effort": settings.effort if is_general else "",
        "worktree": row.worktree,
        "settings": str(folder / claude_settings.NAME),
        "session": "",
    }
    template, files = orders.template_of(profile), {}
    if claude_settings.is_wanted(template):
        files[claude_settings.NAME] = claude_settings.content(is_attended=True)
    if not ManualSession.objects.filter(pk=row.pk, state=PersonState.STARTING).exists():
        row.refresh_from_db()
        endings.settle(lab, row)
        return
    lab.sessions.start(
        Order(
            session=row.session,
            folder=folder,
            cwd=path,
            argv=commands.fill(template, values),
            env={str(name): str(value) for name, value in profile.env.items()},
            files=files,
            marker=row.mark,
            nofile=settings.nofile_limit,
        )
    )
    _mark_live(lab, row)


def _mark_live(lab: Lab, row: ManualSession) -> None:
    """Live from here on; one that was stopped meanwhile is ended and tidied."""
    with transaction.atomic():
        starting = ManualSession.objects.filter(pk=row.pk, state=PersonState.STARTING)
        won = starting.update(state=PersonState.LIVE, started_at=lab.now(), launcher="")
        if won:
            text = f"session {row.session} was started on branch {row.branch}"
            announce.tell(lab, NoticeKind.SESSION_STARTED, text, project=row.project, by=row.by)
    row.refresh_from_db()
    if not won:
        endings.settle(lab, row)


def _fail(lab: Lab, row: ManualSession, why: str) -> None:
    """A start that came to nothing leaves nothing: what it made untouched is undone."""
    if row.fork_point:
        repo = row.project.repo(lab.paths)
        try:
            lab.sessions.kill(row.session, row.mark)
            lab.repos.roll_back(repo, Path(row.worktree), row.branch, row.fork_point)
        except SeamError as error:
            why = f"{why}; undoing it failed too: {error}"
    text = f"session {row.label} did not start: {why}"
    if endings.end(lab, row, text, warning=text):
        endings.settle(lab, row)
