"""Which one-shot agents of this product are meant by names that files of other programs have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath

from runs.core.states import AgentMode
from runs.models import AgentProfile

UNKNOWN = "There is no one-shot agent here that is called {} or runs a program of that name; the loop's own agent is used."


def known(names: Iterable[str | int | None]) -> tuple[Mapping[str, int], list[str]]:
    """For each name the id of its agent, by id, name or program; and the names that no agent has."""
    profiles = list(AgentProfile.objects.filter(mode=AgentMode.ONE_SHOT).order_by("name"))
    wanted = dict.fromkeys(str(one) for one in names if one not in (None, ""))
    found: dict[str, int] = {}
    for name in wanted:
        profile = next((one for one in profiles if _is_meant(one, name)), None)
        if profile is not None:
            found[name] = profile.pk
    return found, [name for name in wanted if name not in found]


def _is_meant(profile: AgentProfile, name: str) -> bool:
    program = PurePath(str(profile.argv[0])).name if profile.argv else ""
    return name.casefold() in (str(profile.pk), profile.name.casefold(), program.casefold())
