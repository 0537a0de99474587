"""Which pull requests are this run's delivery, when two machines' clocks are in play."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runs.models import Project, Run
from runs.work import done_signal
from tests.fakes import START
from trackers.base import Pull, PullState


@pytest.mark.row("LAB-30", "LAB-77", level="contract")
@pytest.mark.parametrize(
    ("tracker", "state", "seconds", "is_done"),
    [
        pytest.param("builtin", "merged", 0, True, id="built in, the same moment"),
        pytest.param("builtin", "merged", -1, False, id="built in, merged of an earlier run"),
        pytest.param("github", "merged", -1, True, id="a forge in whole seconds"),
        pytest.param("gitea", "merged", -120, True, id="a forge whose clock is two minutes late"),
        pytest.param("gitea", "merged", -121, False, id="a forge, merged of an earlier run"),
        pytest.param("github", "open", -10_000, True, id="an open one waits, however old"),
        pytest.param("github", "closed", 10, False, id="a closed one counts as none"),
    ],
)
def test_what_was_merged_before_the_run_began_is_not_its_delivery(
    tracker: str, state: str, seconds: int, is_done: bool
) -> None:
    run = Run(project=Project(tracker=tracker), branch="afk/7", requested_at=START)
    made_at = START + timedelta(seconds=seconds)
    pull = Pull(3, "afk/7", PullState(state), created_at=made_at)

    assert done_signal.of_pulls(run, [pull]).is_done is is_done
