"""Keeps whole states before anything is removed, gives them back, lets them go when their time is up."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path

from django.db import transaction

from runs.core import naming
from runs.core.kept_ports import RESCUES, Snapshot
from runs.core.ports import Lab
from runs.core.states import NoticeKind
from runs.kept import retention
from runs.kept.teardown_rules import needs_rescue
from runs.models import Project, Rescue, Settings
from runs.timeline import announce

logger = logging.getLogger(__name__)


def keep(
    lab: Lab,
    project: Project,
    branch: str,
    tip: str,
    path: Path | None,
    *,
    why: str,
    by: str = "",
    tip_stays: bool = False,
    always: bool = False,
    tell: Callable[[int], None] | None = None,
) -> Rescue | None:
    """Keep the state of a branch and its worktree under a rescue ref before something goes.

    None when nothing would be lost: everything is committed and the tip stays; with `always` it
    is kept nevertheless. Asked again for the same state, the same rescue is kept longer. Raises
    SeamError when it could not be kept; then nothing may be removed. With `tell` it may take hours,
    and hears of the bytes stored.
    """
    repo = project.repo(lab.paths)
    state = lab.repos.snapshot(repo, tip, path, tell)
    if not always and not needs_rescue(state.is_dirty, state.head == tip, tip_stays):
        return None
    now = lab.now()
    until = now + timedelta(days=Settings.current().rescue_days)
    standing = _standing(lab, project, branch, state)
    if standing is not None:
        Rescue.objects.filter(pk=standing.pk).update(expires_at=until)
        retention.forget([retention.of_rescue(standing.ref, project.pk)])
        return standing
    name = naming.rescue_name(branch, f"{now:%Y%m%dT%H%M%S}-{secrets.token_hex(2)}")
    ref = f"{RESCUES}{name}"
    notes = _notes(branch, state, why, by, now, until)
    commit = lab.repos.keep(repo, ref, state, notes)
    with transaction.atomic():
        made = Rescue.objects.create(
            project=project,
            ref=ref,
            branch=branch,
            why=why[:200],
            by=by,
            at=now,
            expires_at=until,
            commit=commit,
            tip=state.tip,
            head=state.head,
            index=state.index,
            files=state.files,
            is_dirty=state.is_dirty,
            had_worktree=state.has_worktree,
        )
        text = f"{branch} was kept whole before it goes: {why}; can be restored for {_days(until - now)}"
        announce.tell(
            lab,
            NoticeKind.WORK_RESCUED,
            text,
            project=project,
            issue_key=_key(project, branch),
            by=by,
        )
    return made


def _standing(lab: Lab, project: Project, branch: str, state: Snapshot) -> Rescue | None:
    """A rescue of the very same state that is still there; what was restored may change again."""
    found = (
        Rescue.objects.waiting()
        .filter(project=project, branch=branch, tip=state.tip, head=state.head)
        .filter(index=state.index, files=state.files, had_worktree=state.has_worktree)
        .first()
    )
    repo = project.repo(lab.paths)
    if found is None or lab.repos.tip(repo, found.ref) != found.commit:
        return None
    if state.beside and not set(state.beside) <= set(lab.repos.parents(repo, found.commit)):
        return None  # a repository inside has commits that this one does not hold
    return found


def _notes(
    branch: str, state: Snapshot, why: str, by: str, now: datetime, until: datetime
) -> Mapping[str, str]:
    """What a ref says of itself, so that it can be listed again when the database is lost."""
    return {
        "branch": branch,
        "why": why,
        "by": by,
        "at": f"{now.timestamp():.0f}",
        "expires": f"{until.timestamp():.0f}",
        "files": state.files,
        "dirty": "yes" if state.is_dirty else "",
        "worktree": "yes" if state.has_worktree else "",
    }


def _key(project: Project, branch: str) -> str:
    return project.claimed_key(branch) or ""


def _days(length: timedelta) -> str:
    return "1 day" if length.days == 1 else f"{length.days} days"
