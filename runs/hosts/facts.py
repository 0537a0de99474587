"""The facts of all hosts by which a start finds its place. One query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from runs.core.ports import Lab
from runs.hosts import rules
from runs.hosts.rules import HostFacts, HostState
from runs.models import Host, Project, Settings


def known(lab: Lab, settings: Settings, used: Mapping[str, int]) -> list[HostFacts]:
    """Every host, with `used` slots each. This host is not silent: it is the one that asks."""
    return of(lab, settings, list(Host.objects.with_silence()), used)


def of(
    lab: Lab, settings: Settings, rows: Sequence[Host], used: Mapping[str, int]
) -> list[HostFacts]:
    """The same of hosts that were read already."""
    states = {row.name: state_of(row, settings, lab.host) for row in rows}
    versions = {row.name: row.version for row in rows}
    if lab.host in versions:
        versions[lab.host] = lab.machine.version or versions[lab.host]
    # What runs nowhere any more, or perhaps not, makes nobody old.
    out = (HostState.UNKNOWN, HostState.REMOVED)
    heard = [version for name, version in versions.items() if states[name] not in out]
    is_alone = sum(row.removed_at is None for row in rows) < 2
    return [
        HostFacts(
            row.name,
            states[row.name],
            frozenset(row.labels),
            free=cap_of(row, settings) - used.get(row.name, 0),
            is_behind=rules.is_behind(versions[row.name], heard),
            has_disk=is_alone or _has_disk(row),
            # What was stored is as old as the last tick, and a clone may be made since.
            warm=frozenset(lab.machine.warm() if row.name == lab.host else row.warm),
        )
        for row in rows
    ]


def carrier(lab: Lab, project: Project, first: str = "") -> str:
    """The host whose worker carries out what is asked here and belongs to no session.

    `first` if there is such a host, then this one. A web process alone has no host under its name: then
    it is the one that cloned the project, or the first that answers. Where there is one machine it
    is that, and nothing is asked.
    """
    if lab.others is None or first == lab.host:
        return lab.host
    settings, rows = Settings.current(), Host.objects.with_silence().filter(removed_at=None)
    states = {row.name: state_of(row, settings) for row in rows.order_by("name")}
    for name in (first, lab.host):
        if name in states:
            return name
    heard = [name for name, state in states.items() if state is not HostState.UNKNOWN]
    if project.home in heard or not heard:
        return project.home or lab.host
    return heard[0]


def cap_of(row: Host, settings: Settings) -> int:
    """How many sessions a host may have at once."""
    own = settings.session_cap if row.session_cap is None else row.session_cap
    return min(own, settings.session_cap)


def _has_disk(row: Host) -> bool:
    """What could not be told keeps nothing from starting."""
    return row.disk_free_mb is None or row.disk_free_mb >= rules.LEAST_DISK_MB


def state_of(row: Host, settings: Settings, here: str = "") -> HostState:
    """How a host stands that was read with its silence; `here` is the one that asks."""
    told: timedelta | None = getattr(row, "silent_for", None)
    silent = timedelta() if row.name == here else told
    return rules.state_of(
        is_draining=row.is_draining,
        is_removed=row.removed_at is not None,
        silent_for=silent,
        interval=settings.tick_interval,
    )
