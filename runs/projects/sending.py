"""One sender at a time: while something is written on a tracker a row says so."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.db import IntegrityError, transaction

from runs.core.ports import Lab
from runs.models import Project, Sent
from trackers.base import Unreachable

GIVEN_UP = timedelta(minutes=1)
STEP_SECONDS, STEPS = 0.2, 100


@contextmanager
def alone(lab: Lab, project: Project, *words: str) -> Iterator[None]:
    """While nobody else sends the same; who died in the middle counts for a minute.

    Raises Unreachable when somebody takes too long.
    """
    digest = hashlib.sha256("\n".join(words).encode()).hexdigest()
    row = _begin(lab, project, digest)
    try:
        yield
    finally:
        Sent.objects.filter(pk=row.pk).delete()


def _begin(lab: Lab, project: Project, digest: str) -> Sent:
    for _ in range(STEPS):
        Sent.objects.filter(begun_at__lt=lab.now() - GIVEN_UP).delete()
        try:
            with transaction.atomic():
                return Sent.objects.create(project=project, digest=digest, begun_at=lab.now())
        except IntegrityError:
            lab.pause(STEP_SECONDS)
    raise Unreachable("The same words are being sent just now. Ask again in a moment.")
