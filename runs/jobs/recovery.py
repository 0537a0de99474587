"""Finds unfinished jobs again: asks for those that wait, takes back those whose owner is gone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import F

from runs.core import budgets
from runs.core.ports import Lab
from runs.jobs import rules, runner
from runs.jobs.rules import JobFacts, Next
from runs.jobs.runner import JobSpec
from runs.models import Job

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Handler:
    """What the product does with jobs of one kind that are found again.

    `read` gives the subjects of many jobs at once, by number. `close` is asked first: True when a
    subject is over, and what it left is dealt with as far as possible (with `is_worked_on` somebody is
    still at it). `tell_loss` and `give_up` are called in the transaction that releases the job;
    `give_up` ends the subject. Once nothing is left, `close` or `give_up` finishes the job.
    """

    spec: JobSpec
    read: Callable[[Sequence[int]], Mapping[int, Any]]
    close: Callable[[Lab, Any, bool], bool]
    tell_loss: Callable[[Lab, Any], None]
    give_up: Callable[[Lab, Any, Job], None]


def recover_jobs(lab: Lab, handlers: Sequence[Handler]) -> None:
    """Take the next step with each unfinished job of this host. Safe to call twice and by several."""
    by_kind = {one.spec.kind: one for one in handlers}
    rows = Job.objects.unfinished().filter(host=lab.host, kind__in=list(by_kind))
    found = list(rows)
    for kind, handler in by_kind.items():
        jobs = [job for job in found if job.kind == kind]
        subjects = handler.read([job.subject for job in jobs]) if jobs else {}
        for job in jobs:
            try:
                _recover(lab, handler, job, subjects.get(job.subject))
            except Exception:
                about = {"job": job.pk, kind.value: job.subject}
                logger.exception("a job was left for the next look", extra=about)


def _recover(lab: Lab, handler: Handler, job: Job, subject: Any | None) -> None:
    if subject is None:  # its row is gone, and all that the job was about
        runner.finish(lab, handler.spec.kind, job.subject)
        return
    limits = handler.spec.limits
    facts = _facts(lab, handler.spec, job)
    if handler.close(lab, subject, rules.is_worked_on(facts, limits)):
        return
    step = rules.next_step(facts, limits)
    if step is Next.ENQUEUE:
        handler.spec.enqueue(lab.queue.on(job.host), job.subject)
    elif step is not Next.LEAVE:
        _take_back(lab, handler, job, subject, step)


def _facts(lab: Lab, spec: JobSpec, job: Job) -> JobFacts:
    now = lab.now()
    here = None
    if spec.limits.forgives_living and job.owner == lab.process:
        here = runner.is_held_here(lab, job)
    return JobFacts(
        is_owned=bool(job.owner),
        owner_alive=lab.is_process_alive(job.owner) if job.owner else None,
        is_worked_on_here=here,
        silence=None if job.beat_at is None else budgets.age(now, job.beat_at),
        is_due=job.not_before is None or job.not_before <= now,
        time_left=None if job.deadline is None else job.deadline - now,
        losses=job.losses,
        troubles=job.troubles,
    )


def _take_back(lab: Lab, handler: Handler, job: Job, subject: Any, step: Next) -> None:
    """Release a job as it was read; nothing when somebody was first."""
    columns: dict[str, Any] = {"owner": "", "beat_at": None}
    is_overdue = job.deadline is not None and job.deadline <= lab.now()
    if job.owner and not is_overdue:
        columns["losses"] = job.losses + 1
    if step is Next.RETRY_LATER:
        columns["not_before"] = lab.now() + handler.spec.limits.time_to_leave
    # An owner that was only silent must not write any more, so its token is used up.
    with transaction.atomic():
        mine = Job.objects.unfinished().filter(pk=job.pk, owner=job.owner, token=job.token)
        if not mine.update(**columns, token=F("token") + 1):
            return
        job.losses = columns.get("losses", job.losses)
        if step is Next.GIVE_UP:
            handler.give_up(lab, subject, job)
            return
        handler.tell_loss(lab, subject)
        if step is Next.RETRY_NOW:
            runner.enqueue_on_commit(lab, handler.spec, job)
