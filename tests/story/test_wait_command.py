"""`./lab wait` as a script uses it: a real process, its exit code, and the result on its output."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from tests.house.product import until
from tests.story.commands import Command, alive, refuses, started

SET_UP = """
from runs.models import Project, Task, TaskGroup
from runs.wiring import lab
now = lab().now()
known = {'source': '/nowhere', 'url': '/nowhere', 'state': 'ready', 'created_at': now}
demo, other = (Project.objects.create(name=n, slug=n, **known) for n in ('demo', 'other'))
def group(project, name, *statuses, preset='work'):
    made = TaskGroup.objects.create(project=project, name=name, preset=preset, made_at=now)
    for key, status in enumerate(statuses, 1):
        done = {'completed_at': now} if status == 'completed' else {}
        Task.objects.create(group=made, key=str(key), subject=f'Part {key}', status=status, **done)
group(demo, 'done', 'completed', 'completed')
group(demo, 'slow', 'completed', 'pending', preset='review')
for name in ('fails', 'stops', 'goes', 'stays', 'twice'):
    group(demo, name, 'pending')
group(other, 'twice', 'pending')
"""
BAD_DAY = """
from runs.models import Monitor, TaskGroup
from runs.wiring import lab
from runs.groups import monitors
now = lab().now()
of = lambda name: Monitor.objects.get(group__name=name)
gone = {'look_at': None, 'pass_at': None, 'check_at': None, 'ended_at': now}
Monitor.objects.filter(group__name='fails').update(state='error', error='no such table', **gone)
monitors.stop(lab(), of('stops'), by='anna')
TaskGroup.objects.get(name='goes').delete()
print(of('stays').state)
"""
STAYS = "from runs.models import Monitor; print(Monitor.objects.get(group__name='stays').state)"


@pytest.fixture
def wait(story) -> Iterator[Callable[..., Command]]:
    with started(story, "wait") as go:
        yield go


@pytest.mark.real
@pytest.mark.parametrize(
    ("argv", "text"),
    [
        pytest.param(
            ["--poll", "0"], "Error: --poll is a length of at least one second", id="poll"
        ),
        pytest.param(["--expected", "x"], "Error: --expected is a whole number", id="expected"),
        pytest.param(["--frequency", "5"], "unrecognized arguments", id="unknown"),
    ],
)
def test_wrong_arguments_end_it_with_two_before_anything_was_made(tmp_path, argv, text):
    refuses(tmp_path / "state", "wait", "wave", *argv, says=text)


@pytest.mark.row("RUNE-02", level="real")
def test_without_a_worker_it_starts_one_and_leaves_none_behind(story, wait):
    story.shell(SET_UP)

    command = wait("demo/done", "--json")

    assert command.ends() == 0, command.err
    assert json.loads(command.out) == {
        "completed": ["1", "2"],
        "incomplete": [],
        "timed_out": False,
    }
    assert "No worker runs" in command.err
    until(lambda: not alive(story))


@pytest.mark.row("RUNE-01", "RUNE-02", "RUNE-05", level="real")
def test_beside_a_running_product_every_end_has_its_code(story, wait):
    story.up()
    story.shell(SET_UP)
    names = ("fails", "stops", "goes", "stays")
    waiting = {name: wait(f"demo/{name}") for name in names}
    done = wait("done")
    slow = wait("slow", "--project", "demo", "--timeout", "1s", "--poll", "1s", "--json")
    unknown, twice = wait("demo/nothing"), wait("twice")
    refused = wait("slow", "--preset", "review", "--release", "1m", "--project", "other")

    assert done.ends() == 0, done.err
    assert "Work progress: 2/2 tasks" in done.out
    assert "Decision: COMPLETE" in done.out
    assert done.out.endswith("completed   2: 1, 2\nincomplete  0\ntimed out   no\n")
    assert slow.ends() == 1, slow.err
    assert json.loads(slow.out) == {"completed": ["1"], "incomplete": ["2"], "timed_out": True}
    assert (unknown.ends(), twice.ends(), refused.ends()) == (2, 2, 2)
    assert "there is no open group nothing in demo" in unknown.err
    assert "demo/twice, other/twice" in twice.err

    for command in waiting.values():
        command.says("progress: 0/1 tasks")
    waiting["stays"].press()
    assert waiting["stays"].ends() == 130
    assert "The monitor goes on" in waiting["stays"].err
    again = wait("stays", "--poll", "5s")
    again.says("watches this group already; it is followed, with its own options.")

    assert story.shell(BAD_DAY) == "running"

    assert [waiting[name].ends() for name in ("fails", "stops", "goes")] == [3, 3, 3]
    assert "The monitor failed: no such table" in waiting["fails"].err
    assert "was stopped by anna" in waiting["stops"].err
    assert "The group was deleted" in waiting["goes"].err
    assert again.process.poll() is None
    again.hang_up()
    assert again.ends() == 129
    assert story.shell(STAYS) == "running"
    assert "Traceback" not in "".join(command.err for command in waiting.values())
