"""What the page of a trial shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runs.agents import trial as agent_trial
from runs.agents.trial_rules import StepState, TrialState, Tried
from runs.core.ports import Lab
from runs.models import AgentTrial
from runs.overview import board
from runs.overview.board import Board

_TONES: Mapping[StepState, str] = {
    StepState.PASSED: "good",
    StepState.FAILED: "bad",
    StepState.UNKNOWN: "warn",
}
_ENDS: Mapping[TrialState, str] = {
    TrialState.PASSED: "good",
    TrialState.FAILED: "bad",
    TrialState.RUNNING: "live",
}


@dataclass(frozen=True, slots=True)
class StepLine:
    """One step with its colour."""

    tried: Tried

    @property
    def tone(self) -> str:
        return _TONES.get(self.tried.state, "")


@dataclass(frozen=True, slots=True)
class TrialPage:
    """One trial with the frame around it."""

    board: Board
    trial: AgentTrial
    steps: Sequence[StepLine]

    @property
    def tone(self) -> str:
        return _ENDS.get(TrialState(self.trial.state), "")

    @property
    def shows_screen(self) -> bool:
        """Whether its last lines explain something: while it runs, and where it did not pass."""
        return bool(self.trial.screen) and self.trial.state != TrialState.PASSED


def page(lab: Lab, trial_id: int) -> TrialPage | None:
    """Everything that the page shows; None when there is no such trial. Five queries."""
    found = AgentTrial.objects.select_related("profile").filter(pk=trial_id).first()
    if found is None:
        return None
    return TrialPage(board.load(lab), found, [StepLine(one) for one in agent_trial.steps(found)])
