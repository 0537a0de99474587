"""What a review says to the agent whose pull request is to be changed: its comments, as text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from runs.core.ports import Lab
from runs.core.states import TrackerKind
from runs.followups import facts, rules
from runs.models import Run
from runs.pulls import comments as pull_comments
from trackers import plain
from trackers.account import awaited

# How what an agent writes is signed; the review is what others wrote.
_AGENT = re.compile(r".+, run \d+")
_MORE = "\n\nMore was said than is told here: read all of it with `labctl pr view`."


def told(lab: Lab, run: Run, text: str) -> str:
    """The request with its comments; empty when there is nothing to tell. Raises TrackerError."""
    said = said_of(lab, run)
    if not text and not said:
        return ""
    parts = [f"Changes are requested on pull request {facts.pull_of(run)}."]
    parts += [text] if text else []
    parts += ["What was commented on it:", *said] if said else []
    whole = "\n\n".join(parts)
    limit = rules.TOLD_CHARACTERS
    return whole if len(whole) <= limit else f"{whole[:limit]}{_MORE}"


def said_of(lab: Lab, run: Run) -> Sequence[str]:
    """What others commented since the run was asked for, oldest first. Raises TrackerError.

    A forge tells its comments without their time and without those on lines, so all of it is told.
    """
    number = facts.pull_of(run)
    if number is None:
        return ()
    if run.project.tracker == TrackerKind.BUILTIN:
        return list(_kept(run, number))
    return list(_elsewhere(lab, run, number))


def _kept(run: Run, number: int) -> Iterator[str]:
    for one in pull_comments.comments(run.project, number):
        if one.at < run.requested_at or _AGENT.fullmatch(one.author):
            continue
        where = f" on {plain.line(one.path)}:{one.line}" if one.path else ""
        side = " (the old side)" if one.side == "old" else ""
        quote = f"\n> {plain.line(one.quote)}" if one.quote else ""
        yield f"{plain.line(one.author)}{where}{side}:{quote}\n{plain.text(one.body)}"


def _elsewhere(lab: Lab, run: Run, number: int) -> Iterator[str]:
    tracker = lab.tracker_for(run.project.tracker)
    if tracker is None:
        return
    with awaited():
        found = tracker.pull_comments(run.project.tracker_root, number)
    for one in found:
        if one.body.strip():
            yield f"{plain.line(one.author)}:\n{plain.text(one.body)}"
