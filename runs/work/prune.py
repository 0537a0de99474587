"""Removes the private folders of runs and validations of long ago; what is told of them stays."""

from __future__ import annotations

import shutil
from datetime import datetime, timedelta

from django.db import transaction

from runs.domain.ports import Lab
from runs.domain.states import NoticeKind
from runs.models import Fixer, Project, Run, Settings, Validation
from runs.work import announce

AT_ONCE = 500


def prune(lab: Lab, project: Project) -> int:
    """Remove what a project's agents printed in runs settled too long ago; how many folders."""
    days = Settings.current().output_days
    before = lab.now() - timedelta(days=days)
    old = (
        Run.objects.filter(project=project, settled_at__lt=before)
        .order_by("pk")
        .values_list("pk", flat=True)
    )
    there = _folders(lab)
    gone = 0
    for pk in [pk for pk in old if pk in there][:AT_ONCE]:
        shutil.rmtree(lab.paths.run_folder(pk), ignore_errors=True)
        gone += 1
    gone_too = _prune_validations(lab, project, before)
    if gone:
        with transaction.atomic():
            text = f"the output of {gone} {'run' if gone == 1 else 'runs'} settled more than {days} days ago was removed"
            announce.tell(lab, NoticeKind.WORK_SWEPT, text, project=project)
    return gone + gone_too


def _prune_validations(lab: Lab, project: Project, before: datetime) -> int:
    """What the commands of old validations printed, and the folders of their fixers."""
    old = Validation.objects.filter(project=project, settled_at__lt=before)
    fixers = Fixer.objects.filter(project=project, settled_at__lt=before)
    folders = [row.folder(lab.paths) for row in old]
    folders += [lab.paths.fixer_folder(pk) for pk in fixers.values_list("pk", flat=True)]
    there = [folder for folder in folders if folder.is_dir()][:AT_ONCE]
    for folder in there:
        shutil.rmtree(folder, ignore_errors=True)
    return len(there)


def _folders(lab: Lab) -> set[int]:
    """The runs whose folder is still there."""
    if not lab.paths.run_folders.is_dir():
        return set()
    return {int(one.name) for one in lab.paths.run_folders.iterdir() if one.name.isdigit()}
