"""What pages, API and commands show of hosts, in a fixed number of queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count

from runs.core.ports import Lab
from runs.hosts import facts, rules
from runs.hosts.rules import HostState
from runs.models import Host, Run, Settings


@dataclass(frozen=True, slots=True)
class HostRow:
    """One host as people see it. `runs` are those that it has now."""

    id: int
    name: str
    state: HostState
    runs: int
    cap: int
    own_cap: int | None
    labels: tuple[str, ...]
    ssh_address: str
    load: float | None
    cores: int | None
    disk_free_mb: int | None
    version: str
    is_behind: bool
    seen_at: datetime | None
    silent_for: timedelta | None
    last_error: str
    is_here: bool
    is_alone: bool = False

    @property
    def closed(self) -> str:
        """Why it takes nothing new although it works, as a sentence; empty when it does."""
        if self.state is not HostState.WORKING:
            return ""
        if self.is_behind:
            return "takes nothing new: it runs an older version"
        if self.has_little_disk and not self.is_alone:
            room = f"less than {rules.LEAST_DISK_MB // 1024} GB"
            return f"takes nothing new: {room} of disk is free; what runs there goes on"
        return ""

    @property
    def tone(self) -> str:
        """The colour of its mark."""
        return {HostState.WORKING: "live", HostState.UNKNOWN: "bad"}.get(self.state, "warn")

    @property
    def disk_free_gb(self) -> float | None:
        return None if self.disk_free_mb is None else round(self.disk_free_mb / 1024, 1)

    @property
    def has_little_disk(self) -> bool:
        return self.disk_free_mb is not None and self.disk_free_mb < rules.LEAST_DISK_MB


@dataclass(frozen=True, slots=True)
class SilentHost:
    """A host that nobody has heard of for too long, and how many runs it has."""

    id: int
    name: str
    seen_at: datetime
    runs: int


def silent(settings: Settings, runs: Iterable[Run]) -> Sequence[SilentHost]:
    """The silent hosts that have some of these runs at work, by name. One query."""
    counted = Counter(run.host for run in runs if run.is_active)
    rows = Host.objects.with_silence().filter(name__in=counted, removed_at=None)
    return [
        SilentHost(row.pk, row.name, row.seen_at, counted[row.name])
        for row in rows
        if row.seen_at and facts.state_of(row, settings) is HostState.UNKNOWN
    ]


def all_of(lab: Lab) -> Sequence[HostRow]:
    """Every host that was not removed, by name. Three queries."""
    settings = Settings.current()
    rows = list(Host.objects.with_silence().filter(removed_at=None))
    counted = Run.objects.active().order_by().values_list("host").annotate(Count("pk"))
    runs = dict(counted)
    states = {row.name: facts.state_of(row, settings) for row in rows}
    heard = [row.version for row in rows if states[row.name] is not HostState.UNKNOWN]
    return [
        HostRow(
            id=row.pk,
            name=row.name,
            state=states[row.name],
            runs=runs.get(row.name, 0),
            cap=facts.cap_of(row, settings),
            own_cap=row.session_cap,
            labels=tuple(row.labels),
            ssh_address=row.ssh_address,
            load=row.load,
            cores=row.cores,
            disk_free_mb=row.disk_free_mb,
            version=row.version,
            is_behind=rules.is_behind(row.version, heard),
            seen_at=row.seen_at,
            silent_for=getattr(row, "silent_for", None),
            last_error=row.last_error,
            is_here=row.name == lab.host,
            is_alone=len(rows) == 1,
        )
        for row in rows
    ]
