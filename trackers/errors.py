"""Why a tracker did not give the answer: few kinds, each of which asks for something else."""

from __future__ import annotations

from datetime import datetime


class TrackerError(Exception):
    """A tracker did not give the answer. None of these ever ends a run.

    `is_repeat`: nothing was asked this time, since it is not time yet after an earlier failure.
    """

    is_repeat = False


class Unreachable(TrackerError):
    """No usable answer; asking again may help."""


class Refused(TrackerError):
    """The tracker said no; a person has to do something. `status` is HTTP's, where it was that."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


class NotFound(TrackerError):
    """There is no such issue or pull request."""


class RateLimited(TrackerError):
    """Too much was asked; `until` is when asking may begin again."""

    def __init__(self, text: str, until: datetime) -> None:
        super().__init__(text)
        self.until = until


class NotUnderstood(TrackerError):
    """An answer that is not what such a tracker sends."""
