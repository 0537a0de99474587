"""Whether an agent that stopped without a delivery is asked once to deliver or to say why not. Pure."""

from __future__ import annotations

from dataclasses import dataclass

TOLD = "asked once to open its pull request or to say why not"
TOLD_OF_COMMITS = "asked once to deliver or to say why not"


@dataclass(frozen=True, slots=True)
class Stopped:
    """An agent that stopped and has not delivered.

    `is_well`: by itself, neither in an error nor because somebody stopped it. `can_be_told`: it has a
    session that goes on. `is_adding`: it was to add to an open pull request, as a person asked.
    """

    is_on: bool
    was_asked: bool
    is_well: bool
    can_be_told: bool
    is_adding: bool = False


def is_asked(found: Stopped) -> bool:
    """Whether it is asked now; once a run."""
    may_be = found.is_on and not found.was_asked and not found.is_adding
    return may_be and found.is_well and found.can_be_told


def text(*, key: str, branch: str, evidence: str = "") -> str:
    """What it is told, in its own session."""
    deliver = (
        f"push it (`git push origin {branch}`) and open the pull request now: `labctl pr create`, "
        f"with `Closes #{key}` in its description; mark one that is a draft as ready for review"
    )
    missing = f"there is no pull request of `{branch}` that is ready for review"
    if evidence:
        missing = "labsite has not seen a delivery"
        deliver = (
            f"commit it with `{evidence}` in the message, push it (`git push origin {branch}`) and "
            "run `labctl done`"
        )
    return (
        f"You have stopped, and {missing}. If the work on issue {key} is done, commit what is not "
        f"committed, {deliver}. If there is more to do, do it first. If nothing should be delivered, "
        "say in one sentence why not. Nobody answers questions. You are asked this once."
    )


def told(*, of_commits: bool) -> str:
    """The same for the timeline and for the reason of an end."""
    return TOLD_OF_COMMITS if of_commits else TOLD
