"""Finds runs again that have a session but no row, such as one that a person started by hand."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping

from django.db import IntegrityError, transaction

from runs.core import naming
from runs.core.effects import RunStart
from runs.core.ports import Lab, SeamError, Sighting
from runs.core.states import NoticeKind, RunState
from runs.lifecycle.recovery import adoptable, maybe_adoptable
from runs.models import Project, Run
from runs.timeline import announce
from trackers.base import Ability, TrackerError

MARK_CHARACTERS = 64


def adopt(
    lab: Lab, sightings: Mapping[str, Sighting], known: Iterable[Run], project: str = ""
) -> list[Run]:
    """Make a run for each live run session that has none.

    `known` are all active and unsettled runs of the host, read before the sessions were looked
    at: a run that ended in between is known, so its session is not taken for a new one. With
    `project` (its session name part) only that project's sessions are adopted.

    An issue that has an active run already is left alone, and so is every session
    whose name is not that of a run.
    """
    held = {run.session for run in known}
    parts = maybe_adoptable(sightings, held, project)
    if not parts:
        return []
    projects = {p.slug: p for p in Project.objects.usable().filter(slug__in=parts)}
    names = adoptable(sightings, held, {slug: p.keys for slug, p in projects.items()})
    adopted = [
        _adopt_one(lab, projects[parsed.project], sightings[name], parsed)
        for name, parsed in names.items()
    ]
    return [run for run in adopted if run is not None]


def _adopt_one(lab: Lab, project: Project, seen: Sighting, name: naming.RunName) -> Run | None:
    """The session keeps its mark, so that Stop ends it also when its row was lost with a database."""
    now, session = lab.now(), seen.name
    branch = _claim_of(lab, project, name.key)
    try:
        with transaction.atomic():
            run = Run.objects.create(
                project=project,
                host=lab.host,
                issue_key=name.key,
                issue_title=_title(lab, project, name.key),
                kind=name.kind,
                is_adopted=True,
                state=RunState.WORKING,
                session=session,
                slot=name.slot,
                mark=_free_mark(seen),
                branch=branch,
                requested_at=now,
                started_at=now,
            )
            announce.tell(
                lab,
                NoticeKind.RUN_ADOPTED,
                f"session {session} was found running and is watched from now on",
                run=run,
            )
            for effect in lab.effects.run_started:
                effect(lab, RunStart(run.pk, project.pk, run.issue_key))
    except IntegrityError:
        return None
    return run


def _claim_of(lab: Lab, project: Project, key: str) -> str:
    """The branch of the issue that is there, else what a new run would have."""
    names = project.branches_for(key)
    if len(names) > 1:
        for name in names:
            with contextlib.suppress(SeamError):
                if lab.repos.tip(project.repo(lab.paths), f"refs/heads/{name}"):
                    return name
    return names[0]


def _free_mark(seen: Sighting) -> str:
    """The session's mark, unless another run has it: whoever set it there must not end that one."""
    is_taken = Run.objects.filter(mark=seen.marker, outcome="").exists()
    return "" if is_taken or len(seen.marker) > MARK_CHARACTERS else seen.marker


def _title(lab: Lab, project: Project, key: str) -> str:
    """The issue's title if it costs no waiting; a look must never wait for a forge."""
    tracker = lab.tracker_for(project.tracker) if project.tracker else None
    if tracker is None or Ability.LOCAL not in tracker.abilities:
        return ""
    try:
        return tracker.issue(project.tracker_root, key).title
    except TrackerError:
        return ""
