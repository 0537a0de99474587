"""Who may do what with a task, and what a group may be made of."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum

from runs.groups.terms import NAME_CHARACTERS, TaskStatus

NAME_RULE = f"has letters, digits, _ and - only, and at most {NAME_CHARACTERS} of them"
NOTHING = "Nothing was changed."
TEXT_CHARACTERS = 10_000
MOST_WORKERS = 200


class Act(StrEnum):
    CLAIM = "claim"
    COMPLETE = "complete"
    HAND_BACK = "hand back"


@dataclass(frozen=True, slots=True)
class Standing:
    """A task as it was read. One with an issue follows the runs of that issue."""

    key: str
    status: TaskStatus
    owner: str = ""
    issue_key: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why not: a code for programs, a sentence for whoever asked."""

    code: str
    text: str


def refusal(act: Act, task: Standing, worker: str | None) -> Refusal | None:
    """Why this act is not done; a worker acts on what it has, a person (None) on any.

    A completed task stays completed, and an issue is never claimed or given back here.
    """
    name = f"Task #{task.key}"
    if task.issue_key and (worker is not None or act is not Act.COMPLETE):
        text = (
            f"{name} stands for issue {task.issue_key} and follows its run: nobody claims it or "
            f"gives it back, and the run's success completes it. {NOTHING}"
        )
        return Refusal("follows_run", text)
    if task.status is TaskStatus.COMPLETED:
        return Refusal("done", f"{name} was completed by {task.owner or 'somebody'}. {NOTHING}")
    if act is Act.CLAIM:
        if task.status is TaskStatus.PENDING:
            return None
        return Refusal("taken", f"{name} was taken by {task.owner}. {NOTHING}")
    if worker is None or task.owner == worker:
        return None
    if task.status is TaskStatus.PENDING:
        why = "it is free, or was given back since you took it. Claim it first"
    else:
        why = f"{task.owner} has it now. It was given back, or you never had it. Claim another"
    return Refusal("not_yours", f"{name} is not yours: {why}. {NOTHING}")


def is_so_already(act: Act, task: Standing, worker: str | None) -> bool:
    """Whether the act has been done: a request is sent again when its answer was lost."""
    is_theirs = worker is None or task.owner == worker
    if act is Act.COMPLETE:
        return task.status is TaskStatus.COMPLETED and is_theirs
    if act is Act.CLAIM:
        return task.status is TaskStatus.IN_PROGRESS and task.owner == worker
    return task.status is TaskStatus.PENDING and not task.issue_key


def is_inside(path: str, limit: int) -> bool:
    """Whether a path stays in the folder that it is meant for, whatever that is."""
    return (
        len(path) <= limit
        and path.isprintable()
        and "\\" not in path
        and all(part not in ("", ".", "..") for part in path.split("/"))
    )


def free_keys(taken: Collection[str]) -> Iterator[str]:
    """Numbers from 1 that no task has, one after the other."""
    number = 0
    while True:
        number += 1
        if str(number) not in taken:
            yield str(number)
