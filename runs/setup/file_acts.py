"""Stores, removes and places the files that a project brings along, such as `.env`.

Their contents are secrets: stored encrypted, never shown again, never told.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from django.db import transaction
from django.db.models import Q
from django.template.defaultfilters import filesizeformat

from runs.core.ports import Lab, UnfitFileError
from runs.core.refusal import ActRefused
from runs.core.states import NoticeKind
from runs.models import (
    ManualSession,
    Parked,
    Project,
    ProjectFile,
    RetiredFile,
    Run,
    Validation,
)
from runs.secrets import keys
from runs.setup import file_rules
from runs.timeline import announce


class FileRefusedError(ActRefused):
    """The file was not stored; says at each wrong field why."""


def list_files(project: Project) -> Sequence[ProjectFile]:
    """Return the files of a project without their contents."""
    return list(ProjectFile.objects.filter(project=project).defer("content"))


def store(lab: Lab, project: Project, path: str, content: str, *, by: str) -> ProjectFile:
    """Store a file that new worktrees get, in place of one with the same path.

    Raises FileRefusedError, and then nothing was stored. Whether the content is another one is not
    told: nobody can find out by trying.
    """
    path, content = file_rules.normalise_path(path), content.replace("\r\n", "\n")
    _check(path, content)
    size = len(content.encode())
    values = {"content": content, "size": size, "changed_at": lab.now(), "changed_by": by}
    with transaction.atomic():
        Project.objects.hold(project.pk)
        rows = ProjectFile.objects.filter(project=project)
        if why := file_rules.why_in_the_way(path, set(rows.values_list("path", flat=True))):
            raise FileRefusedError(why, field="path")
        before = rows.filter(path=path).first()
        if before is not None and before.content != content:
            _retire(lab, before)
        made, is_new = ProjectFile.objects.update_or_create(
            values, project=project, path=path, create_defaults=values
        )
        what = "was added to the set-up" if is_new else "of the set-up was replaced"
        text = f"file {path} {what} ({filesizeformat(size)})".replace("\xa0", " ")
        announce.tell(lab, NoticeKind.SETTING_CHANGED, text, project=project, by=by)
    return made


def _check(path: str, content: str) -> None:
    wrong = {
        "path": file_rules.why_unfit_path(path),
        "content": file_rules.why_unfit_content(content),
    }
    if not wrong["content"]:
        secrets = {line for one in keys.of_file(content) for line in one.splitlines()}
        wrong["content"] = file_rules.why_too_secret(len(secrets))
    if wrong := {name: why for name, why in wrong.items() if why}:
        raise FileRefusedError(" ".join(wrong.values()), fields=wrong)


def checkout_of(lab: Lab, project: Project) -> Path | None:
    """Return the folder on this host that a project was added by, if it has files checked out."""
    path = Path(project.source)
    is_here = path.is_absolute() and project.home in ("", lab.host)
    # A folder that may not be entered is none: lexists never raises, as Path.exists does.
    return path if is_here and os.path.lexists(path / ".git") else None


def store_included(lab: Lab, project: Project, *, by: str) -> tuple[list[str], dict[str, str]]:
    """Store the files that `.worktreeinclude` of the project's own folder names and git ignores.

    Returns the paths that were stored, and for each other one why it was not. Raises SeamError.
    """
    checkout = checkout_of(lab, project)
    found = lab.repos.included(checkout, file_rules.MOST_BYTES) if checkout is not None else {}
    stored, left_out = [], {}
    for path, text in found.items():
        try:
            if not text:
                raise FileRefusedError(file_rules.NO_TEXT, field="content")
            stored.append(store(lab, project, path, text, by=by).path)
        except FileRefusedError as refused:
            left_out[path] = refused.text
    return stored, left_out


def remove(lab: Lab, project: Project, file_id: int, *, by: str) -> bool:
    """Bring a file along no more; False when it is gone already. Worktrees keep what they have."""
    with transaction.atomic():
        Project.objects.hold(project.pk)
        row = ProjectFile.objects.filter(project=project, pk=file_id).first()
        if row is None:
            return False
        _retire(lab, row)
        row.delete()
        text = f"file {row.path} was removed from the set-up"
        announce.tell(lab, NoticeKind.SETTING_CHANGED, text, project=project, by=by)
    return True


def _retire(lab: Lab, row: ProjectFile) -> None:
    """Keep the secrets of a file that is replaced or removed known, where a worktree may hold it."""
    now = lab.now()
    if row.content and _may_be_held(row.project_id, now):
        RetiredFile.objects.create(project_id=row.project_id, content=row.content, changed_at=now)


def forget_retired(_: Lab, project: Project) -> None:
    """Forget what files held before, once no worktree can hold it any more. Safe to repeat."""
    rows = RetiredFile.objects.filter(project=project)
    for pk, changed_at in rows.values_list("pk", "changed_at"):
        if not _may_be_held(project.pk, changed_at):
            rows.filter(pk=pk).delete()


def _may_be_held(project_id: int, until: datetime) -> bool:
    """Return whether a worktree may hold what the files of a project held until then.

    That of a run is there until the run is settled, and after that while its branch is parked with
    it; further runs go on in it. Fixers are settled before their validation.
    """
    parked = Parked.objects.filter(project_id=project_id).exclude(worktree="").values("branch")
    began = Q(requested_at__lte=until)
    is_live = Q(settled_at=None) & (began | Q(continues__isnull=False))
    runs = Run.objects.filter(is_live | (began & Q(branch__in=parked)), project_id=project_id)
    open_ones = {"project_id": project_id, "settled_at": None}
    validations = Validation.objects.filter(began_at__lte=until, **open_ones)
    by_people = ManualSession.objects.filter(asked_at__lte=until, **open_ones)
    return runs.exists() or validations.exists() or by_people.exists()


def _read_contents(project: Project) -> tuple[Mapping[str, str], Sequence[str]]:
    """Return what each file of a project holds, by its path, and why others cannot be read."""
    found, unreadable = {}, []
    for row in ProjectFile.objects.filter(project=project):
        if row.content:
            found[row.path] = str(row.content)
        else:
            unreadable.append(
                f"{row.path} cannot be read any more, because labsite's secret key was replaced; "
                "paste it again on the project's settings page Set-up"
            )
    return found, unreadable


def place(lab: Lab, project: Project, worktree: Path) -> None:
    """Write the files of a project into a worktree in which no agent has worked yet.

    Raises UnfitFileError, and then nothing was written; SeamError where it could not be done.
    """
    found, unreadable = _read_contents(project)
    for why in unreadable:
        raise UnfitFileError(why)
    lab.repos.place_files(project.repo(lab.paths), worktree, found)


def place_again(lab: Lab, project: Project, worktree: Path) -> Sequence[str]:
    """Write those that a worktree lacks in which an agent has worked; say why some were not.

    Raises SeamError where it could not be done.
    """
    found, left_out = _read_contents(project)
    try:
        lab.repos.place_files(project.repo(lab.paths), worktree, found, is_again=True)
    except UnfitFileError as error:
        left_out = [*left_out, str(error)]
    return left_out
