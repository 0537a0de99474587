"""Which sessions become runs although nobody asked labsite for them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from runs.domain import naming
from runs.domain.ports import Sighting


def adoptable(
    sightings: Mapping[str, Sighting], held: Collection[str], project: str = ""
) -> dict[str, naming.RunName]:
    """Live sessions with the name of a run that no known run holds (LAB-01, LAB-03, LAB-06).

    `held` are the sessions of all active and unsettled runs; with `project` (its session name
    part) only that project's sessions count.
    """
    return {
        name: parsed
        for name, seen in sorted(sightings.items())
        if seen.alive
        and name not in held
        and (parsed := naming.parse_session(name))
        and project in ("", parsed.project)
    }
