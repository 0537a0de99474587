"""Looks at a run's pull request where it is, and at what was checked there: when a person asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runs.core.ports import Lab
from runs.issues import remote
from runs.models import Run
from runs.pulls import rules
from trackers.account import awaited
from trackers.base import Ability, Check, NotFound, Pull, TrackerError


@dataclass(frozen=True, slots=True)
class Looked:
    """A pull request as it is now. `checks` is None where they could not be read; `trouble` says why."""

    pull: Pull
    checks: Sequence[Check] | None
    trouble: str = ""


def look(lab: Lab, run: Run) -> Looked:
    """Ask for the pull request of a run and the checks of its head. Raises TrackerError.

    A few conditional questions, and none by itself: a forge answers for free what has not changed.
    """
    if run.pull_number is None:
        raise NotFound("This run has no pull request.")
    project = run.project
    tracker = remote.able(lab, project, Ability.PULLS)
    with awaited():
        pull = tracker.pull(project.tracker_root, run.pull_number)
        if run.pull_state != pull.state:
            Run.objects.filter(pk=run.pk).update(pull_state=pull.state)
        if Ability.CHECKS not in tracker.abilities:
            return Looked(pull, None, "This tracker has no checks.")
        try:
            found = tracker.checks(project.tracker_root, pull.head_commit)
        except TrackerError as error:
            return Looked(pull, None, str(error))
    return Looked(pull, rules.in_order(found))
