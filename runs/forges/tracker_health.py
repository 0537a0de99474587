"""Shows on a project whether its tracker could be read; told once, and once when it is back."""

from __future__ import annotations

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
    passes = silence is not None and silence.passes
    since = (project.silent_since or lab.now()) if passes else None
    if (text, since) == (project.warning, project.silent_since):
        return
    is_new = bool(text) != bool(project.warning)
    with transaction.atomic():
        Project.objects.filter(pk=project.pk).update(warning=text, silent_since=since)
        if is_new:
            kind = NoticeKind.PROJECT_WARNED if text else NoticeKind.PROJECT_RECOVERED
            announce.tell(lab, kind, text or "the tracker answers again", project=project)
    project.warning, project.silent_since = text, since


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
