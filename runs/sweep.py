"""Sweeps: start-up reconciliation, and every ten minutes what was merged meanwhile.

The tick only asks for the runtime sweep; it is an ordinary task, since it waits for the network.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import timedelta

from django.db.models import CharField, Q
from django.db.models.functions import Cast

from runs.core.ports import Lab, SeamError, Sighting
from runs.core.states import ProjectState
from runs.core.tick_context import TickContext
from runs.forges import mirror
from runs.groups import signal_folders
from runs.guard import acts as guard
from runs.kept import counts, disk, merged, restore, retention
from runs.models import Due, Host, Project
from runs.projects import cloning, origin, packing
from runs.pulls import merging
from runs.setup import file_acts

logger = logging.getLogger(__name__)

RECONCILE, SWEEP = "reconcile", "sweep"
EMPTY_EVERY = timedelta(hours=1)
AT_ONCE = timedelta(seconds=30)


def forget_reconciled(lab: Lab) -> None:
    """Have the next tick reconcile first: the product starts anew."""
    Due.objects.filter(host__name=lab.host, activity=RECONCILE).delete()


def reconcile(tick: TickContext, sightings: Mapping[str, Sighting]) -> None:
    """Before anything is scheduled: orphaned worktrees get the guarded rule, merged branches go.

    Local git only. One project's trouble is told and keeps none of the others waiting. Raises
    lease.Lost.
    """
    lab, errors = tick.lab, tick.errors
    for project in Project.objects.usable().order_by("pk"):
        tick.keep_lease()
        if not _is_here(lab, project) or _is_foreign(lab, project):
            continue
        try:
            merged.reconcile(lab, project, sightings, tick.keep_lease)
        except SeamError as error:
            errors.append(f"parked work of {project.name} was not reconciled: {error}")
    try:
        signal_folders.sweep_gone(lab)
    except SeamError as error:
        errors.append(f"signal files of deleted projects were not removed: {error}")
    disk.clear_temporary(lab)
    host = Host.objects.get(name=lab.host)
    Due.objects.update_or_create(host=host, activity=RECONCILE, defaults={"next_at": lab.now()})


def ask(lab: Lab) -> int:
    """Ask for the sweep of every project that may need one; how many.

    A project without parked work only hears of its default branch and its disk use, once an hour;
    one whose origin could not be read is asked for again each time.
    """
    long_ago = lab.now() - EMPTY_EVERY
    begun = merging.interrupted(lab.now()).values(as_text=Cast("root", CharField()))
    wanted = Q(parked=None) | Q(parked__gt=0) | Q(swept_at=None) | Q(swept_at__lt=long_ago)
    wanted |= Q(tracker="builtin", tracker_root__in=begun) | ~Q(origin_warning="")
    found = Project.objects.usable().filter(wanted).only("pk", "slug", "home")
    here = [project.pk for project in found if _is_here(lab, project)]
    for pk in here:
        lab.queue.sweep(pk)
    return len(here)


def _is_here(lab: Lab, project: Project) -> bool:
    """Whether this host may have work of it: not one that never cloned what another host has."""
    return project.home in ("", lab.host) or project.repo(lab.paths).is_dir()


def _is_foreign(lab: Lab, project: Project) -> bool:
    """Whether what lies here under its name was another project's, and is put aside, or has to be."""
    try:
        cloning.put_foreign_aside(lab, project)
    except SeamError as error:
        what = {"project": project.slug, "error": str(error)}
        logger.warning("it could not be told whose a clone is", extra=what)
        return True
    return not _is_here(lab, project)


def carry_out(lab: Lab, project_id: int) -> None:
    """Sweep one project. Safe to repeat; whatever fails is left for the next sweep."""
    now = lab.now()
    project = Project.objects.filter(pk=project_id, state=ProjectState.READY).first()
    if project is None or not _is_here(lab, project) or _is_foreign(lab, project):
        return
    if project.home in ("", lab.host):  # each further host sweeps what it has itself
        free = Q(swept_at=None) | Q(swept_at__lt=now - AT_ONCE) | Q(swept_at__gt=now)
        if not Project.objects.filter(free, pk=project_id, state=ProjectState.READY).update(
            swept_at=now
        ):
            return
        project.swept_at = now
    steps: tuple[Callable[[Lab, Project], object], ...] = (
        guard.check_shared,  # first, since git may not work there
        merging.recover,
        origin.freshen,
        merging.notice_merged,
        merged.collect,
        restore.adopt,
        restore.let_go,
        retention.prune,
        counts.take,
        file_acts.forget_retired,
        disk.measure,
        signal_folders.sweep,
        mirror.catch_up,
        packing.pack,  # last, as it may take minutes
    )
    for step in steps:
        try:
            step(lab, project)
        except SeamError as error:
            if isinstance(error, origin.Away) and not error.is_new:
                continue  # the project says so all the while
            what = {"project": project.slug, "step": step.__name__, "error": str(error)}
            logger.warning("a step of the sweep failed", extra=what)
