"""Looks up the link into an agent's own page of a session, for as long as that may take."""

from __future__ import annotations

from collections.abc import Sequence

from runs.agents import linking
from runs.core import budgets
from runs.core.ports import Lab
from runs.models import AgentProfile, Run


def look_up(lab: Lab, runs: Sequence[Run]) -> int:
    """Store what was found, or after half a minute the general link; how many rows changed.

    Costs nothing unless a run still waits for its link.
    """
    waiting = [run for run in runs if run.link_waits]
    if not waiting:
        return 0
    profiles = {one.name: one for one in AgentProfile.objects.all()}
    return sum([_look_up(lab, run, profiles.get(run.agent)) for run in waiting])


def _look_up(lab: Lab, run: Run, profile: AgentProfile | None) -> bool:
    if profile is None:
        link: str | None = ""
    else:
        ident = ""
        if profile.link_url:
            env = {str(name): str(value) for name, value in profile.env.items()}
            ident = lab.registry.find(profile.link_files, profile.link_field, run.worktree, env)
        age = budgets.age(lab.now(), run.started_at)
        link = linking.settled(ident, profile.link_url, profile.link_generic, age)
    if link is None:
        return False
    rows = Run.objects.working().filter(pk=run.pk, link_waits=True)
    return bool(rows.update(deep_link=link, link_waits=False))
