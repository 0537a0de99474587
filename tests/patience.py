"""How long a test waits for what does come.

As long as a busy machine may take: a shorter bound would make nothing faster, since only a test
that fails waits that long.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

PATIENCE = 240.0
LEAST_TRIES = 3
BROWSER_PATIENCE = PATIENCE * 1000  # Playwright counts milliseconds


def least_cost(act: Callable[[], object], tries: int = 5) -> float:
    """Seconds of processor time that an act takes in this thread: the least of some tries.

    Once, it may be the one in which garbage is collected, or on a core that is shared.
    """
    took = []
    for _ in range(tries):
        began = time.thread_time()
        act()
        took.append(time.thread_time() - began)
    return min(took)


def comes_within(seconds: float, act: Callable[[int], object]) -> None:
    """See that something takes less time than this, by the quickest of many tries.

    All of a few may be held up by whatever else the machine does, so there are as many as it takes;
    what is slow by itself is quick in none of them. There are some at least, since what comes once
    need not come again. The act is told the number of the try.
    """
    deadline = time.monotonic() + PATIENCE
    took = []
    for number in itertools.count():
        began = time.monotonic()
        act(number)
        took.append(time.monotonic() - began)
        if number + 1 >= LEAST_TRIES and min(took) < seconds:
            return
        assert began < deadline, took
