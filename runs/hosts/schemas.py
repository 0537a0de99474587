"""The shapes of hosts in the API."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field

from runs.api.asked import NO_NUL, WHOLE, Given, Labels
from runs.hosts.acts import MOST_CAP
from runs.hosts.rules import HostState


class Host(BaseModel):
    """A machine that runs sessions.

    `runs` are those it has, `cap` how many sessions it may have, `session_cap` its own limit; null:
    the general one. `closed` says why it takes nothing new although it works. `seen_at` is its last
    sign of life by the clock of the database, and null before the first.
    """

    id: int
    name: str
    state: HostState
    closed: str
    runs: int
    cap: int
    session_cap: int | None
    labels: list[str]
    ssh_address: str
    load: float | None
    cores: int | None
    disk_free_mb: int | None
    version: str
    is_behind: bool
    seen_at: datetime | None
    last_error: str


class Hosts(BaseModel):
    items: list[Host]


class HostTerms(Given):
    """What a host is to be; what is not named stays."""

    labels: Labels | None = None
    session_cap: Annotated[int, WHOLE, Field(ge=0, le=MOST_CAP)] | None = None
    ssh_address: Annotated[str, Field(max_length=200, pattern=NO_NUL)] | None = None


class Removal(BaseModel):
    """`and_runs`: end what runs there first, as by Stop."""

    and_runs: bool = False


class HostRuns(BaseModel):
    """How many runs ended by it."""

    ended: int
