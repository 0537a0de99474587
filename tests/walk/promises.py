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
    for run in Run.objects.annotate(ends=ends):
        if run.ends != int(bool(run.outcome)):
            yield f"run {run.pk} ({run.outcome or run.state}) was told to have ended {run.ends} times"
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
    for project in Project.objects.all():
        says = 0
        told = Notice.objects.filter(project=project, kind__in=("run.ended", "streak.reset"))
        for entry in told.select_related("run").order_by("pk"):
            if entry.kind == "streak.reset" or entry.outcome == Outcome.SUCCEEDED:
                says = 0
            elif entry.outcome in (Outcome.DIED, Outcome.TIMED_OUT) or _ended_after_a_hold(entry):
                says += 1
        if project.streak != says:
            yield f"the streak of {project.slug} is {project.streak}, its outcomes say {says}"


def _ended_after_a_hold(entry: Notice) -> bool:
    """A run that had begun, was held and could not be started again is a failed run, no failed start."""
    return entry.outcome == Outcome.FAILED and entry.run is not None and entry.run.did_start


def at_rest(lab: Lab) -> Iterator[str]:
    """Each promise that is broken although nothing has happened for a while."""
    yield from always(lab)
    yield from invariants.broken(lab)
