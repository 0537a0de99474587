"""A quick look at what live agents print and commit, for the people who watch. Decides nothing."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from django.db import connection, transaction
from django.db.models import F

from runs.agents import linking
from runs.core import budgets
from runs.core.ports import Lab, SeamError
from runs.core.states import NoticeKind, Wait
from runs.guard import acts as guard
from runs.lifecycle.delivery_rules import SHORT
from runs.models import AgentProfile, Host, Run
from runs.timeline import announce
from runs.transcript import listening, own_usage, screens
from runs.waits import rules as wait_rules
from runs.waits.rules import Dialog

logger = logging.getLogger(__name__)

KEEP_LINE = (
    "UPDATE runs_run SET last_line = %s, last_output_at = %s "
    "WHERE id = %s AND outcome = '' AND state = 'working'"
)
KEEP_MARK = (
    "UPDATE runs_run SET screen_mark = %s, screen_at = %s "
    "WHERE id = %s AND outcome = '' AND state = 'working'"
)


def glance(lab: Lab, runs: Sequence[Run]) -> int:
    """Store the last line and new commits of each working run; how many rows changed.

    One tmux command for all screens; a branch costs one small file read unless it moved, and so
    does what a one-shot agent prints.
    """
    seen = see(lab, runs)
    lines = {run: screens.last_line(screen) for run, screen in seen.items()}
    changed = _keep_lines(
        lab, {run: line for run, line in lines.items() if line and line != run.last_line}
    )
    changed += listening.listen(lab, [run for run in runs if run.output])
    changed += own_usage.listen(lab, runs)
    changed += sum([_keep_commit(lab, run) for run in runs])
    changed += look_up_links(lab, runs)
    guard.watch(lab, runs)
    if changed:
        Host.objects.filter(name=lab.host).update(looked=F("looked") + 1)
    return changed


def see(lab: Lab, runs: Sequence[Run]) -> Mapping[Run, str]:
    """Read the screens of runs, and note which changed and what they show of a question."""
    shown = [run for run in runs if not run.output]
    try:
        found = lab.sessions.screens([run.session for run in shown])
    except SeamError as error:
        logger.info("screens were not read", extra={"error": str(error)})
        return {}
    seen = {run: found[run.session] for run in shown if run.session in found}
    _keep_marks(lab, seen)
    return seen


def _keep_marks(lab: Lab, seen: Mapping[Run, str]) -> None:
    """Note which screens changed, and what they show of a question to a person.

    Nothing is told by it, and no page is made anew.
    """
    shown = {run: screen for run, screen in seen.items() if screen.strip()}
    marks = {run: screens.mark(screen) for run, screen in shown.items()}
    changed = {run: mark for run, mark in marks.items() if mark != run.screen_mark}
    asking = [run for run in shown if run.asks]
    dialogs = {run: wait_rules.dialog(screens.plain(screen)) for run, screen in shown.items()}
    for run, dialog in dialogs.items():
        run.is_screen_read, run.shows_dialog = True, dialog.is_open
    if not changed and not asking:
        return
    now = lab.now()
    with transaction.atomic():
        for run in asking:
            _keep_question(run, dialogs[run], marks[run], now)
        _write_marks(changed, now)


def _write_marks(changed: Mapping[Run, str], now: datetime) -> None:
    """One prepared statement for a crowd, as for lines."""
    stored = connection.ops.adapt_datetimefield_value(now)
    rows = [(mark, stored, run.pk) for run, mark in changed.items()]
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(KEEP_MARK, rows)
    for run, mark in changed.items():
        run.screen_mark, run.screen_at = mark, now


def _keep_question(run: Run, dialog: Dialog, mark: str, now: datetime) -> None:
    """Whether the question that its hooks told of is over, or another one stands in its place."""
    if mark == run.screen_mark:
        return
    told: dict[str, object] = {}
    if dialog.is_open:
        if run.answered_at is not None and dialog.mark != run.answered_mark:
            told = {"asked_at": now, "question": ""}
    elif wait_rules.was_answered(run.asked_at, run.screen_at):
        told = {"asks": Wait.NONE, "asked_at": None, "question": ""}
    if told and Run.objects.working().filter(pk=run.pk).update(**told):
        for name, value in told.items():
            setattr(run, name, value)


def _keep_lines(lab: Lab, lines: Mapping[Run, str]) -> int:
    """All lines in one transaction; an agent's first line is also told on the timeline."""
    if not lines:
        return 0
    first = [run for run in lines if run.last_output_at is None]
    with transaction.atomic():
        changed = sum([_keep_first_line(lab, run, lines[run]) for run in first])
        return changed + _keep_later_lines(
            lab, {run: line for run, line in lines.items() if run.last_output_at is not None}
        )


def _keep_first_line(lab: Lab, run: Run, line: str) -> bool:
    won = Run.objects.working().filter(pk=run.pk).update(last_line=line, last_output_at=lab.now())
    if won:
        announce.tell(lab, NoticeKind.RUN_OUTPUT, "first output", run=run)
    return bool(won)


def _keep_later_lines(lab: Lab, lines: Mapping[Run, str]) -> int:
    """One prepared statement for a crowd: 200 rows in 5 ms, where 200 updates took 150."""
    if not lines:
        return 0
    now = connection.ops.adapt_datetimefield_value(lab.now())
    with connection.cursor() as cursor:
        cursor.executemany(KEEP_LINE, [(line, now, run.pk) for run, line in lines.items()])
        return max(0, int(cursor.rowcount))


def _keep_commit(lab: Lab, run: Run) -> bool:
    if not run.worktree or not run.fork_point:
        return False
    repo = run.project.repo(lab.paths)
    head = lab.repos.glimpse(repo, run.branch)
    if head is None or head in (run.head, run.fork_point):
        return False
    path = Path(run.worktree)
    try:
        # So that it outlives whatever becomes of the run's own repository.
        lab.repos.ref(repo, f"refs/heads/{run.branch}")
        progress = lab.repos.progress(path, run.fork_point)
        subject = lab.repos.subject(path, progress.head)
    except SeamError as error:
        logger.info("progress was not read", extra={"run_id": run.pk, "error": str(error)})
        return False
    with transaction.atomic():
        rows = Run.objects.working().filter(pk=run.pk)
        if not rows.update(head=progress.head, commits=progress.commits):
            return False
        # What was proven before this commit says nothing of it.
        rows.exclude(proven="").exclude(proven__contains=progress.head[:SHORT]).update(proven="")
        announce.tell(lab, NoticeKind.RUN_STEP, f"commit {progress.head[:7]} {subject}", run=run)
    return True


def look_up_links(lab: Lab, runs: Sequence[Run]) -> int:
    """Store the links into agents' own pages that were found, or after half a minute the general link; how many rows changed.

    Costs nothing unless a run still waits for its link.
    """
    waiting = [run for run in runs if run.link_waits]
    if not waiting:
        return 0
    profiles = {one.name: one for one in AgentProfile.objects.all()}
    return sum([_look_up_link(lab, run, profiles.get(run.agent)) for run in waiting])


def _look_up_link(lab: Lab, run: Run, profile: AgentProfile | None) -> bool:
    if profile is None:
        link: str | None = ""
    else:
        ident = ""
        if profile.link_url:
            env = {str(name): str(value) for name, value in profile.env.items()}
            ident = lab.registry.find(profile.link_files, profile.link_field, run.worktree, env)
        age = budgets.age(lab.now(), run.started_at)
        link = linking.settled(ident, profile.link_url, profile.link_generic, age)
    if link is None:
        return False
    rows = Run.objects.working().filter(pk=run.pk, link_waits=True)
    return bool(rows.update(deep_link=link, link_waits=False))
