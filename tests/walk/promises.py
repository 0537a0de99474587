"""What must hold after every step of a walk, and what must hold once everything is quiet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from django.db.models import Count, Q

from runs.core import naming
from runs.core.ports import Lab
from runs.core.states import Outcome
from runs.models import Notice, Project, Run, Settings
from tests.baddays import invariants


def always(lab: Lab) -> Iterator[str]:
    """Each promise that is broken at this very moment, in a sentence."""
    active = Run.objects.active().values_list("project__slug", "issue_key")
    for (project, key), number in Counter(active).items():
        if number > 1:
            yield f"issue {key} of {project} has {number} active runs"
    ends = Count("notice", filter=Q(notice__kind="run.ended"))
    runs = Run.objects.annotate(ends=ends).values_list("pk", "outcome", "state", "ends")
    for run, outcome, state, told in runs:
        if told != int(bool(outcome)):
            yield f"run {run} ({outcome or state}) was told to have ended {told} times"
    live = [
        name
        for name, seen in lab.sessions.look().items()
        if seen.alive and naming.parse_session(name)
    ]
    if len(live) > Settings.current().session_cap:
        yield f"{len(live)} sessions live, more than the cap allows: {sorted(live)}"
    yield from _streaks()


def _streaks() -> Iterator[str]:
    """The streak of a project is what its outcomes say since it was last cleared (C-52)."""
    says: Counter[int] = Counter()
    told = Notice.objects.filter(kind__in=("run.ended", "streak.reset")).order_by("pk")
    for project, kind, outcome, started in told.values_list(
        "project", "kind", "outcome", "run__started_at"
    ):
        if kind == "streak.reset" or outcome == Outcome.SUCCEEDED:
            says[project] = 0
        # A run that had begun, was held and could not be started again is a failed run.
        elif outcome in (Outcome.DIED, Outcome.TIMED_OUT) or (
            outcome == Outcome.FAILED and started
        ):
            says[project] += 1
    for project, slug, streak in Project.objects.values_list("pk", "slug", "streak"):
        if streak != says[project]:
            yield f"the streak of {slug} is {streak}, its outcomes say {says[project]}"


def at_rest(lab: Lab) -> Iterator[str]:
    """Each promise that is broken although nothing has happened for a while."""
    yield from always(lab)
    yield from invariants.broken(lab)
