"""What all steps of one tick share: whose lease it works under, what it saw, what went wrong."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from runs.core import lease
from runs.core.ports import Lab, Sighting
from runs.models import Settings
from runs.telemetry import log_context

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class TickContext:
    """One tick of one host.

    `number` is the fencing token of its lease, `now` the time at which the clock was known to be
    right. `project` is the slug of the only project to look at, empty for all. `sightings` are the
    sessions by name, None when tmux did not answer; `being_made` are the sessions of runs that were
    starting when it was asked. `errors` are sentences for the tick's row.
    """

    lab: Lab
    number: int
    settings: Settings
    now: datetime
    project: str = ""
    is_forced: bool = False
    sightings: Mapping[str, Sighting] | None = None
    being_made: set[str] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)

    def keep_lease(self) -> None:
        """Extend the lease between two steps. Raises lease.Lost."""
        lease.keep(self.lab, self.number)

    @contextmanager
    def going_on(self, failure: str, *fatal: type[Exception], **about: object) -> Iterator[None]:
        """Note what is raised inside as `failure` and go on, so that one row keeps no other waiting.

        `about` are further keys of what is logged inside. Raises lease.Lost and what is `fatal` for the
        whole tick.
        """
        with log_context.about(**about):
            try:
                yield
            except Exception as error:
                if isinstance(error, (lease.Lost, *fatal)):
                    raise
                logger.exception(failure, extra=about)
                self.errors.append(f"{failure}: {error!r}")
