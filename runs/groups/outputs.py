"""What a worker has to leave before its task counts (RUNE-87)."""

from __future__ import annotations

from pathlib import Path

from runs.core.ports import Lab
from runs.groups.signal_rules import Inscription, Output
from runs.models import TaskGroup, Worker


def lacking(lab: Lab, group: TaskGroup, worker: Worker) -> str:
    """What a worker's output lacks, in words; empty when none is asked or it is accepted.

    Raises SeamError when the file is there and could not be read: that is no answer.
    """
    if not worker.output_file:
        return ""
    if worker.run is None or not worker.run.worktree:
        return (
            f"{worker.name} has to leave {worker.output_file}, and no run is known whose worktree "
            "could hold it."
        )
    wanted = Inscription(
        workflow=group.preset,
        timestamp=group.made_at.isoformat(),
        output_dir=group.output_dir,
        workers=(Output(worker.name, worker.output_file),),
    )
    return lab.signals.lacking(Path(worker.run.worktree), wanted, worker.name)
