"""Follows one trial of an agent: reads its row, and prints each step once it is known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TextIO

from django.db import DatabaseError

from labsite.beside.person import who
from labsite.beside.refused import Refusal
from runs import wiring
from runs.agents import trial as trials
from runs.agents.trial_rules import Step, StepState, TrialState, Tried
from runs.core import connections
from runs.models import AgentProfile, AgentTrial

_MARKS = {StepState.PASSED: "ok", StepState.FAILED: "FAILED"}
_WIDTH = 28


def profile_named(name: str) -> AgentProfile:
    """The profile of that name. Raises Refusal."""
    found = AgentProfile.objects.filter(name=name).first() if "\0" not in name else None
    if found is None:
        names = ", ".join(AgentProfile.objects.values_list("name", flat=True)) or "none"
        raise Refusal(f"Error: there is no agent profile of that name. There are: {names}.")
    return found


class Follower:
    """One trial as the command sees it. The database may go and come back meanwhile."""

    def __init__(self, trial: AgentTrial, out: TextIO, is_json: bool) -> None:
        self._trial = trial
        self._out = out
        self._is_json = is_json
        self._told: set[Step] = set()

    @classmethod
    def begin(cls, profile: AgentProfile, out: TextIO, *, is_json: bool) -> Follower:
        """Ask for a trial, or follow the one that is open."""
        return cls(trials.ask(wiring.lab(), profile, who()), out, is_json)

    def stop(self) -> None:
        """Have the trial stopped."""
        trials.stop(wiring.lab(), self._trial, who())

    def news(self) -> int | None:
        """Print the steps that are known now; the exit code once the trial has ended."""
        try:
            found = AgentTrial.objects.filter(pk=self._trial.pk).first()
        except DatabaseError:
            connections.renew()
            return None
        if found is None:
            self._print("The profile was removed, and its trial with it.", {"state": "removed"})
            return 1
        for one in trials.steps(found):
            if one.state is not StepState.WAITING and one.step not in self._told:
                self._told.add(one.step)
                self._tell(one)
        if not found.is_over:
            return None
        self._tell_end(found)
        return 0 if found.state == TrialState.PASSED else 1

    def _tell(self, one: Tried) -> None:
        mark = _MARKS.get(one.state, one.state.value)
        note = f"  {one.note}" if one.note else ""
        facts = {"step": one.step.value, "state": one.state.value, "note": one.note}
        self._print(f"{one.label:<{_WIDTH}}{mark}{note}", facts)

    def _tell_end(self, found: AgentTrial) -> None:
        shown = found.screen if found.state != TrialState.PASSED else ""
        lines = [f"{found.profile.name}: {found.state}", *([found.note] if found.note else [])]
        if shown:
            lines += [
                "",
                "Last lines of its screen:",
                *(f"  {line}" for line in shown.splitlines()),
            ]
        facts = {"trial": found.pk, "state": found.state, "note": found.note, "screen": shown}
        self._print("\n".join(lines), facts)

    def _print(self, text: str, facts: Mapping[str, object]) -> None:
        print(json.dumps(facts) if self._is_json else text, file=self._out, flush=True)
