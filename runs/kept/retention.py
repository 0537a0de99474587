"""How long is kept what cannot be brought back: days that labsite lived through, not the clock's.

A clock may be a month ahead at boot, and a backup may be restored after a year. A term counts from
when it is first asked for, in seconds that this host's ticks have counted (`clock.lived`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta

from runs.core import clock
from runs.core.ports import Lab
from runs.models import Term

DAY = 86_400.0


def over(lab: Lab, names: Collection[str], days: int) -> frozenset[str]:
    """Those whose term has passed; whatever has none yet gets one of so many days."""
    now = clock.lived(lab)
    due = dict(Term.objects.filter(name__in=names).values_list("name", "due"))
    fresh = [Term(name=name, due=now + days * DAY) for name in names if name not in due]
    Term.objects.bulk_create(fresh, ignore_conflicts=True, batch_size=200)
    return frozenset(name for name, at in due.items() if at <= now)


def left(lab: Lab, names: Collection[str]) -> Mapping[str, timedelta]:
    """How much of each term is left; without those that have not begun."""
    now = clock.lived(lab)
    rows = Term.objects.filter(name__in=names).values_list("name", "due")
    return {name: timedelta(seconds=max(0.0, due - now)) for name, due in rows}


def forget(names: Collection[str]) -> None:
    """What is gone needs no term; what is kept anew begins a new one."""
    Term.objects.filter(name__in=names).delete()


def of_rescue(ref: str, project_id: int) -> str:
    """The name of a rescue's term."""
    return f"rescue {project_id} {ref}"
