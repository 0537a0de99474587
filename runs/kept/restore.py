"""Gives rescued work back, lists what refs alone remember, and lets go of what is too old."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from django.db import transaction

from runs.core import naming
from runs.core.ports import Lab, SeamError, Taken
from runs.core.refusal import ActRefused
from runs.core.states import NoticeKind
from runs.kept import counts, owners, retention
from runs.models import Project, Rescue, Settings
from runs.timeline import announce

logger = logging.getLogger(__name__)

NAMES_TRIED = 20


class RestoreRefused(ActRefused):
    """Nothing was restored; the text says why."""

    code = "already_restored"


def restore(lab: Lab, found: Rescue, by: str) -> str:
    """Make a rescued branch again, with its worktree if it had one; the name that it got.

    Under its own name, or a free one when that is taken or a run is starting on it. Raises
    RestoreRefused when somebody restored it already, SeamError when git could not; then the rescue
    is as it was.
    """
    project, repo = found.project, found.project.repo(lab.paths)
    with lab.repos.hold(repo):
        fresh = Rescue.objects.filter(pk=found.pk).first()
        if fresh is None or fresh.restored_at is not None:
            text = f"It was restored already, as {fresh.restored_as}." if fresh else "It is gone."
            raise RestoreRefused(f"{text} Nothing was changed.")
        name = _put_back(lab, project, repo, fresh)
        with transaction.atomic():
            Rescue.objects.waiting().filter(pk=fresh.pk).update(
                restored_at=lab.now(), restored_as=name, restored_by=by
            )
            key = project.claimed_key(name) or ""
            other = "" if name == fresh.branch else f", since {fresh.branch} is taken"
            text = f"{fresh.branch} was restored as {name}{other}; it is parked again"
            announce.tell(
                lab, NoticeKind.WORK_RESTORED, text, project=project, issue_key=key, by=by
            )
    counts.take(lab, project)
    return name


def _put_back(lab: Lab, project: Project, repo: Path, found: Rescue) -> str:
    taken = owners.owned(project, lab.sessions.look())
    for name in _names(found.branch):
        if name in taken:
            continue
        path = _folder(lab, project, name) if found.had_worktree else None
        try:
            lab.repos.put_back(repo, found.ref, name, path)
        except Taken as error:
            logger.info("name was taken", extra={"branch": name, "error": str(error)})
        else:
            return name
    raise SeamError(f"no free name was found for {found.branch}")


def _names(branch: str) -> Iterator[str]:
    yield branch
    yield f"{branch}-restored"
    yield from (f"{branch}-restored-{number}" for number in range(2, NAMES_TRIED))


def _folder(lab: Lab, project: Project, branch: str) -> Path:
    """The folder that a run of the branch would have, or one beside it."""
    key = naming.without_prefix(branch, project.claim_prefixes)
    return lab.paths.worktrees / naming.worktree_name(project.slug, key)


def let_go(lab: Lab, project: Project) -> int:
    """Remove the refs whose time is up; how many. The ref goes first: a row without one is seen.

    Their time is up by the clock and in days that labsite lived through, since a clock may be wrong.
    """
    gone = 0
    rows = {retention.of_rescue(one.ref, project.pk): one for one in project.rescues.all()}
    passed = retention.over(lab, rows.keys(), Settings.current().rescue_days)
    for name in sorted(name for name in passed if rows[name].expires_at <= lab.now()):
        lab.repos.drop(project.repo(lab.paths), rows[name].ref)
        gone += 1
        rows[name].delete()
        retention.forget([name])
    if gone:
        with transaction.atomic():
            text = f"{gone} rescued {'state' if gone == 1 else 'states'} let go after the time to restore"
            announce.tell(lab, NoticeKind.WORK_SWEPT, text, project=project)
    return gone


def adopt(lab: Lab, project: Project) -> int:
    """List rescue refs that no row tells of: a process was killed in between, or the rows were lost."""
    refs = lab.repos.rescues(project.repo(lab.paths))
    known = set(Rescue.objects.filter(project=project).values_list("ref", flat=True))
    missing = [_row(project, ref, notes) for ref, notes in refs.items() if ref not in known]
    made = [row for row in missing if row is not None]
    Rescue.objects.bulk_create(made, ignore_conflicts=True)
    return len(made)


def _row(project: Project, ref: str, notes: Mapping[str, str]) -> Rescue | None:
    """What a ref says of itself; None for one that does not say enough to be restored."""
    needed = ("branch", "at", "expires", "commit", "tip", "head", "index", "files")
    if any(not notes.get(name) for name in needed) or not naming.is_managed(
        notes["branch"], project.managed_prefixes
    ):
        return None
    try:
        at, until = (datetime.fromtimestamp(int(notes[n]), UTC) for n in ("at", "expires"))
    except (ValueError, OverflowError, OSError):
        return None
    return Rescue(
        project=project,
        ref=ref,
        branch=notes["branch"],
        why=notes.get("why", "")[:200],
        by=notes.get("by", "")[:150],
        at=at,
        expires_at=until,
        commit=notes["commit"],
        tip=notes["tip"],
        head=notes["head"],
        index=notes["index"],
        files=notes["files"],
        is_dirty=bool(notes.get("dirty")),
        had_worktree=bool(notes.get("worktree")),
    )
