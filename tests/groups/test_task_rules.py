"""Who may do what with a task."""

from __future__ import annotations

from itertools import islice

import pytest

from runs.groups.task_rules import Act, Standing, free_keys, is_inside, is_so_already, refusal
from runs.groups.terms import TaskStatus

PENDING, BUSY, DONE = TaskStatus.PENDING, TaskStatus.IN_PROGRESS, TaskStatus.COMPLETED
CLAIM, COMPLETE, BACK = Act.CLAIM, Act.COMPLETE, Act.HAND_BACK
ME, OTHER, PERSON = "ash", "rowan", None


def _task(status: TaskStatus, owner: str = "", issue: str = "") -> Standing:
    return Standing("3", status, owner, issue)


@pytest.mark.row("RUNE-41", level="pure")
@pytest.mark.row("C-21", level="pure")
@pytest.mark.parametrize(
    ("act", "task", "worker", "code"),
    [
        pytest.param(CLAIM, _task(PENDING), ME, "", id="claim-free"),
        pytest.param(CLAIM, _task(BUSY, OTHER), ME, "taken", id="claim-of-another"),
        pytest.param(CLAIM, _task(DONE, OTHER), ME, "done", id="claim-completed"),
        pytest.param(CLAIM, _task(PENDING, issue="7"), ME, "follows_run", id="claim-issue"),
        pytest.param(CLAIM, _task(PENDING, issue="7"), PERSON, "follows_run", id="person-issue"),
        pytest.param(COMPLETE, _task(BUSY, ME), ME, "", id="complete-own"),
        pytest.param(COMPLETE, _task(BUSY, OTHER), ME, "not_yours", id="complete-taken-by-another"),
        pytest.param(COMPLETE, _task(PENDING), ME, "not_yours", id="complete-given-back"),
        pytest.param(COMPLETE, _task(DONE, OTHER), ME, "done", id="complete-completed-by-another"),
        pytest.param(COMPLETE, _task(BUSY, OTHER), PERSON, "", id="person-completes-any"),
        pytest.param(COMPLETE, _task(PENDING), PERSON, "", id="person-completes-free"),
        pytest.param(COMPLETE, _task(PENDING, issue="7"), PERSON, "", id="person-completes-issue"),
        pytest.param(COMPLETE, _task(BUSY, ME, "7"), ME, "follows_run", id="worker-and-issue"),
        pytest.param(BACK, _task(BUSY, ME), ME, "", id="back-own"),
        pytest.param(BACK, _task(BUSY, OTHER), ME, "not_yours", id="back-of-another"),
        pytest.param(BACK, _task(BUSY, OTHER), PERSON, "", id="person-gives-back-any"),
        pytest.param(BACK, _task(DONE, ME), ME, "done", id="back-completed"),
        pytest.param(BACK, _task(DONE, ME), PERSON, "done", id="person-back-completed"),
        pytest.param(BACK, _task(BUSY, "run-1", "7"), PERSON, "follows_run", id="back-issue"),
    ],
)
def test_an_act_is_refused_with_a_code(
    act: Act, task: Standing, worker: str | None, code: str
) -> None:
    found = refusal(act, task, worker)
    assert (found.code if found else "") == code
    if found:
        assert found.text.endswith("Nothing was changed.")


@pytest.mark.row("RUNE-41", level="pure")
@pytest.mark.parametrize(
    ("act", "task", "worker", "is_so"),
    [
        pytest.param(CLAIM, _task(BUSY, ME), ME, True, id="claimed-by-me"),
        pytest.param(CLAIM, _task(BUSY, OTHER), ME, False, id="claimed-by-another"),
        pytest.param(COMPLETE, _task(DONE, ME), ME, True, id="completed-by-me"),
        pytest.param(COMPLETE, _task(DONE, OTHER), ME, False, id="completed-by-another"),
        pytest.param(COMPLETE, _task(DONE, OTHER), PERSON, True, id="completed-person"),
        pytest.param(BACK, _task(PENDING), ME, True, id="free"),
        pytest.param(BACK, _task(PENDING, issue="7"), PERSON, False, id="free-issue"),
        pytest.param(BACK, _task(BUSY, ME), ME, False, id="not-free"),
    ],
)
def test_what_is_so_already_is_done_again_without_effect(
    act: Act, task: Standing, worker: str | None, is_so: bool
) -> None:
    assert is_so_already(act, task, worker) is is_so


@pytest.mark.row("RUNE-74", level="pure")
@pytest.mark.parametrize(
    ("path", "is_fit"),
    [
        pytest.param("a.md", True, id="name"),
        pytest.param("out/a b.md", True, id="folder"),
        pytest.param("", False, id="empty"),
        pytest.param("/etc/passwd", False, id="absolute"),
        pytest.param("out/../../x", False, id="out"),
        pytest.param("./x", False, id="dot"),
        pytest.param("a//b", False, id="empty-part"),
        pytest.param("a\\b", False, id="backslash"),
        pytest.param("a\nb", False, id="line"),
        pytest.param("a\0b", False, id="nul"),
        pytest.param("x" * 201, False, id="long"),
    ],
)
def test_an_output_file_stays_in_its_folder(path: str, is_fit: bool) -> None:
    assert is_inside(path, 200) is is_fit


def test_free_keys_leave_out_what_is_taken() -> None:
    assert list(islice(free_keys({"1", "3", "x"}), 3)) == ["2", "4", "5"]
