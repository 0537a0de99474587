"""Which sessions become runs although nobody asked labsite for them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from runs.core import naming
from runs.core.ports import Sighting
from trackers.keys import KeyRule


def adoptable(
    sightings: Mapping[str, Sighting], held: Collection[str], rules: Mapping[str, KeyRule]
) -> dict[str, naming.RunName]:
    """Live sessions with the name of a run that no known run holds.

    `held` are the sessions of all active and unsettled runs; `rules` says of each project that is
    known, by its session name part, what its keys look like.
    """
    return {
        name: parsed
        for name, seen in sorted(sightings.items())
        if seen.alive
        and name not in held
        and (keys := rules.get(naming.session_project(name) or ""))
        and (parsed := naming.parse_session(name, keys))
    }


def maybe_adoptable(
    sightings: Mapping[str, Sighting], held: Collection[str], project: str = ""
) -> frozenset[str]:
    """The projects, by their session name part, of which a session may be adopted.

    Almost always none, so that nothing has to be known of projects. With `project` only that one.
    """
    parts = (
        naming.session_project(name)
        for name, seen in sightings.items()
        if seen.alive and name not in held and naming.may_be_run(name)
    )
    return frozenset(part for part in parts if part and project in ("", part))
