"""Removes the private folders of runs and validations of long ago; what is told of them stays."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

from django.db import transaction

from runs.core.ports import Lab
from runs.core.states import NoticeKind
from runs.kept import retention
from runs.models import Fixer, Project, Run, Settings, Validation
from runs.timeline import announce

AT_ONCE = 500


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
    return gone + _remove(lab, _beside(lab, project), days, before)


def _beside(lab: Lab, project: Project) -> dict[Path, datetime]:
    """What the commands of ended validations printed, and the folders of their fixers."""
    checks = Validation.objects.filter(project=project).exclude(settled_at=None)
    fixers = Fixer.objects.filter(project=project).exclude(settled_at=None)
    found = {row.folder(lab.paths): row.settled_at for row in checks}
    found |= {lab.paths.fixer_folder(row.pk): row.settled_at for row in fixers}
    return {folder: at for folder, at in found.items() if at is not None}


def _remove(lab: Lab, settled: Mapping[Path, datetime], days: int, before: datetime) -> int:
    """Remove folders whose term is over; how many."""
    there = {str(one.relative_to(lab.paths.state)): one for one in settled if one.is_dir()}
    passed = retention.over(lab, there.keys(), days)
    names = [name for name in sorted(passed) if settled[there[name]] < before][:AT_ONCE]
    for name in names:
        shutil.rmtree(there[name], ignore_errors=True)
    retention.forget(names)
    return len(names)
