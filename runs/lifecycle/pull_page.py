"""The page of a run's pull request on a forge, and its refresh."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import Http404

from runs.core.ports import Lab
from runs.models import Run
from runs.pulls import checks as pull_checks
from runs.pulls import rules as pull_rules
from trackers.base import CheckState, PullState, TrackerError

MOST = 100
TONES = {CheckState.PASSED: "good", CheckState.FAILED: "bad", CheckState.RUNNING: "info"}
OF_PULL = {PullState.MERGED: "good", PullState.OPEN: "info", PullState.CLOSED: ""}


def is_open(context: Mapping[str, Any]) -> bool:
    """Whether the pull request of a page is open still, as its tracker says now."""
    pull = context.get("pull")
    return pull is not None and pull.state is PullState.OPEN


def of(lab: Lab, run_id: int) -> Mapping[str, Any]:
    """Everything on it; what the forge did not tell is said in words. Raises Http404."""
    run = Run.objects.select_related("project").filter(pk=run_id).exclude(pull_number=None).first()
    if run is None:
        raise Http404
    found = {"run": run, "project": run.project, "asked_at": lab.now()}
    try:
        looked = pull_checks.look(lab, run)
    except TrackerError as error:
        again = pull_rules.again_seconds(None, None)
        return {**found, "error": str(error), "again": again}
    checks = looked.checks or ()
    worst = pull_rules.worst(checks)
    return {
        **found,
        "again": pull_rules.again_seconds(looked.pull.state, looked.checks),
        "pull": looked.pull,
        "pull_tone": OF_PULL[looked.pull.state],
        "trouble": looked.trouble,
        "rows": [(one, TONES[one.state]) for one in checks[:MOST]],
        "left_out": max(0, len(checks) - MOST),
        "words": pull_rules.in_words(checks),
        "tone": TONES[worst] if worst else "",
    }
