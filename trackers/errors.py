"""The errors of trackers; each kind calls for another reaction."""

from __future__ import annotations

from datetime import datetime


class TrackerError(Exception):
    """Base of all errors of trackers. None of these ever ends a run.

    `is_repeat`: nothing was asked this time, since it is not time yet after an earlier failure.
    """

    is_repeat = False


class Unreachable(TrackerError):
    """No usable answer; asking again may help."""


class Refused(TrackerError):
    """The tracker refused; a person has to do something. `status` is HTTP's, where it was that."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


class MergeQueueError(Refused):
    """The pull request has to go through the forge's merge queue; nothing failed."""


class NotFound(TrackerError):
    """There is no such issue or pull request."""


class RateLimited(TrackerError):
    """A rate limit; `until` is when calls may begin again."""

    def __init__(self, text: str, until: datetime) -> None:
        super().__init__(text)
        self.until = until


class NotUnderstood(TrackerError):
    """An answer that is not what such a tracker sends."""
