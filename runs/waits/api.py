"""The answer to an agent that waits, over the API: the page's own act."""

from __future__ import annotations

from typing import Annotated

from django.http import HttpRequest
from pydantic import AwareDatetime, Field

from runs.api import replies
from runs.api import schemas as api_schemas
from runs.api.asked import NO_NUL, WHOLE, Given, RunId
from runs.api.router import Router
from runs.lifecycle.api import run_of, shown
from runs.loops import questions
from runs.waits import acts, closed_issues
from runs.web.access import username
from runs.web.refusals import INVALID, Denied
from runs.wiring import lab

router = Router(tags=["Runs"])
BOTH = "Give a text or a choice, not both."


class RunAnswer(Given):
    """An answer to what an agent has waited for since `since`: a text, or a choice.

    `since` is that of `waits`, so that no other question is answered; a choice needs the `mark` of
    `offers` too. With both nothing is sent.
    """

    since: Annotated[AwareDatetime, Field(strict=False)]
    text: Annotated[str, Field(max_length=acts.TEXT_CHARACTERS, pattern=NO_NUL)] = ""
    choice: Annotated[int, Field(ge=1, le=9), WHOLE] | None = None
    mark: Annotated[str, Field(max_length=16, pattern=NO_NUL)] = ""


@router.post(
    "/{int:run_id}/answer", response=replies.given(api_schemas.Run), summary="Answer a run"
)
def run_answer(request: HttpRequest, run_id: RunId, given: RunAnswer) -> api_schemas.Run:
    """Give an agent that waits for a person an answer: a text, or one of the choices it offers.

    One person's answer is sent, once, and only to the question that was seen. 409: it does not wait
    any more or asks something else (`not_waiting`), somebody has answered (`answered`), its dialog
    takes a choice and no text (`wants_a_choice`), or nobody knows whether it arrived (`unsure`).
    """
    found, by = run_of(run_id), username(request)
    if given.choice is not None and given.text:
        wrong = {"text": BOTH, "choice": BOTH}
        raise Denied(422, INVALID, f"text, choice: {BOTH} Nothing was sent.", wrong)
    if given.choice is None and found.is_loop:
        questions.answer(lab(), found, given.text, since=given.since, by=by)
    elif given.choice is None:
        acts.say(lab(), found, given.text, since=given.since, by=by)
    else:
        acts.choose(lab(), found, given.choice, since=given.since, mark=given.mark, by=by)
    return shown(run_id)


@router.post(
    "/{int:run_id}/interrupt", response=replies.act(api_schemas.Run), summary="Interrupt a run"
)
def run_interrupt(request: HttpRequest, run_id: RunId) -> api_schemas.Run:
    """Have the agent stop what it does and wait for a next word: Escape is sent to its session, once.

    409: it has nothing to do now (`not_working`), somebody has done it a moment ago (`answered`),
    it reads no keys (`no_keys`), or nobody knows whether the key arrived (`unsure`).
    """
    acts.interrupt(lab(), run_of(run_id), by=username(request))
    return shown(run_id)


@router.post(
    "/{int:run_id}/allow", response=replies.act(api_schemas.Run), summary="Let a run go on"
)
def run_allow(request: HttpRequest, run_id: RunId) -> api_schemas.Run:
    """Let a run go on though its issue was closed while its agent works.

    409 `not_asked`: the run has ended, or its issue is open again.
    """
    closed_issues.allow(lab(), run_of(run_id), by=username(request))
    return shown(run_id)
