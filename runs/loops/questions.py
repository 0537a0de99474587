"""What agents of a loop ask a person: who answers, and that the loop goes on when nobody does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from runs.core import writing
from runs.core.ports import Lab
from runs.core.states import LoopState, NoticeKind, Wait
from runs.loops import acts, events
from runs.loops.acts import LoopRefused
from runs.loops.events import Event
from runs.models import Loop, LoopGuidance, Run
from runs.timeline import announce

PRESET = 600  # of loops that began before there were questions
MOST_SHOWN = 300
# The API tells times in milliseconds.
TOLD_WITHIN = timedelta(milliseconds=1)
ANSWER = "To your question “{}”:\n{}"
NOBODY = "nobody answered its question in time; it goes on without"
GONE_ON = "It does not wait any more. Nothing was sent."
_NOTHING_ASKED = {"asks": "", "asked_at": None, "question": ""}


def ask(lab: Lab, loop: Loop, told: Sequence[Event]) -> dict[str, Any]:
    """Have the run wait for a person when its turn asked one; the columns of the loop that do so."""
    question = events.question(told)
    if not question:
        return {}
    shown = " ".join(question.split())[:MOST_SHOWN]
    now, seconds = lab.now(), int(loop.terms.get("answer_seconds", PRESET))
    asked = {"asks": Wait.QUESTION, "asked_at": now, "question": shown}
    Run.objects.active().filter(pk=loop.run_id).update(**asked)
    loop.run.asks, loop.run.asked_at = Wait.QUESTION, now
    announce.tell(lab, NoticeKind.LOOP_STEP, f"asks a person: {shown}", run=loop.run)
    why = f"it waits up to {seconds} s for an answer of a person"
    until = now + timedelta(seconds=seconds)
    return {"state": LoopState.BETWEEN, "not_before": until, "why": why}


def unanswered(loop: Loop, guidance: Sequence[LoopGuidance]) -> str:
    """What the newest turn asked and nobody has answered; any word of a person is an answer."""
    last = loop.turns.filter(generation=loop.generation).only("events", "ended_at").first()
    if last is None or last.ended_at is None:
        return ""
    ended_at = last.ended_at
    question = events.question(Event(**one) for one in last.events)
    return "" if any(one.at >= ended_at for one in guidance) else question


def is_told(loop: Loop) -> bool:
    """Whether a person has told the next turn something; while it asks, since it asked."""
    new = loop.guidance.filter(acknowledged_at=None, given_in=None)
    if loop.run.asks == Wait.QUESTION and loop.run.asked_at is not None:
        new = new.filter(at__gte=loop.run.asked_at)
    return new.exists()


def drop(lab: Lab, run: Run, unanswered: str = "") -> None:
    """The run waits for nobody any more; told where nobody answered."""
    Run.objects.filter(pk=run.pk, asks=Wait.QUESTION).update(**_NOTHING_ASKED)
    if unanswered:
        announce.tell(lab, NoticeKind.LOOP_STEP, NOBODY, run=run)


def answer(lab: Lab, run: Run, text: str, *, since: datetime, by: str) -> LoopGuidance:
    """Answer what a loop waits for since then: it is guidance of the next prompt, with its question.

    Of two people one answers. Raises LoopRefused.
    """
    said = acts.checked_text(lab, text)
    with transaction.atomic():
        rows = Run.objects.working().filter(pk=run.pk, is_loop=True)
        now = rows.filter(waits_at__range=(since - TOLD_WITHIN, since + TOLD_WITHIN)).first()
        if now is None:
            raise LoopRefused(GONE_ON, code="not_waiting")
        if now.waits == Wait.QUESTION:
            told = {"answer": said[:MOST_SHOWN], "answered_by": by, "answered_at": lab.now()}
            mine = rows.filter(asks=Wait.QUESTION, asked_at=now.asked_at)
            if now.asked_at is None or not mine.update(**_NOTHING_ASKED, **told):
                raise LoopRefused(_who_was_first(run), code="answered")
            room = acts.MOST_TEXT - len(ANSWER.format("", said))
            if room > 0:  # the answer goes before the words of the question
                said = ANSWER.format(writing.one_line(now.question, room), said)
        return acts.guide(lab, now, said, by=by)


def _who_was_first(run: Run) -> str:
    run.refresh_from_db()
    if run.answered_at is None:
        return GONE_ON
    return f"{run.answered_by} has answered it already: {run.answer}. Nothing more was sent."
