"""What came of task groups in some time: how they ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db.models import Count, Exists, OuterRef

from runs.groups.terms import MonitorState
from runs.models import Monitor

_WORDS: Mapping[str, str] = {
    MonitorState.COMPLETE: "complete",
    MonitorState.TIMED_OUT: "timed out",
    MonitorState.ERROR: "failed",
    MonitorState.STOPPED: "stopped",
}


def between(begin: datetime, until: datetime) -> Sequence[tuple[str, int]]:
    """How many ended in each way after `begin` and not after `until`. One query, by an index.

    A group that is watched again has not ended.
    """
    later = Monitor.objects.filter(group=OuterRef("group"), pk__gt=OuterRef("pk"))
    ended = Monitor.objects.filter(~Exists(later), ended_at__gt=begin, ended_at__lte=until)
    rows = ended.order_by().values_list("state").annotate(number=Count("pk"))
    by_state: Mapping[str, int] = dict(rows)
    return [(said, by_state[one]) for one, said in _WORDS.items() if one in by_state]
