"""When a discard has to be asked about twice: work that was accepted and that labsite still has to
close an issue for. Pure."""

from __future__ import annotations

from dataclasses import dataclass

SHOWN_COMMIT = 7


@dataclass(frozen=True, slots=True)
class Accepted:
    """A run on a branch, as far as it decides whether the branch may simply go.

    `commit`: what its gates accepted, empty for none. `is_asked`: its run level has passed and its
    issue is being closed. `is_closed`: labsite has closed the issue.
    """

    run: int
    key: str
    commit: str
    is_asked: bool = False
    is_closed: bool = False


def warning(found: Accepted | None) -> str:
    """What is given up by discarding a branch, in sentences; empty where nothing accepted is."""
    if found is None or not found.commit or found.is_closed:
        return ""
    when = "is closing" if found.is_asked else "closes after the run level"
    return (
        f"Run {found.run} on it passed its gates (commit {found.commit[:SHOWN_COMMIT]}), and labsite "
        f"{when} issue {found.key}. Discarded, that work is given up: the issue stays open."
    )
