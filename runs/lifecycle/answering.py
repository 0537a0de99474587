"""A person's answer to an agent that waits: given once, by one person, to the question they saw."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from django.db import transaction
from django.db.models import F, Q

from runs.core.ports import Lab, SeamError
from runs.core.refusal import ActRefused
from runs.core.states import NoticeKind
from runs.lifecycle import observe, reaper, wait_rules
from runs.models import Run
from runs.timeline import announce

TEXT_CHARACTERS = 4000
SHOWN_CHARACTERS = 300

NO_TEXT = "Write what the agent is to be told."
TOO_LONG = f"At most {TEXT_CHARACTERS:,} characters."
NOT_OFFERED = "The agent does not offer this choice any more. Nothing was sent."
ELSEWHERE = "Its session is on another machine. Nothing was sent."


class AnswerRefused(ActRefused):
    """The answer was not given, and nothing was sent."""


def say(lab: Lab, run: Run, text: str, *, since: datetime, by: str) -> None:
    """Give the agent a text, as an answer to what it waits for since `since`.

    Raises AnswerRefused, then nothing was sent.
    """
    lines = text.replace("\r\n", "\n")
    said = "".join(c if c.isprintable() or c == "\n" else " " for c in lines).strip()
    if not said:
        raise AnswerRefused(NO_TEXT, code="invalid", field="text")
    if len(said) > TEXT_CHARACTERS:
        raise AnswerRefused(TOO_LONG, code="invalid", field="text")
    _take(lab, run, said, since, by)
    _send(lab, run, lambda: lab.sessions.say(run.session, reaper.marker(lab, run), said))


def choose(lab: Lab, run: Run, digit: int, *, since: datetime, by: str) -> None:
    """Press the digit of a choice that the agent's screen offers. Raises AnswerRefused, as `say`."""
    found = {one.digit: one for one in wait_rules.choices(_screen(lab, run))}
    if digit not in found:
        raise AnswerRefused(NOT_OFFERED, code="not_waiting")
    _take(lab, run, f"{digit}. {found[digit].text}", since, by)
    _send(lab, run, lambda: lab.sessions.press(run.session, reaper.marker(lab, run), digit))


def offered(lab: Lab, run: Run) -> list[wait_rules.Choice]:
    """What a waiting agent offers to choose from; empty where that cannot be told."""
    try:
        return wait_rules.choices(_screen(lab, run))
    except SeamError:
        return []


def _screen(lab: Lab, run: Run) -> str:
    text = lab.sessions.screens([run.session]).get(run.session, "")
    return observe.plain(observe.tidy(text))


def _take(lab: Lab, run: Run, text: str, since: datetime, by: str) -> None:
    """Make this the one answer to the question, before it is sent: of two people one is let through.

    One whose screen did not change for a while after it got lost on its way, and may be given again.
    """
    if run.host != lab.host:
        raise AnswerRefused(ELSEWHERE)
    now, shown = lab.now(), lab.mask(text)[:SHOWN_CHARACTERS]
    is_lost = Q(answered_at__lte=now - wait_rules.LOST_AFTER, screen_at__lte=F("answered_at"))
    rows = Run.objects.working().exclude(waits="").filter(pk=run.pk, waits_at=since)
    with transaction.atomic():
        won = rows.filter(Q(answered_at=None) | is_lost).update(
            answer=shown, answered_by=by, answered_at=now
        )
        if not won:
            raise _refusal(run)
        announce.tell(lab, NoticeKind.RUN_ANSWERED, f"answered: {shown}", run=run, by=by)


def _refusal(run: Run) -> AnswerRefused:
    """Why an answer came too late, from the row as it is now."""
    run.refresh_from_db()
    if not run.is_waiting:
        return AnswerRefused("It does not wait any more. Nothing was sent.", code="not_waiting")
    if run.answered_at is not None:
        text = f"{run.answered_by} has answered it already: {run.answer}. Nothing more was sent."
        return AnswerRefused(text, code="answered")
    return AnswerRefused("It asks something else by now. Nothing was sent.", code="not_waiting")


def _send(lab: Lab, run: Run, give: Callable[[], None]) -> None:
    try:
        give()
    except SeamError as error:
        text = f"not sent: {lab.mask(str(error))}"
        with transaction.atomic():
            Run.objects.filter(pk=run.pk).update(answer="", answered_by="", answered_at=None)
            announce.tell(lab, NoticeKind.RUN_STEP, text, run=run)
        raise AnswerRefused(f"It was {text}. The agent was left as it is.") from error
