"""Brings what is known of a project's origin up to date."""

from __future__ import annotations

from pathlib import Path

from django.db import transaction

from runs.core.ports import Lab, SeamError
from runs.core.states import NoticeKind
from runs.forges import tracker_health
from runs.models import Project
from runs.projects import git_credentials
from runs.timeline import announce


class Away(SeamError):
    """Origin could not be read; `is_new` when that was not known, or was for another reason."""

    def __init__(self, text: str, *, is_new: bool) -> None:
        super().__init__(text)
        self.is_new = is_new


def freshen(lab: Lab, project: Project) -> str:
    """Fetch origin and take note when its default branch has another name now.

    Returns a warning, or '' when there is none: origins that labsite keeps take what is new in
    the checkout first, and a checkout that cannot be read is no reason to stop. Raises Away when
    origin cannot be read; the project says so until it can.
    """
    try:
        warning = _freshen(lab, project)
    except SeamError as error:
        raise Away(
            str(error), is_new=tracker_health.note_origin(lab, project, str(error))
        ) from error
    tracker_health.note_origin(lab, project, "")
    return warning


def _freshen(lab: Lab, project: Project) -> str:
    warning = ""
    if project.is_hosted:
        try:
            warning = lab.repos.refill(project.origin(lab.paths), Path(project.source))
        except SeamError as error:
            warning = f"the checkout could not be read, so labsite's own origin was used: {error}"
    repo = project.repo(lab.paths)
    token = git_credentials.of_git(lab, project)
    lab.repos.fetch(repo, token, url=project.url)
    branch = lab.repos.default_branch(repo, token, project.url)
    if branch != project.default_branch:
        project.default_branch = branch
        with transaction.atomic():
            Project.objects.filter(pk=project.pk).update(default_branch=branch)
            text = f"origin's default branch is {branch} now; new runs start from there"
            announce.tell(lab, NoticeKind.SETTING_CHANGED, text, project=project)
    return warning
