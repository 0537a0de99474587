"""Requests, claims and holds jobs. Whoever holds one writes only while it is still theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Self

from django.db import IntegrityError, transaction
from django.db.models import Exists, F, QuerySet

from runs.core import database
from runs.core.database import NO_DATABASE
from runs.core.ports import Lab
from runs.core.states import JobKind
from runs.jobs import rules
from runs.jobs.rules import Limits
from runs.models import Job
from runs.remote.ports import Queue

BEAT_EVERY = timedelta(seconds=15)
# Claims that threads of this process work on, by state folder, job and fencing token.
_HELD_HERE: set[tuple[str, int, int]] = set()


class LostError(Exception):
    """The job is not ours to go on with: it is over or was taken over, or this process ends."""


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A kind of job: how its worker is asked, how patient it is, what the log says of an outage."""

    kind: JobKind
    enqueue: Callable[[Queue, int], None]
    waits: str = "the database does not answer, and what a job found waits for it"
    limits: Limits = field(default_factory=Limits)


def request(
    lab: Lab,
    spec: JobSpec,
    subject: int,
    *,
    host: str,
    project: int | None = None,
    deadline: timedelta | None = None,
) -> Job:
    """Store a job in the caller's transaction, and enqueue it on commit; return the one that is there.

    Requested again while it is unfinished, it is the same and is not enqueued again.
    """
    unfinished = Job.objects.unfinished().of(spec.kind, subject)
    if (found := unfinished.first()) is not None:
        return found
    now = lab.now()
    try:
        with transaction.atomic():
            job = Job.objects.create(
                kind=spec.kind,
                subject=subject,
                project_id=project,
                host=host,
                deadline=None if deadline is None else now + deadline,
                requested_at=now,
            )
    except IntegrityError:  # somebody else was first
        return unfinished.get()
    enqueue_on_commit(lab, spec, job)
    return job


def enqueue_on_commit(lab: Lab, spec: JobSpec, job: Job) -> None:
    """Ask the worker of a job's host for it; one that does not hear is asked again by `recover_jobs`."""
    queue = lab.queue.on(job.host)
    transaction.on_commit(lambda: spec.enqueue(queue, job.subject), robust=True)


def claim(lab: Lab, kind: JobKind, subject: int) -> Job | None:
    """Take a job that is due on this host and that nobody works on; None when there is none.

    Compare-and-set: of several that claim it at the same moment one gets it.
    """
    with transaction.atomic():
        rows = Job.objects.claimable(lab.host, lab.now()).of(kind, subject)
        if not rows.update(owner=lab.process, beat_at=lab.now(), token=F("token") + 1):
            return None
        return Job.objects.unfinished().of(kind, subject).get()


def finish(lab: Lab, kind: JobKind, subject: int) -> bool:
    """Finish the job of a row that is over, whoever has it; True when this call did."""
    rows = Job.objects.unfinished().of(kind, subject)
    return bool(rows.update(finished_at=lab.now(), owner="", beat_at=None))


def is_held_here(lab: Lab, job: Job) -> bool:
    """Return whether a thread of this process works on a job."""
    return (str(lab.paths.state), job.pk, job.token) in _HELD_HERE


class HeldJob:
    """A claimed job, and its subject as a query: `rows` while it may be written, `wanted` while its
    work is to go on, which is the same where nothing else is said.

    Entered while it is worked on, so that this process knows which jobs its threads have.
    """

    def __init__(
        self,
        lab: Lab,
        spec: JobSpec,
        job: Job,
        rows: QuerySet[Any],
        is_stopping: Callable[[], bool],
    ) -> None:
        self.job = job
        self.rows = self.wanted = rows
        self._lab = lab
        self._spec = spec
        self._is_stopping = is_stopping
        self._next_beat = lab.now() + BEAT_EVERY
        self._key = (str(lab.paths.state), job.pk, job.token)

    def __enter__(self) -> Self:
        _HELD_HERE.add(self._key)
        return self

    def __exit__(self, *_: object) -> None:
        _HELD_HERE.discard(self._key)

    def is_held(self) -> bool:
        """Return whether to go on; asked every second or so. Now and then it is the heartbeat.

        A database that does not answer has taken nothing away.
        """
        now = self._lab.now()
        if self._is_stopping() or (self.job.deadline is not None and now >= self.job.deadline):
            return False
        try:
            if now < self._next_beat:
                return bool(self._mine().filter(Exists(self.wanted)).exists())
            self._next_beat = now + BEAT_EVERY
            return bool(self._mine().filter(Exists(self.wanted)).update(beat_at=now))
        except NO_DATABASE:
            database.renew_connection()
            return True

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Open a transaction in which the job is surely ours until it commits. Raises LostError.

        The update locks the job's row, so nobody can take the job over before what follows is stored.
        """
        with transaction.atomic():
            if not self._mine().update(beat_at=self._lab.now()):
                raise LostError
            yield

    def store(self, **columns: Any) -> None:
        """Write columns of the subject. Raises LostError."""
        with self.guard():
            if not self.rows.update(**columns):
                raise LostError

    def persist(self, act: Callable[[], object]) -> None:
        """Do what writes, again while the database does not answer: what was found is not lost by that.

        Raises what the act raises; the database's error after minutes, or once this process ends.
        """
        about = {self.job.kind: self.job.subject}
        database.patiently(self._lab, act, self._is_stopping, self._spec.waits, **about)

    def put_off(self, wait: timedelta | None = None) -> timedelta:
        """Count a trouble and wait before the next try, longer each time; return how long.

        It is still held, and is released with the rest of the work. Raises LostError.
        """
        troubles = self.job.troubles + 1
        if wait is None:
            wait = rules.wait_after(troubles, self._spec.limits)
        self._update(troubles=troubles, not_before=self._lab.now() + wait)
        return wait

    def wait_until(self, at: datetime) -> None:
        """Wait with the next try, which is no trouble. Raises LostError."""
        self._update(not_before=at)

    def note_progress(self) -> None:
        """Count troubles anew from here. Raises LostError."""
        if self.job.troubles:
            self._update(troubles=0)

    def release(self) -> None:
        """Let go of the job, so that it can be claimed again; nothing when it is not ours."""
        self._mine().update(owner="", beat_at=None)

    def finish(self) -> None:
        """Finish the job. Raises LostError."""
        if not self._mine().update(finished_at=self._lab.now(), owner="", beat_at=None):
            raise LostError

    def _update(self, **columns: Any) -> None:
        if not self._mine().filter(Exists(self.rows)).update(**columns):
            raise LostError
        for name, value in columns.items():
            setattr(self.job, name, value)

    def _mine(self) -> QuerySet[Job]:
        rows = Job.objects.unfinished().filter(pk=self.job.pk, token=self.job.token)
        return rows.filter(owner=self._lab.process)
