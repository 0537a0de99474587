"""Sessions that people drive, as a project's page lists them."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from runs.core.database import prepared_with_keys
from runs.core.ports import Lab
from runs.core.states import PersonState
from runs.models import ManualSession, Project

SHOWN = 50


@dataclass(frozen=True, slots=True)
class Driven:
    """A session that a person drives, and the command that leads into it."""

    row: ManualSession
    attach: str


def of(lab: Lab, project: Project) -> list[Driven]:
    """Sessions that people drive, and for a day those that left something to be told. One query."""
    return [with_attach(lab, row) for row in _shown().rows(lab.now(), keys=[project.pk])]


@prepared_with_keys(1)
def _shown(now: datetime, project: int) -> QuerySet[ManualSession]:
    lately = Q(ended_at__gt=now - timedelta(days=1)) & ~Q(warning="")
    return ManualSession.objects.filter(Q(settled_at=None) | lately, project=project)[:SHOWN]


def with_attach(lab: Lab, row: ManualSession) -> Driven:
    """A session with the command that leads into it, while it is live on this host."""
    is_live = row.state == PersonState.LIVE and row.host == lab.host
    attach = shlex.join(lab.sessions.attach_command(row.session)) if is_live else ""
    return Driven(row, attach)
