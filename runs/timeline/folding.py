"""Folds what monitors said again and again: many equal entries become one, which says how often.

In short transactions of one group's entries each. Killed between two, or run twice, it goes on with
what is left: whatever was looked at is marked in the same transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet

from runs.core.ports import Lab
from runs.core.states import NoticeKind
from runs.models import Notice, Settings
from runs.timeline.fold_rules import Fold, Passed, fold
from runs.timeline.models import UNFOLDED

AT_ONCE = 200
GROUPS, STEPS = 50, 20  # of one turn
PAUSE_SECONDS = 0.02
_FIELDS = ("pk", "text", "at", "times", "since")


class Folding:
    """Goes through the groups, some at a time; where it stopped it goes on at the next turn."""

    def __init__(self) -> None:
        self._group = 0

    def tend(self, lab: Lab) -> int:
        """Fold what is old enough, in at most `STEPS` steps; how many entries went."""
        before = lab.now() - timedelta(days=Settings.current().fold_days)
        gone = steps = 0
        for group in self._groups(before):
            while steps < STEPS and (done := step(group, before)) is not None:
                gone, steps = gone + done, steps + 1
                lab.pause(PAUSE_SECONDS)
            if steps == STEPS:
                return gone
            self._group = group
        return gone

    def _groups(self, before: datetime) -> Iterator[int]:
        """Groups with entries that are due, beginning after the last one that is done; each costs one
        read of an index."""
        after, seen = self._group, 0
        while seen < GROUPS:
            rows = waiting().filter(group__gt=after).order_by("group_id", "pk")
            found = rows.values_list("group_id", "at").first()
            if found is None:
                self._group = 0
                return
            seen, after = seen + 1, found[0]
            if found[1] < before:
                yield after
            else:
                self._group = after


def waiting() -> QuerySet[Notice]:
    """Passes of monitors that nobody has looked at; one that was sent to somebody stays as it was."""
    return Notice.objects.filter(UNFOLDED, delivery=None)


def step(group: int, before: datetime) -> int | None:
    """Fold some entries of a group, the oldest first; how many went, None when none is due."""
    with transaction.atomic():
        rows = waiting().filter(group=group).order_by("pk").select_for_update(of=("self",))
        due = _due(rows[:AT_ONCE].values_list(*_FIELDS), before)
        if not due:
            return None
        folds = fold([*_earlier(group, due[0].pk), *due])
        gone = [pk for one in folds for pk in one.gone]
        _keep(folds)
        Notice.objects.filter(pk__in=gone).delete()
    return len(gone)


def _due(rows: QuerySet[Notice, tuple[object, ...]], before: datetime) -> list[Passed]:
    """Those that are old enough, up to the first that is not."""
    found: list[Passed] = []
    for values in rows:
        one = _passed(values)
        if one.at >= before:
            break
        found.append(one)
    return found


def _earlier(group: int, first: int) -> list[Passed]:
    """The last entries that were folded before, which these may go on from."""
    rows = Notice.objects.filter(
        group=group, pk__lt=first, kind=NoticeKind.MONITOR_PROGRESS, times__isnull=False
    )
    found = rows.filter(delivery=None).order_by("-pk").values_list(*_FIELDS)[:4]
    return [_passed(values) for values in reversed(found)]


def _passed(values: Sequence[object]) -> Passed:
    pk, text, at, times, since = values
    return Passed(pk, text, at, times or 1, since)  # type: ignore[arg-type]


def _keep(folds: Sequence[Fold]) -> None:
    """Mark all of them as looked at, with what each stands for."""
    alone = [one.kept.pk for one in folds if one.kept.times == 1]
    Notice.objects.filter(pk__in=alone, times=None).update(times=1)
    several = [one.kept for one in folds if one.gone]
    rows = [Notice(pk=one.pk, times=one.times, since=one.since) for one in several]
    Notice.objects.bulk_update(rows, ["times", "since"])
