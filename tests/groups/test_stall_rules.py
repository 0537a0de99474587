"""Which tasks are stalled and what comes of them: the table."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from runs.groups.monitor_rules import Memory, Seen
from runs.groups.stall_rules import Fate, stalls
from runs.groups.terms import Options, TaskFacts, TaskStatus


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


def a_task(key: str = "1", **fields: Any) -> TaskFacts:
    given = {"pk": 1, "subject": "x", "status": TaskStatus.IN_PROGRESS, "claim": 1, **fields}
    return TaskFacts(key=key, **given)


def memory(**seen: tuple[int, float]) -> Memory:
    return Memory(seen={key[1:]: Seen(claim, minutes(at)) for key, (claim, at) in seen.items()})


WORK = Options(release=minutes(10))
REVIEW = Options()


@pytest.mark.row("RUNE-45", level="pure")
@pytest.mark.parametrize(
    ("options", "task", "elapsed", "fate", "until"),
    [
        pytest.param(WORK, a_task(), 7.0, None, None, id="five minutes exactly"),
        pytest.param(WORK, a_task(), 7.1, Fate.GIVEN_BACK, 12.0, id="longer"),
        pytest.param(WORK, a_task(), 30.0, Fate.GIVEN_BACK, 12.0, id="overdue"),
        pytest.param(REVIEW, a_task(), 7.1, Fate.ONLY_WARNED, None, id="no release"),
        pytest.param(
            WORK, a_task(is_releasable=False), 7.1, Fate.FOLLOWS_RUN, None, id="of an issue"
        ),
        pytest.param(WORK, a_task(claim=2), 7.1, None, None, id="taken anew, not seen yet"),
        pytest.param(WORK, a_task("2"), 7.1, None, None, id="never seen"),
        pytest.param(WORK, a_task(status=TaskStatus.PENDING), 7.1, None, None, id="pending"),
        pytest.param(WORK, a_task(status=TaskStatus.COMPLETED), 7.1, None, None, id="completed"),
    ],
)
def test_a_task_is_stalled_by_the_clock_of_its_claim(
    options: Options, task: TaskFacts, elapsed: float, fate: Fate | None, until: float | None
) -> None:
    found = stalls(options, memory(k1=(1, 2)), [task], minutes(elapsed))
    if fate is None:
        assert found == []
        return
    assert [(one.task, one.fate, one.seen) for one in found] == [(task, fate, minutes(2))]
    assert found[0].age == minutes(elapsed - 2)
    assert found[0].until == (None if until is None else minutes(until))


def test_the_longest_stalled_comes_first() -> None:
    tasks = [a_task("1"), a_task("2"), a_task("3")]
    found = stalls(WORK, memory(k1=(1, 3), k2=(1, 1), k3=(1, 2)), tasks, minutes(20))
    assert [one.task.key for one in found] == ["2", "3", "1"]
