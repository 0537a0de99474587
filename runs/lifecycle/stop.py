"""The neutral Stop: ends a run now, keeps worktree and branch, counts as nothing."""

from __future__ import annotations

from runs.core.ports import Lab
from runs.core.states import Outcome
from runs.lifecycle import outcomes, reaper
from runs.manual import endings as manual_endings
from runs.models import Project, Run
from runs.validation import endings as validation_endings


def stop(lab: Lab, run: Run, by: str) -> bool:
    """End one run; False when it had ended already, and then nothing is touched.

    On the host that runs the session the session is ended before this returns; if that fails,
    or the session is elsewhere, the next tick there does it.
    """
    reason = f"stopped by {by}; worktree and branch kept"
    if not run.worktree:
        reason = f"stopped by {by}"
    if not outcomes.record(lab, run, Outcome.STOPPED, reason, by=by):
        run.refresh_from_db()
        return False
    if run.host == lab.host and run.did_start and not run.launcher:
        reaper.settle(lab, run)
    else:
        lab.bell.look(run.project.slug)
    return True


def stop_all(lab: Lab, project: Project, by: str) -> int:
    """Stop every run of one project, each by the same neutral Stop.

    Sessions that people drive are ended too, each as its own Stop does it, and agents that mend a
    failed validation, which then has failed.
    """
    runs = Run.objects.active().filter(project=project).select_related("project")
    stopped = sum(stop(lab, run, by) for run in runs)
    stopped += validation_endings.stop_fixers(lab, project, by)
    return stopped + manual_endings.stop_all(lab, project, by)
