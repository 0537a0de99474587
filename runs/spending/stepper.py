"""What a tick does about limits: tells an agent that one is near, and people that one is reached.

Runs that reached one are ended by the judge, and starts are held by the launch pass.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction

from runs.core.ports import Lab, MaybeGiven, SeamError
from runs.core.states import NoticeKind, RunState
from runs.core.tick_context import TickContext
from runs.models import Project, ReachedLimit, Run
from runs.spending import gathering, limit_rules
from runs.spending.gathering import Spending
from runs.spending.limit_rules import Meter
from runs.telemetry import log_context
from runs.timeline import announce
from runs.transcript import screens
from runs.waits import rules as wait_rules

logger = logging.getLogger(__name__)

KEPT = timedelta(days=60)


def look(tick: TickContext, runs: Sequence[Run]) -> None:
    """Nothing, and no query, while no limit is set for these runs."""
    projects = list({run.project_id: run.project for run in runs}.values())
    if not gathering.is_limited(tick.settings, projects):
        return
    found = gathering.spending(tick.settings, projects, tick.lab.now())
    for project in projects:
        _tell_people(tick, project, found)
    for run in [run for run in runs if run.is_active]:
        meter = limit_rules.to_tell(found.of_run(run), run.limits_told)
        if meter is not None and _can_be_told(tick, run):
            with tick.going_on(
                f"run {run.pk}: its agent was not told of a limit", **log_context.of(run)
            ):
                _tell_agent(tick.lab, run, meter)


def _can_be_told(tick: TickContext, run: Run) -> bool:
    """Whether its program stays open, has begun, and takes words now."""
    seen = (tick.sightings or {}).get(run.session)
    is_there = run.state == RunState.WORKING and seen is not None and seen.alive
    is_fit = not (run.is_one_shot or run.is_adopted) and run.interrupted_at is None
    return is_there and is_fit and not run.asks and run.waits not in wait_rules.WITH_CHOICES


def _tell_agent(lab: Lab, run: Run, meter: Meter) -> None:
    """Once for each limit: it is noted before it is said, and taken back when it surely was not."""
    mark = run.marker(lab.paths)
    screen = lab.sessions.screens([run.session]).get(run.session, "")
    if wait_rules.dialog(screens.plain(screens.tidy(screen))).is_open:
        return  # letters and Enter would press one of its choices
    before, told = run.limits_told, f"{run.limits_told} {meter.limit}".strip()
    rows = Run.objects.working().filter(pk=run.pk, session=run.session)
    with transaction.atomic():
        if not rows.filter(limits_told=before).update(limits_told=told):
            return
        text = f"{meter.percent} % of the limit of {meter.limit.words} is used: {meter.numbers}"
        announce.tell(lab, NoticeKind.RUN_NEARS_LIMIT, f"{text}; its agent is told", run=run)
    run.limits_told = told
    try:
        lab.sessions.say(run.session, mark, limit_rules.message(meter))
    except MaybeGiven as error:
        logger.warning(
            "a limit was perhaps not told", extra={"run_id": run.pk, "error": str(error)}
        )
    except SeamError as error:
        logger.warning("a limit was not told", extra={"run_id": run.pk, "error": str(error)})
        rows.filter(limits_told=told).update(limits_told=before)
        run.limits_told = before


def _tell_people(tick: TickContext, project: Project, found: Spending) -> None:
    """Once for each day, scope and limit."""
    for meter in found.of_project(project):
        if not meter.is_reached:
            continue
        scope = 0 if meter.limit.is_of_all else project.pk
        key = {"day": found.day, "scope": scope, "limit": meter.limit}
        if ReachedLimit.objects.filter(**key).exists():
            continue
        with transaction.atomic():
            now = tick.lab.now()
            _, is_new = ReachedLimit.objects.get_or_create(**key, defaults={"at": now})
            if is_new:
                ReachedLimit.objects.filter(day__lt=found.day - KEPT).delete()
                where = None if meter.limit.is_of_all else project
                text = limit_rules.holds(meter)
                announce.tell(tick.lab, NoticeKind.LIMIT_REACHED, text, project=where)
