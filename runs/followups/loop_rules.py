"""Whether an ended run may be taken up as a loop of fresh turns, and why not. Pure."""

from __future__ import annotations

from dataclasses import dataclass

WAS_LOOP = "It was a loop already. Only an ordinary run is taken up as one."
IS_GATED = (
    "Gates prove the work of this project, and no turn of a loop can be told yet what they found."
)
CAN_RESUME = "Its agent can go on in its own session. Resume it there."
NO_AGENT = (
    "A loop needs an agent that ends by itself (one-shot), and neither the loop settings of the "
    "project nor this run have one. Choose one on the page Loops of the project."
)
NO_CHOICE = "Leave it out, or choose it with “yes”."


@dataclass(frozen=True, slots=True)
class TakeUp:
    """What decides whether a run is taken up as a loop.

    `is_loop_anyway`: who goes on with it is a loop unasked, as its project wants or as it was one.
    `can_resume`: its agent's session is known, and its program can go on in one. `has_failed`: that
    was tried in vain. `agent` is the one whose turns they would be; empty: there is none.
    """

    is_loop: bool = False
    is_gated: bool = False
    is_loop_anyway: bool = False
    can_resume: bool = False
    has_failed: bool = False
    agent: str = ""


def is_shown(run: TakeUp) -> bool:
    """Whether the choice is shown, be it without an agent for it."""
    return not run.is_loop_anyway and why_not(run) in ("", NO_AGENT)


def why_not(run: TakeUp) -> str:
    """Why a run is not taken up as a loop, in a sentence; empty when it can be."""
    if run.is_gated:
        return IS_GATED
    if run.is_loop_anyway:
        return "" if run.agent else NO_AGENT
    if run.is_loop:
        return WAS_LOOP
    if run.can_resume and not run.has_failed:
        return CAN_RESUME
    return "" if run.agent else NO_AGENT
