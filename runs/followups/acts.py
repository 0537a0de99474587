"""What a person does with an ended run: go on with it, or have its pull request changed."""

from __future__ import annotations

from django.db import IntegrityError, transaction

from runs.core import writing
from runs.core.ports import Lab
from runs.core.refusal import ActRefused
from runs.core.states import AnswerCode
from runs.followups import facts, review, rules
from runs.models import Run, StartRequest


class FollowUpRefused(ActRefused):
    """Nothing was started; the text says why."""


def resume(lab: Lab, run: Run, text: str, *, by: str) -> StartRequest:
    """Ask for a run that goes on where this one ended, with a text for its agent.

    The launch pass of the worker answers. Asked again with the same words while that is not over,
    it is the same request. Raises FollowUpRefused.
    """
    said = _said(text)
    if not said:
        raise FollowUpRefused(rules.NO_TEXT, code="invalid", field="text")
    return _ask(lab, run, said, by, wants_changes=False)


def request_changes(lab: Lab, run: Run, text: str, *, by: str) -> StartRequest:
    """Ask for a run that changes the open pull request of this one.

    Its agent is told the text, and what was commented on the pull request since it last went on.
    Raises FollowUpRefused, TrackerError.
    """
    told = review.told(lab, run, _said(text))
    if not told:
        raise FollowUpRefused(rules.NO_CHANGES, code="invalid", field="text")
    return _ask(lab, run, told, by, wants_changes=True)


def _said(text: str) -> str:
    """What a person wrote, without what no text holds. Raises FollowUpRefused when it is too long."""
    said = readable(text)
    if len(said) > rules.TEXT_CHARACTERS:
        raise FollowUpRefused(rules.TOO_LONG, code="invalid", field="text")
    return said


def readable(text: str) -> str:
    """A text whose letters are all to be read; others are spaces."""
    lines = writing.clean(text)
    return "".join(c if c.isprintable() or c in "\n\t" else " " for c in lines).strip()


def _ask(lab: Lab, run: Run, told: str, by: str, *, wants_changes: bool) -> StartRequest:
    mine = StartRequest.objects.filter(
        continues=run, by=by, follow_up=told, wants_changes=wants_changes
    )
    before = mine.filter(answer__in=["", AnswerCode.STARTED]).select_related("run").last()
    if before is not None and (before.run is None or before.run.is_active):
        return before
    why = rules.why_not(facts.stored(lab, run), wants_changes=wants_changes)
    if why:
        raise FollowUpRefused(why, code="cannot_go_on")
    try:
        with transaction.atomic():
            asked = StartRequest.objects.create(
                project=run.project,
                wanted_key=run.issue_key,
                continues=run,
                follow_up=told,
                wants_changes=wants_changes,
                by=by,
                at=lab.now(),
            )
    except IntegrityError as error:
        other = StartRequest.objects.filter(continues=run, answer="").first()
        who = other.by if other is not None else "Somebody"
        text = f"{who} has asked for it in the same moment. Your text was not sent."
        raise FollowUpRefused(text, code="asked_already") from error
    lab.bell.look(run.project.slug)
    return asked
