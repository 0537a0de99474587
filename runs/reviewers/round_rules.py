"""Whether rounds of a review come to an end: by the same findings again, or by the time they take. Pure.

What was found is the same where file and title are, whoever found it and on whichever line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from runs.reviewers.rules import Finding


@dataclass(frozen=True, slots=True)
class ReviewTime:
    """How long one review (`one`) and all of a run (`whole`) may take; `used` is by all so far."""

    one: timedelta
    whole: timedelta
    used: timedelta

    @property
    def left(self) -> timedelta:
        """How long the next review may take."""
        return max(min(self.one, self.whole - self.used), timedelta(0))

    @property
    def is_used_up(self) -> bool:
        return self.used >= self.whole

    @property
    def words(self) -> str:
        """Why nobody is asked any more, for a person; empty while there is time left."""
        if not self.is_used_up:
            return ""
        minutes = int(self.whole / timedelta(minutes=1))
        time = "a minute" if minutes == 1 else f"{minutes} minutes"
        return f"all reviews of this run together may take {time}, and they have"


class Course(StrEnum):
    """What the newest round is, seen from those before it."""

    NEW = "new"
    REPEATED = "repeated"
    FLIPPING = "flipping"


@dataclass(frozen=True, slots=True)
class Round:
    """What one review found that has to be mended."""

    findings: Sequence[Finding]

    @property
    def names(self) -> frozenset[tuple[str, str]]:
        return frozenset(_name(one) for one in self.findings if one.is_blocking)


def _name(one: Finding) -> tuple[str, str]:
    return one.path, " ".join(one.title.casefold().split())


def classify_rounds(rounds: Sequence[Round]) -> Course:
    """What the last of these rounds is, the oldest first.

    *Repeated*: of what the round before found nothing was mended. *Flipping*: something is back
    that the round before no longer found. A round that mends some of it goes on.
    """
    *earlier, last = [one.names for one in rounds] or [frozenset()]
    if not earlier:
        return Course.NEW
    if earlier[-1] and earlier[-1] <= last:
        return Course.REPEATED
    before = frozenset().union(*earlier[:-1])
    return Course.FLIPPING if (last - earlier[-1]) & before else Course.NEW


def describe_circle(rounds: Sequence[Round]) -> str:
    """Why another round would not help, for a person; empty while it may."""
    found = classify_rounds(rounds)
    if found is Course.NEW:
        return ""
    earlier = [one.names for one in rounds[:-1]]
    before = earlier[-1] if found is Course.REPEATED else frozenset().union(*earlier[:-1])
    if found is Course.FLIPPING:
        before -= earlier[-1]
    again = next(one for one in rounds[-1].findings if one.is_blocking and _name(one) in before)
    what = f"“{again.title}”{f' in {again.path}' if again.path else ''}"
    if found is Course.REPEATED:
        return f"{what} was found again after its agent was told: a person has to decide"
    return (
        f"{what} is back after it was mended, so the review goes in circles: a person has to decide"
    )
