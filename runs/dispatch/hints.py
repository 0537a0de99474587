"""How many issues could start, as start controls show it: read, never asked while rendering."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from runs.core.ports import Lab
from runs.dispatch import auto_dispatch
from runs.models import Project


def of(lab: Lab, projects: Iterable[Project]) -> Mapping[int, int]:
    """The counts that are known, by project. Each worker is looked for once (LAB-101 to LAB-105)."""
    alive: dict[str, bool | None] = {}
    found = {}
    for project in projects:
        count = auto_dispatch.hint_of(project)
        if count is None:
            continue
        if project.counted_by not in alive:
            alive[project.counted_by] = lab.is_process_alive(project.counted_by)
        if alive[project.counted_by]:
            found[project.pk] = count
    return found
