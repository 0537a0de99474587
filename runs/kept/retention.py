"""How long is kept what cannot be brought back: days that labsite lived through, not the clock's.

A clock may be a month ahead at boot, and a backup may be restored after a year. A term counts from
when it is first asked for, in seconds that this host's ticks have counted (`lived`).
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from pathlib import Path

from django.db import transaction

from runs.core.ports import Lab
from runs.core.states import NoticeKind
from runs.models import (
    Attempt,
    CheckRun,
    Fixer,
    Host,
    Project,
    Run,
    Settings,
    Term,
    Validation,
)
from runs.timeline import announce

DAY = 86_400.0
AT_ONCE = 500


def over(lab: Lab, names: Collection[str], days: int) -> frozenset[str]:
    """Those whose term has passed; whatever has none yet gets one of so many days."""
    now = lived(lab)
    due = dict(Term.objects.filter(name__in=names).values_list("name", "due"))
    fresh = [Term(name=name, due=now + days * DAY) for name in names if name not in due]
    Term.objects.bulk_create(fresh, ignore_conflicts=True, batch_size=200)
    return frozenset(name for name, at in due.items() if at <= now)


def left(lab: Lab, names: Collection[str]) -> Mapping[str, timedelta]:
    """How much of each term is left; without those that have not begun."""
    now = lived(lab)
    rows = Term.objects.filter(name__in=names).values_list("name", "due")
    return {name: timedelta(seconds=max(0.0, due - now)) for name, due in rows}


def forget(names: Collection[str]) -> None:
    """What is gone needs no term; what is kept anew begins a new one."""
    Term.objects.filter(name__in=names).delete()


def of_rescue(ref: str, project_id: int) -> str:
    """The name of a rescue's term."""
    return f"rescue {project_id} {ref}"


def prune(lab: Lab, project: Project) -> int:
    """Remove what a project's agents printed in runs settled too long ago; how many folders.

    Too long ago is so by the clock and in days that labsite lived through.
    """
    days = Settings.current().output_days
    settled = Run.objects.filter(project=project).exclude(settled_at=None)
    rows = settled.values_list("pk", "settled_at")
    runs = {lab.paths.run_folder(pk): at for pk, at in rows if at is not None}
    before = lab.now() - timedelta(days=days)
    gone = _remove(lab, runs, days, before)
    if gone:
        with transaction.atomic():
            text = f"the output of {gone} {'run' if gone == 1 else 'runs'} settled more than {days} days ago was removed"
            announce.tell(lab, NoticeKind.WORK_SWEPT, text, project=project)
    gone += _remove(lab, _beside(lab, project), days, before)
    _note_removed(lab, project)
    return gone


def _note_removed(lab: Lab, project: Project) -> None:
    """Let the rows of kept worktrees say that these are gone, whoever removed them."""
    for rows in (Validation.objects, Attempt.objects):
        kept = rows.filter(project=project, host=lab.host, artifacts__worktree_state="kept")
        for row in kept.exclude(settled_at=None).only("pk", "artifacts"):
            place = row.artifacts.get("worktree_path")
            if place and not Path(place).exists():
                made = {**row.artifacts, "worktree_state": "removed"}
                rows.filter(pk=row.pk).update(artifacts=made)


def _beside(lab: Lab, project: Project) -> dict[Path, datetime]:
    """What commands of ended validations, attempts and checks printed and left, and fixers' folders."""
    checks = Validation.objects.filter(project=project).exclude(settled_at=None)
    fixers = Fixer.objects.filter(project=project).exclude(settled_at=None)
    found = {row.folder(lab.paths): row.settled_at for row in checks}
    found |= {lab.paths.fixer_folder(row.pk): row.settled_at for row in fixers}
    attempts = Attempt.objects.filter(project=project).exclude(settled_at=None)
    attempts = attempts.only("pk", "settled_at", "artifacts")
    found |= {row.folder(lab.paths): row.settled_at for row in attempts}
    for one in (*checks, *attempts):
        found |= dict.fromkeys(_kept(lab, one), one.settled_at)
    asked = CheckRun.objects.filter(run__project=project, is_running=False)
    for check in asked.only("pk", "ended_at"):
        found[check.folder(lab.paths)] = check.ended_at
    return {folder: at for folder, at in found.items() if at is not None}


def _kept(lab: Lab, row: Validation | Attempt) -> list[Path]:
    """Worktree and fixture that were kept to be looked at; a fixture elsewhere is its people's."""
    tree, fixture = (row.artifacts.get(name) for name in ("worktree_path", "e2e_fixture_path"))
    places = [(lab.paths.clean_rooms, Path(tree))] if tree else []
    if fixture:
        places.append((lab.paths.e2e_fixtures, Path(fixture).parent))
    return [path for root, path in places if path != root and path.is_relative_to(root)]


def _remove(lab: Lab, settled: Mapping[Path, datetime], days: int, before: datetime) -> int:
    """Remove folders whose term is over; how many."""
    there = {str(one.relative_to(lab.paths.state)): one for one in settled if one.is_dir()}
    passed = over(lab, there.keys(), days)
    names = [name for name in sorted(passed) if settled[there[name]] < before][:AT_ONCE]
    for name in names:
        shutil.rmtree(there[name], ignore_errors=True)
    forget(names)
    return len(names)


def lived(lab: Lab) -> float:
    """Seconds that labsite has lived through on this host, as its ticks counted them."""
    found = Host.objects.filter(name=lab.host).values_list("lived", flat=True).first()
    return found or 0.0
