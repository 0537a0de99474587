"""How the answer to a start request reaches whoever asked: a status and a sentence."""

from __future__ import annotations

from collections.abc import Mapping

from runs.core.states import AnswerCode
from runs.models import StartRequest

STATUS: Mapping[AnswerCode, int] = {
    AnswerCode.PENDING: 202,
    AnswerCode.STARTED: 200,
    AnswerCode.NOTHING_READY: 409,
    AnswerCode.AT_CAP: 409,
    AnswerCode.NO_HOST: 409,
    AnswerCode.NO_TRACKER: 400,
    AnswerCode.NOT_READY: 409,
    AnswerCode.TRACKER_FAILED: 502,
    AnswerCode.SEAM_FAILED: 500,
    AnswerCode.LOGGED_OUT: 409,
    AnswerCode.NO_PROGRAM: 409,
    AnswerCode.AGENT_HELD: 409,
    AnswerCode.CANNOT_GO_ON: 409,
    AnswerCode.OVER_LIMIT: 409,
    AnswerCode.START_FAILED: 500,
    AnswerCode.EXPIRED: 503,
}
WAITING = (
    "The worker has not answered yet. Your start is written down and is carried out as soon as the "
    "worker looks; nothing has to be pressed again."
)


def text(asked: StartRequest) -> str:
    """The answer as a sentence."""
    if asked.answer != AnswerCode.STARTED:
        return asked.text or WAITING
    run = asked.run
    if run is None:
        return "A run was started."
    where = f" in slot {run.slot}" if run.slot else ""
    if run.continues_id is not None:
        return f"Run {run.pk} goes on with issue {run.issue_key} of {asked.project.name}{where}."
    return f"An agent takes issue {run.issue_key} of {asked.project.name}{where}."
