"""A project's badge: its last outcome or its share of successes, as a picture for a README."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Count, Q

from runs.core.ports import Lab
from runs.core.states import GOOD, NEUTRAL, NoticeKind
from runs.history import plot_rules
from runs.models import Project, Run
from runs.timeline import announce
from runs.web import words

DAYS = 30
LETTER, PADDING = 6.6, 14  # of the letters that most readers have, so that nothing is cut
COLOURS = {"good": "#08704b", "bad": "#b92525", "calm": "#586170", "": "#586170"}


@dataclass(frozen=True, slots=True)
class Badge:
    """Two words side by side, with the widths of their boxes."""

    label: str
    value: str
    tone: str = ""

    @property
    def colour(self) -> str:
        return COLOURS[self.tone]

    @property
    def left(self) -> int:
        return _width(self.label)

    @property
    def right(self) -> int:
        return _width(self.value)

    @property
    def width(self) -> int:
        return self.left + self.right

    @property
    def label_at(self) -> float:
        return self.left / 2

    @property
    def value_at(self) -> float:
        return self.left + self.right / 2


def of(project: Project, show: str, now: datetime) -> Badge:
    """What a project's badge says now. One query."""
    ended = Run.objects.filter(project=project, started_at__isnull=False).exclude(outcome="")
    if show != "success":
        last = ended.order_by("-ended_at", "-id").values_list("outcome", flat=True).first()
        if last is None:
            return Badge("agent runs", "none yet")
        return Badge("last agent run", words.outcome_words(last), words.outcome_tone(last))
    rows = ended.filter(ended_at__gte=now - timedelta(days=DAYS)).exclude(outcome__in=NEUTRAL)
    found = rows.aggregate(all=Count("pk"), good=Count("pk", filter=Q(outcome__in=GOOD)))
    if not found["all"]:
        return Badge(f"success, {DAYS} days", "no runs")
    share = plot_rules.share(found["good"], found["all"])
    return Badge(f"success, {DAYS} days", f"{share} %", "good" if share >= 50 else "bad")


def publish(lab: Lab, project: Project, *, is_public: bool, by: str) -> bool:
    """Show the badge to everybody, or to those who log in; False when it was so already."""
    with transaction.atomic():
        rows = Project.objects.filter(pk=project.pk, is_badge_public=not is_public)
        won = bool(rows.update(is_badge_public=is_public))
        if won:
            text = f"badge {'is public now' if is_public else 'is not public any more'}"
            announce.tell(lab, NoticeKind.SETTING_CHANGED, text, project=project, by=by)
    project.is_badge_public = is_public
    return won


def _width(text: str) -> int:
    return round(len(text) * LETTER) + PADDING
