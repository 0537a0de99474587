"""Agents that try to mend a failed validation. They count as nothing.

`tend` brings a validation in *fixing* one step further and is safe to repeat: begin a fixer when
there is a slot, see how it ends, and have what it delivered checked.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from django.db import IntegrityError, transaction

from runs.accounts import holds
from runs.agents import checks, claude_settings, commands, orders
from runs.core import budgets, lease, naming, tokens
from runs.core.ports import Lab, Order, SeamError, Sighting
from runs.core.states import NoticeKind, ValidationState, ValidationStep
from runs.dispatch import reserve
from runs.models import AgentProfile, Fixer, Settings, Validation
from runs.setup import commands as setup_commands
from runs.setup import other_worktrees
from runs.setup.other_worktrees import OtherWorktree
from runs.setup.preparation import CalledOffError, SetUpFailedError
from runs.timeline import announce
from runs.validation import endings, fixer_endings, rules
from runs.validation.rules import Failure, FixEnd, FixFacts, Verdict

logger = logging.getLogger(__name__)

# As long as files may be checked out (runs/machine/git.py:CHECKOUT), as much for large files, and
# as much for all else but the set-up.
START_LIMIT = timedelta(minutes=45)
MOST_COMMITS = 50


class NotStarted(Exception):
    """The fixer cannot start; the text says why."""


def tend(lab: Lab, row: Validation) -> None:
    """The next step of a validation in *fixing*; nothing when there is only to wait."""
    row.refresh_from_db()
    if row.state != ValidationState.RUNNING or row.step != ValidationStep.FIXING:
        return
    fixer = row.fixers.select_related("project", "validation").filter(number=row.attempt).first()
    if fixer is not None and fixer.is_open:
        _watch(lab, fixer)
        if fixer.is_open:
            return
    if fixer is not None and not fixer_endings.settle(lab, fixer):
        return
    if fixer is not None and fixer.end == FixEnd.DELIVERED and fixer.checked_at is None:
        _have_checked(lab, row)
    elif row.attempt < row.most_fixers:
        _begin(lab, row)
    else:
        _fail(lab, row, row.reason)


def carry_out(lab: Lab, fixer_id: int) -> None:
    """Make branch, worktree and session of a fixer. Safe to call twice."""
    rows = Fixer.objects.filter(pk=fixer_id, host=lab.host)
    free = rows.filter(end="", launcher="", started_at=None)
    if not free.update(launcher=lab.process):
        return
    fixer = Fixer.objects.select_related("project__agent", "validation").get(pk=fixer_id)
    try:
        _start(lab, fixer)
    except (SeamError, NotStarted) as error:
        fixer_endings.end(lab, fixer, FixEnd.NOT_STARTED, why=str(error))
    else:
        if not Fixer.objects.filter(pk=fixer_id, end="").update(started_at=lab.now(), launcher=""):
            # It was interrupted while it came to life, or is gone with its project.
            known = Fixer.objects.select_related("project", "validation").filter(pk=fixer_id)
            fixer_endings.settle(lab, known.first() or fixer)


def _begin(lab: Lab, row: Validation) -> None:
    """Take a slot for the next fixer; while there is none, the validation waits."""
    settings = Settings.current()
    profile = row.project.agent or settings.agent
    if profile is None:
        _fail(lab, row, f"{row.reason}; no agent is chosen that could mend it")
        return
    if holds.words(profile, lab.now()):
        return  # its account cannot be used: the validation waits, as it does for a slot
    number = lease.acquire(lab)
    if number is None:
        return
    try:
        fixer = _store(lab, row, profile, settings)
    except (SeamError, IntegrityError) as error:
        logger.info("no fixer was begun", extra={"validation": row.pk, "error": str(error)})
        return
    finally:
        lease.release(lab, number)
    if fixer is not None:
        lab.queue.on(fixer.host).fix(fixer.pk)


def _fail(lab: Lab, row: Validation, why: str) -> None:
    if endings.close(lab, row, Verdict(ValidationState.FAILED, why)):
        endings.settle(lab, row)


def _store(lab: Lab, row: Validation, profile: AgentProfile, settings: Settings) -> Fixer | None:
    """The row that holds the slot from here on; None when there is no slot or no need any more."""
    if reserve.room(lab, settings, lab.sessions.look()).full_at is not None:
        return None
    attempt = row.attempt + 1
    label = naming.fix_label(row.pk, attempt, lab.now())
    branch = naming.person_branch(label)
    failure = _failure(row)
    with transaction.atomic():
        rows = Validation.objects.running().filter(
            pk=row.pk, step=ValidationStep.FIXING, attempt=row.attempt
        )
        if not rows.update(attempt=attempt):
            return None
        fixer = Fixer.objects.create(
            validation=row,
            project=row.project,
            host=lab.host,
            number=attempt,
            session=naming.person_session(row.project.slug, label),
            branch=branch,
            mark=tokens.new_mark(),
            fork_point=row.failure["commit"],
            agent=profile.name,
            prompt=rules.task_text(failure, branch, row.project.default_branch),
            asked_at=lab.now(),
        )
        text = f"fixer {attempt} of {row.most_fixers} is started on branch {branch}"
        kind = NoticeKind.VALIDATION_STEP
        announce.tell(lab, kind, text, project=row.project, watch_id=row.session_id)
    row.refresh_from_db()
    return fixer


def _failure(row: Validation) -> Failure:
    kept = row.failure
    return Failure(kept["reason"], row.commands, kept["tail"], kept["branches"])


def _start(lab: Lab, fixer: Fixer) -> None:
    project, settings = fixer.project, Settings.current()
    profile = project.agent or settings.agent
    if profile is None:
        raise NotStarted("no agent is chosen")
    refused = checks.refusal(lab, profile)
    if refused is not None:
        raise NotStarted(refused[0])
    path = lab.paths.worktrees / naming.worktree_name(
        project.slug, fixer.branch.removeprefix("lab/")
    )
    if not Fixer.objects.filter(pk=fixer.pk, end="").update(worktree=str(path)):
        return
    fixer.worktree = str(path)
    repo, folders = project.repo(lab.paths), project.checked_out_folders
    lab.repos.add_worktree(repo, path, fixer.branch, fixer.fork_point, folders)
    try:
        _prepare(lab, fixer, path)
    except CalledOffError:
        return
    lab.trust.approve(profile.trust, path, profile.env)
    if Fixer.objects.filter(pk=fixer.pk, end="").exists():
        order, _ = orders.without_signing(lab, _order(lab, fixer, profile, settings))
        lab.sessions.start(order)


def _prepare(lab: Lab, fixer: Fixer, path: Path) -> None:
    """Set the worktree up as that of a run. Raises CalledOffError, SeamError.

    What fails may be what the fixer is to mend, so it starts all the same.
    """
    worktree = OtherWorktree(path, lab.paths.fixer_folder(fixer.pk), "setup", fixer.mark)
    rows = Fixer.objects.filter(pk=fixer.pk, end="")
    try:
        other_worktrees.prepare(lab, fixer.project, worktree, rows.exists)
    except SetUpFailedError as error:
        text = f"fixer {fixer.number} starts without the set-up: {error}"
        kind, watch = NoticeKind.VALIDATION_STEP, fixer.validation.session_id
        with transaction.atomic():
            announce.tell(lab, kind, text, project=fixer.project, watch_id=watch)


def _order(lab: Lab, fixer: Fixer, profile: AgentProfile, settings: Settings) -> Order:
    """Without a token of any kind: a fixer commits, and labsite does the rest."""
    folder = lab.paths.fixer_folder(fixer.pk)
    is_general = profile == settings.agent
    values = {
        "prompt": fixer.prompt,
        "prompt_file": str(folder / "prompt.md"),
        "model": settings.model if is_general else "",
        "effort": settings.effort if is_general else "",
        "worktree": fixer.worktree,
        "settings": str(folder / claude_settings.NAME),
        "session": str(uuid.uuid4()),
    }
    template, files = orders.template_of(profile), {"prompt.md": fixer.prompt}
    if claude_settings.is_wanted(template):
        files[claude_settings.NAME] = claude_settings.content()
    own = {str(name): str(value) for name, value in profile.env.items()}
    env = {**orders.switches_of(profile), **own}
    return Order(
        session=fixer.session,
        folder=folder,
        cwd=Path(fixer.worktree),
        argv=commands.fill(template, values),
        env={
            "GIT_TERMINAL_PROMPT": "0",
            **orders.committer_env(lab, fixer.project, settings),
            **env,
        },
        files=files,
        marker=fixer.mark,
        nofile=settings.nofile_limit,
        output=profile.output,
    )


def _watch(lab: Lab, fixer: Fixer) -> None:
    """See whether a fixer has ended; nothing is ended on missing facts."""
    try:
        seen = lab.sessions.look()
        if fixer.started_at is None:
            _recover(lab, fixer, seen)
            return
        facts, head, count = _facts(lab, fixer, seen)
    except SeamError as error:
        logger.info("a fixer was not seen", extra={"fixer": fixer.pk, "error": str(error)})
        return
    how = rules.fix_end(facts)
    if how is not None:
        fixer_endings.end(lab, fixer, how, head, count)


def _is_alive(fixer: Fixer, sightings: Mapping[str, Sighting]) -> bool:
    seen = sightings.get(fixer.session)
    return seen is not None and seen.alive and seen.marker == fixer.mark


def _facts(lab: Lab, fixer: Fixer, sightings: Mapping[str, Sighting]) -> tuple[FixFacts, str, int]:
    """The session was looked at before the commits, so that a last commit is never missed."""
    repo = fixer.project.repo(lab.paths)
    head = lab.repos.tip(repo, f"refs/heads/{fixer.branch}") or fixer.fork_point
    made = (
        lab.repos.commits(repo, fixer.fork_point, head, MOST_COMMITS)
        if head != fixer.fork_point
        else []
    )
    facts = FixFacts(
        alive=_is_alive(fixer, sightings),
        commits=len(made),
        is_done=bool(made) and rules.is_done(f"{made[0].subject}\n{made[0].body}"),
        age=budgets.age(lab.now(), fixer.started_at),
        budget=fixer.project.budget(Settings.current()),
    )
    return facts, head, len(made)


def _recover(lab: Lab, fixer: Fixer, sightings: Mapping[str, Sighting]) -> None:
    """A start whose message was lost is asked for again; one whose process died is given up."""
    if not fixer.launcher:
        lab.queue.on(fixer.host).fix(fixer.pk)
        return
    limit = START_LIMIT + setup_commands.longest(fixer.project, setup_commands.NEW)
    is_over = budgets.age(lab.now(), fixer.asked_at) > limit
    if lab.is_process_alive(fixer.launcher) is not False and not is_over:
        return
    if _is_alive(fixer, sightings):
        Fixer.objects.filter(pk=fixer.pk, end="").update(started_at=lab.now(), launcher="")
    else:
        why = "labsite was interrupted while it made the session"
        fixer_endings.end(lab, fixer, FixEnd.NOT_STARTED, why=why)


def _have_checked(lab: Lab, row: Validation) -> None:
    """The commands judge what a fixer delivered."""
    rows = Validation.objects.running().filter(
        pk=row.pk, step=ValidationStep.FIXING, attempt=row.attempt
    )
    if rows.update(step=ValidationStep.CHECKING, runner="", losses=0, troubles=0, not_before=None):
        lab.queue.on(row.host).validate(row.pk)
    row.refresh_from_db()
