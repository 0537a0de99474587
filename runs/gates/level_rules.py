"""How accepted work stands towards the run level, after which alone its issue is closed. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from runs.core.states import ValidationState

SHOWN_COMMIT = 7
MOST_REASON = 110  # a row of Needs you has room for it and for what can be done


class Standing(StrEnum):
    """What the run level says of an accepted run whose issue nobody has asked to be closed."""

    COMES = "comes"  # it is at work, or its session will begin it
    FAILED = "failed"
    OVER = "over"  # its session ended, or its validation was called off, before anything was proven
    LEFT_OUT = "left out"  # it passed without this run's work

    @property
    def needs_somebody(self) -> bool:
        """Whether nothing goes on by itself."""
        return self is not Standing.COMES


@dataclass(frozen=True, slots=True)
class LevelFacts:
    """What is stored of an accepted run and its run level.

    `state` and `reason` are those of the newest run level that is about this run: one of its own,
    else one of its session that began after it was accepted; None and empty without one. `ended`:
    how its session ended, empty while that is open and for a run without one. `left_out`: why it was
    not put together with the others. `commit`: None where nothing had to be committed.
    """

    key: str
    branch: str
    commit: str | None
    base: str
    state: ValidationState | None = None
    reason: str = ""
    is_session_open: bool = False
    ended: str = ""
    left_out: str = ""
    follow_up: str = ""


@dataclass(frozen=True, slots=True)
class Level:
    """Where a run stands, what happened, and what is not harmed and can be done, as sentences."""

    standing: Standing
    reason: str = ""
    kept: str = ""
    follow_up: str = ""
    advice: str = ""

    @property
    def what(self) -> str:
        """What happened to its run, to be read behind the name of the issue."""
        return _WHAT.get(self.standing, "")

    @property
    def why(self) -> str:
        """Everything that a person has to know before they act."""
        made = f"Issue {self.follow_up} was made of it." if self.follow_up else ""
        return " ".join(one for one in (self.reason, self.kept, made, self.advice) if one)


_WHAT = {
    Standing.FAILED: "passed its gates and failed the run level",
    Standing.OVER: "passed its gates and was never proven at the run level",
    Standing.LEFT_OUT: "passed its gates and was left out of the run level",
}


def level(facts: LevelFacts) -> Level:
    """Where a run stands, with its sentences."""
    standing = _standing(facts)
    if not standing.needs_somebody:
        return Level(standing)
    follow_up = facts.follow_up if standing is Standing.FAILED else ""
    advice = f"Validate it again on top of {facts.base}, or close the issue yourself."
    return Level(standing, _sentence(_reason(facts, standing)), _kept(facts), follow_up, advice)


def _standing(facts: LevelFacts) -> Standing:
    if facts.state is ValidationState.RUNNING:
        return Standing.COMES
    if facts.state is ValidationState.FAILED:
        return Standing.FAILED
    if facts.is_session_open:
        return Standing.COMES
    if facts.state is ValidationState.PASSED:
        return Standing.LEFT_OUT
    return Standing.OVER


def _reason(facts: LevelFacts, standing: Standing) -> str:
    if standing is Standing.FAILED:
        return facts.reason
    if standing is Standing.LEFT_OUT:
        return facts.left_out or "the run level passed without its accepted commit"
    if facts.state is ValidationState.NOTHING:
        return "the gates of its project were turned off before the run level"
    if facts.ended:
        return f"its watch session {facts.ended} before a run level was over"
    return "its run level was called off" if facts.state else "its run level never began"


def _kept(facts: LevelFacts) -> str:
    if not facts.commit:
        return "Its issue stays open."
    return f"Branch {facts.branch} and commit {facts.commit[:SHOWN_COMMIT]} are kept. Its issue stays open."


def _sentence(text: str) -> str:
    plain = text.strip().replace("`", "").partition("\n")[0].rstrip(". ")
    if len(plain) > MOST_REASON:
        return f"{plain[:1].upper()}{plain[1 : MOST_REASON - 1].rstrip()}…"
    return f"{plain[:1].upper()}{plain[1:]}." if plain else ""
