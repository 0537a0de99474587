"""Measures what a project takes on disk, and warns before its quota is reached. Removes nothing."""

from __future__ import annotations

from pathlib import Path

from django.db import transaction

from runs.core.kept_ports import Disk
from runs.core.ports import Lab
from runs.core.states import NoticeKind
from runs.models import Parked, Project, Run, Settings
from runs.timeline import announce

MEGABYTE = 1024 * 1024


def of(project: Project, settings: Settings) -> Disk | None:
    """Disk use as last measured beside the quota; None before the first measurement."""
    if project.disk_bytes is None:
        return None
    quota = settings.disk_quota_mb if project.disk_quota_mb is None else project.disk_quota_mb
    return Disk(project.disk_bytes, quota * MEGABYTE)


def measure(lab: Lab, project: Project) -> int:
    """Store the size of repository, worktrees and temporary files; bytes in all. Raises SeamError."""
    repo = project.repo(lab.paths)
    trees = {
        Path(b.worktree) for b in lab.repos.branches(repo, project.managed_prefixes) if b.worktree
    }
    parked = list(Parked.objects.filter(project=project, host=lab.host))
    folders = {row.pk: lab.paths.worktrees / row.worktree for row in parked if row.worktree}
    trees |= set(folders.values())
    live = Run.objects.filter(project=project, host=lab.host, settled_at=None)
    temporary = {lab.paths.temporary_folder(pk) for pk in live.values_list("pk", flat=True)}
    sizes = lab.repos.sizes([repo, *sorted(trees), *sorted(temporary)])
    for row in parked:
        row.bytes = sizes.get(folders[row.pk]) if row.pk in folders else None
    Parked.objects.bulk_update(parked, ["bytes"], batch_size=200)
    total = sum(sizes.values())
    Project.objects.filter(pk=project.pk).update(disk_bytes=total)
    project.disk_bytes = total
    _warn(lab, project)
    return total


def clear_temporary(lab: Lab) -> None:
    """Remove temporary folders of runs that this host has settled, or that no row names any more."""
    try:
        found = {int(one.name): one for one in lab.paths.temporary.iterdir() if one.name.isdigit()}
    except OSError:
        return
    live = Run.objects.filter(settled_at=None).values_list("pk", flat=True)
    for pk in found.keys() - set(live):
        lab.sessions.clear_temporary(found[pk])


def _warn(lab: Lab, project: Project) -> None:
    """Told once when four fifths are used, and once more only after it was less in between."""
    use = of(project, Settings.current())
    is_low = use is not None and use.is_low
    with transaction.atomic():
        rows = Project.objects.filter(pk=project.pk, disk_warned=not is_low)
        if rows.update(disk_warned=is_low) and use is not None and is_low:
            text = (
                f"{use.used // MEGABYTE} MB on disk, {use.used * 100 // use.quota} % of the quota. "
                "Nothing is removed by itself: discard parked work that is no longer needed"
            )
            announce.tell(lab, NoticeKind.DISK_WARNED, text, project=project)
