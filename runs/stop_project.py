"""Stop for a whole project: its runs, what mends its validations, and what people drive there."""

from __future__ import annotations

from runs.core.ports import Lab
from runs.lifecycle.stop import stop
from runs.manual import endings as manual_endings
from runs.models import Project, Run
from runs.validation import endings as validation_endings


def stop_project(lab: Lab, project: Project, by: str) -> int:
    """Stop every run of one project, each by the same neutral Stop.

    Sessions that people drive are ended too, each as its own Stop does it, and agents that mend a
    failed validation, which then has failed.
    """
    runs = Run.objects.active().filter(project=project).select_related("project")
    stopped = sum(stop(lab, run, by) for run in runs)
    stopped += validation_endings.stop_fixers(lab, project, by)
    return stopped + manual_endings.stop_all(lab, project, by)
