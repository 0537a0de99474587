"""Follows one trial of an agent: reads its row, and prints each step once it is known."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

from runs import wiring
from runs.agents import trial
from runs.agents.trial_rules import Step, StepState, TrialState, Tried
from runs.core.refusal import ActRefused
from runs.core.terminal import CODE_INTERRUPTED, Printer, say, who
from runs.models import AgentProfile, AgentTrial

_MARKS = {StepState.PASSED: "ok", StepState.FAILED: "FAILED"}
_WIDTH = 28


def profile_named(name: str) -> AgentProfile:
    """The profile of that name. Raises ActRefused."""
    found = AgentProfile.objects.filter(name=name).first() if "\0" not in name else None
    if found is None:
        names = ", ".join(AgentProfile.objects.values_list("name", flat=True)) or "none"
        raise ActRefused(f"Error: there is no agent profile of that name. There are: {names}.")
    return found


class Follower:
    """One trial as the command sees it. The database may go and come back meanwhile."""

    def __init__(self, row: AgentTrial, is_json: bool) -> None:
        self._trial = row
        self._is_json = is_json
        self._was_pressed = self._is_stop_wanted = False
        self._printer = Printer(sys.stdout)
        self._told: set[Step] = set()

    @classmethod
    def begin(cls, profile: AgentProfile, *, is_json: bool) -> Follower:
        """Ask for a trial, or follow the one that is open."""
        return cls(trial.ask(wiring.lab(), profile, who()), is_json)

    def press(self, times: int) -> int | None:
        """Have the trial stopped; who presses again does not wait for it."""
        if self._was_pressed:
            return CODE_INTERRUPTED
        self._was_pressed = self._is_stop_wanted = True
        say("Stopping the trial. Ctrl-C again does not wait for it.")
        self._hand_on()
        return None

    def _hand_on(self) -> None:
        """Ask for the stop; tried again with the next news while the database is away."""
        if self._is_stop_wanted:
            trial.stop(wiring.lab(), self._trial, who())
            self._is_stop_wanted = False

    def news(self) -> int | None:
        """Print the steps that are known now; the exit code once the trial has ended."""
        self._hand_on()
        found = AgentTrial.objects.filter(pk=self._trial.pk).first()
        if found is None:
            self._print("The profile was removed, and its trial with it.", {"state": "removed"})
            return CODE_INTERRUPTED if self._was_pressed else 1
        for one in trial.steps(found):
            if one.state is not StepState.WAITING and one.step not in self._told:
                self._told.add(one.step)
                self._tell(one)
        if not found.is_over:
            return None
        self._tell_end(found)
        if self._was_pressed:
            return CODE_INTERRUPTED
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
        self._printer.line(json.dumps(facts) if self._is_json else text)
