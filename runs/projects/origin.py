"""Brings what is known of a project's origin up to date."""

from __future__ import annotations

import re
from datetime import datetime

from django.db import transaction

from runs.core.ports import Lab, SeamError
from runs.core.states import NoticeKind
from runs.models import Project
from runs.projects import fetch_ahead, git_credentials
from runs.timeline import announce

MOST_SAID = 300


class Away(SeamError):
    """Origin could not be read; `is_new` when that was not known, or was for another reason."""

    def __init__(self, text: str, *, is_new: bool) -> None:
        super().__init__(text)
        self.is_new = is_new


def freshen(lab: Lab, project: Project, since: datetime | None = None) -> str:
    """Fetch origin and take note when its default branch has another name now.

    A fetch that was begun ahead is enough where it began at `since` or later. Returns a warning, or '' when there is none: origins that labsite keeps take what is new in
    the checkout first, and a checkout that cannot be read is no reason to stop. Raises Away when
    origin cannot be read; the project says so until it can.
    """
    try:
        warning = _freshen(lab, project, since)
    except SeamError as error:
        raise Away(str(error), is_new=note(lab, project, str(error))) from error
    note(lab, project, "")
    return warning


def _freshen(lab: Lab, project: Project, since: datetime | None) -> str:
    found = fetch_ahead.fetches.wait(project.pk, since) if since is not None else None
    if found is None:
        found = fetch_ahead.fetch(lab, project, git_credentials.of_git(lab, project))
    branch = found.branch
    if branch != project.default_branch:
        project.default_branch = branch
        with transaction.atomic():
            Project.objects.filter(pk=project.pk).update(default_branch=branch)
            text = f"origin's default branch is {branch} now; new runs start from there"
            announce.tell(lab, NoticeKind.SETTING_CHANGED, text, project=project)
    return found.warning


def note(lab: Lab, project: Project, error: str) -> bool:
    """Keep why git could not read origin, or, with no error, that it can; whether that is new.

    Told once, again when the reason is another, and once when origin can be read again.
    """
    text, known = lab.mask(_origin_words(error)), project.origin_warning
    if _gist(text) == _gist(known):
        return False
    rows = Project.objects.filter(pk=project.pk, origin_warning=known)
    with transaction.atomic():
        won = bool(rows.update(origin_warning=text))
        if won:
            kind = NoticeKind.PROJECT_WARNED if text else NoticeKind.PROJECT_RECOVERED
            announce.tell(lab, kind, text or "git can read origin again", project=project)
            project.origin_warning = text
    return won


def _origin_words(error: str) -> str:
    if not error:
        return ""
    return (
        "git could not read origin, so no run can start. Restore the repository or access to it; if "
        "it is gone for good, remove the project. Nothing here was changed, and labsite tries again "
        f"every ten minutes. git said: {error[:MOST_SAID]}"
    )


def _gist(text: str) -> str:
    """Without numbers: how many milliseconds a refused connection took is no news."""
    return re.sub(r"\d+", "", text)
