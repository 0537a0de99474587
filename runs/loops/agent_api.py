"""What the runner of a loop and its agents ask over HTTP: the next turn, memories, tasks, guidance."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, JsonResponse
from pydantic import BaseModel, Field

from runs.agents.agent_api import answer, name_of
from runs.agents.api_door import door, shaped, texts
from runs.loops import acts, taking, turns
from runs.loops.results import Result
from runs.models import LoopMemory, LoopTask, Run
from runs.wiring import lab
from trackers.base import NotFound, TrackerError

AGAIN_SECONDS = 10.0
_STATES = {
    "done": LoopTask.State.CLOSED,
    "block": LoopTask.State.OPEN,
    "ready": LoopTask.State.READY,
}


class _Result(BaseModel):
    """How the process of a turn ended."""

    exit_code: int | None = Field(default=None, ge=-1, le=255)
    signal: int | None = Field(default=None, ge=1, le=64)
    trouble: str = Field(default="", max_length=2000)
    seconds: float = Field(default=0.0, ge=0, le=1e9)
    is_interrupted: bool = False


class _Report(BaseModel):
    """What a runner says when it asks what to do."""

    number: int = Field(ge=0, le=10**9)
    generation: int = Field(ge=0, le=10**9)
    result: _Result | None = None
    asks: str = Field(default="", max_length=20)


def _step(request: HttpRequest, run: Run) -> JsonResponse:
    sent = shaped(request, _Report)
    acts.of_run(run)
    result = None if sent.result is None else Result(**sent.result.model_dump())
    report = turns.Report(sent.number, sent.generation, result, sent.asks)
    try:
        found = turns.step(lab(), run, report)
    except TrackerError as error:
        why = lab().mask(f"its issue could not be read: {error}")
        return answer(do="wait", seconds=AGAIN_SECONDS, why=why)
    return answer(do=found.do, **found.content)


class _Next(BaseModel):
    """How long whoever asks for the next issue waits here."""

    seconds: float = Field(default=taking.LONGEST_ANSWER, ge=0, le=60)


def _next(request: HttpRequest, run: Run) -> JsonResponse:
    sent = shaped(request, _Next)
    found = taking.next_issue(lab(), run, name_of(run), sent.seconds)
    issue = found.issue
    if issue is None:
        return answer(state=found.state, text=found.text)
    loop = acts.of_run(run)
    return answer(
        state=found.state,
        text=found.text,
        key=issue.issue_key,
        title=issue.title,
        branch=issue.branch,
        objective=issue.objective or loop.objective,
    )


def _remember(request: HttpRequest, run: Run) -> JsonResponse:
    made = acts.remember(lab(), run, texts(request, "text")["text"], name_of(run))
    return answer(status=201, **_memory(made))


def _memories(request: HttpRequest, run: Run) -> JsonResponse:
    word = request.GET.get("q", "")[:200]
    return answer(memories=[_memory(one) for one in acts.memories(run.project_id, word)])


def _add_task(request: HttpRequest, run: Run) -> JsonResponse:
    made = acts.add_task(lab(), acts.of_run(run), texts(request, "text")["text"])
    return answer(status=201, **_task(made))


def _tasks(request: HttpRequest, run: Run) -> JsonResponse:
    return answer(tasks=[_task(one) for one in acts.of_run(run).tasks.all()])


def _set_task(request: HttpRequest, run: Run, number: int, word: str) -> JsonResponse:
    state = _STATES.get(word)
    if state is None:
        raise NotFound(f"There is no {word[:60]} here.")
    note = texts(request, "note")["note"]
    return answer(**_task(acts.set_task(lab(), acts.of_run(run), number, state, note)))


def _acknowledge(request: HttpRequest, run: Run) -> JsonResponse:
    return answer(acknowledged=acts.acknowledge(lab(), acts.of_run(run)))


step = door(POST=_step)
next_issue = door(POST=_next)
memories = door(GET=_memories, POST=_remember)
tasks = door(GET=_tasks, POST=_add_task)
task = door(POST=_set_task)
acknowledge = door(POST=_acknowledge)


def _memory(row: LoopMemory) -> dict[str, Any]:
    return {"id": row.pk, "text": row.text, "by": row.by, "at": row.at.isoformat()}


def _task(row: LoopTask) -> dict[str, Any]:
    return {"number": row.number, "text": row.text, "state": row.state, "note": row.note}
