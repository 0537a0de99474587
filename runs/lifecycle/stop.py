"""The neutral ends: a person ends a run now, worktree and branch are kept, it counts as nothing."""

from __future__ import annotations

from runs.core import lease
from runs.core.ports import Lab
from runs.core.states import Outcome
from runs.lifecycle import outcomes, reaper
from runs.models import Run


def stop(lab: Lab, run: Run, by: str) -> bool:
    """End one run; False when it had ended already, and then nothing is touched.

    On the host that runs the session the session is ended before this returns; if that fails,
    or the session is elsewhere, the next tick there does it.
    """
    return _end(lab, run, Outcome.STOPPED, f"stopped by {by}", by)


def interrupt(lab: Lab, run: Run, by: str) -> bool:
    """The same for whoever pressed Ctrl-C: it counts as interrupted."""
    return _end(lab, run, Outcome.INTERRUPTED, f"interrupted by {by}", by)


def _end(lab: Lab, run: Run, outcome: Outcome, reason: str, by: str) -> bool:
    if run.worktree:
        reason = f"{reason}; worktree and branch kept"
    if not outcomes.record(lab, run, outcome, reason, by=by):
        run.refresh_from_db()
        return False
    if run.did_start and not run.launcher and lease.is_here(lab, run.host):
        reaper.settle(lab, run)
    else:
        lab.bell.look(run.project.slug)
    return True
