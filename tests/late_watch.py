"""A clock for the modules that follow programs: as late as a machine that held their process up."""

from __future__ import annotations

import time


class LateWatch:
    """In place of the module `time`: `each` passes by whenever somebody asks, `ahead` passed before."""

    sleep = staticmethod(time.sleep)

    def __init__(self) -> None:
        self.ahead = 0.0
        self.each = 0.0

    def monotonic(self) -> float:
        self.ahead += self.each
        return time.monotonic() + self.ahead
