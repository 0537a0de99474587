"""Shows on a project whether its tracker and its origin could be read; told once, and once when back."""

from __future__ import annotations

import re

from django.db import transaction

from runs.core.ports import Lab
from runs.core.states import NoticeKind
from runs.forges.fan_out import Silence
from runs.models import Project
from runs.timeline import announce

MOST = 300


def note(lab: Lab, project: Project, silence: Silence | None) -> None:
    """Keep why a tracker did not answer, or that it did. Writes only what is new."""
    text = "" if silence is None else words(silence)
    if text == project.warning:
        return
    is_new = bool(text) != bool(project.warning)
    with transaction.atomic():
        Project.objects.filter(pk=project.pk).update(warning=text)
        if is_new:
            kind = NoticeKind.PROJECT_WARNED if text else NoticeKind.PROJECT_RECOVERED
            announce.tell(lab, kind, text or "the tracker answers again", project=project)
    project.warning = text


def note_origin(lab: Lab, project: Project, error: str) -> bool:
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
        f"every ten minutes. git said: {error[:MOST]}"
    )


def _gist(text: str) -> str:
    """Without numbers: how many milliseconds a refused connection took is no news."""
    return re.sub(r"\d+", "", text)


def words(silence: Silence) -> str:
    """What a person reads of it: what is the matter, what was not harmed, when it is asked again."""
    if silence.until is not None:
        return (
            "The tracker takes no more questions from labsite for a while, so runs are left as "
            f"they are. It is asked again at {silence.until:%H:%M} UTC."
        )
    said = silence.text[:MOST].rstrip(".")
    why = f" ({said})" if said else ""
    return f"The tracker could not be read{why}, so runs are left as they are. It is asked again."
