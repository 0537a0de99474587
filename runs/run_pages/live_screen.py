"""The screen of a run as it is now, sent as changes to what a page has."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runs import wiring
from runs.core.recent import Recent
from runs.lifecycle import observe
from runs.models import Run
from runs.transcript import frames
from runs.web import terminal

# What pages of this process were sent, by its mark: another process sends all of it once more.
_SENT: Recent[Sequence[str]] = Recent(60_000, len)


@dataclass(frozen=True, slots=True)
class Shot:
    """The lines of a screen as HTML. `is_live`: its session is there; `mark` names the lines."""

    lines: Sequence[str] = ()
    is_live: bool = True
    mark: str = ""


def shot_of(screen: observe.Screen) -> Shot:
    """A screen that was read."""
    lines = terminal.screen_lines(screen.text) if screen.text else []
    mark = hashlib.sha256("\n".join(lines).encode("utf-8", "replace")).hexdigest()[:16]
    return Shot(lines, screen.live, mark)


def remembered(shot: Shot) -> Shot:
    """The same, so that whoever has it is sent only what has changed since."""
    _SENT.get(shot.mark, lambda: shot.lines)
    return shot


def had(mark: str) -> Sequence[str]:
    """The lines with a mark; none where they are not known any more."""
    return _SENT.kept(mark) or ()


def shoot(run: Run) -> Shot | None:
    """The screen of a run as it is now; None where tmux does not answer."""
    screen = observe.terminal(wiring.lab(), run)
    return None if screen.error else shot_of(screen)


def news(shot: Shot, had: Sequence[str]) -> dict[str, Any]:
    """What makes the lines of the shot of those that a page has; `all` of them where it has none."""
    by = frames.changes(had, shot.lines)
    return {"live": shot.is_live, "mark": shot.mark, "all": not had, "d": by}
