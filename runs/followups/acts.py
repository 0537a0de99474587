"""What a person does with an ended run: go on with it, or have its pull request changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q

from runs.core import writing
from runs.core.ports import Lab
from runs.core.refusal import ActRefused
from runs.core.states import AnswerCode
from runs.dispatch import facts as dispatch_facts
from runs.dispatch import reserve, start_requests
from runs.dispatch.rules import Refusal, decide_start
from runs.followups import facts, loop_rules, review, rules
from runs.followups.rules import Ended
from runs.kept import discard
from runs.loops import options
from runs.models import Discarding, Run, Settings, StartRequest


class FollowUpRefused(ActRefused):
    """Nothing was started; the text says why."""


def resume(
    lab: Lab,
    run: Run,
    text: str,
    *,
    by: str,
    as_loop: bool = False,
    loop_options: Mapping[str, Any] | None = None,
) -> StartRequest:
    """Ask for a run that goes on where this one ended, with a text for its agent.

    The launch pass of the worker answers. Asked again with the same words while that is not over,
    it is the same request. `as_loop`: by turns that each begin anew, in place of its own session.
    `loop_options` as for a start. Raises FollowUpRefused.
    """
    said = _said(text)
    if not said:
        raise FollowUpRefused(rules.NO_TEXT, code="invalid", field="text")
    is_loop = as_loop or facts.was_taken_up(run)
    wanted = {**(options.AS_LOOP if is_loop else {}), **(loop_options or {})}
    before = _same(run, by, wants_changes=False, follow_up=said)
    if before is not None and options.is_loop(before.loop_options) == is_loop:
        return before
    why = rules.why_not(facts.stored(lab, run), wants_changes=False)
    if why:
        raise FollowUpRefused(why, code="cannot_go_on")
    if as_loop and (why := loop_rules.why_not(facts.take_up(run))):
        raise FollowUpRefused(why, code="invalid", field="as_loop")
    return _ask(lab, run, said, by, wants_changes=False, loop_options=wanted)


def request_changes(
    lab: Lab, run: Run, text: str, *, by: str, read_output: Callable[[], str] = str
) -> StartRequest:
    """Ask for a run that changes the open pull request of this one.

    Its agent is told the text, and what was commented on the pull request since it last went on.
    The same text of the same person is asked for once, whatever `read_output` gives to be told
    below it; that is called only where it is asked for. Raises FollowUpRefused, TrackerError.
    """
    said = _said(text)
    before = _same(run, by, wants_changes=True, follow_up__contains=said)
    if before is not None:
        return before
    _check(facts.stored(lab, run), only_run=True)
    # Which pull request is open the tracker knows: somebody may have opened another one by hand.
    found = facts.asked(lab, run)
    _check(found)
    output = readable(read_output())
    told = review.told(lab, run, found.pull or 0, f"{said}\n\n{output}" if output else said)
    if not told:
        raise FollowUpRefused(rules.NO_CHANGES, code="invalid", field="text")
    return _ask(lab, run, told, by, wants_changes=True, loop_options={})


def _check(found: Ended, *, only_run: bool = False) -> None:
    """Raises FollowUpRefused where no changes can be asked for."""
    why = (rules.of_run if only_run else rules.why_not)(found, wants_changes=True)
    if why:
        raise FollowUpRefused(why, code="cannot_go_on")


def _same(run: Run, by: str, **words: object) -> StartRequest | None:
    """The same request of the same person, while it is not over."""
    mine = StartRequest.objects.filter(continues=run, by=by, **words)
    found = mine.filter(answer__in=["", AnswerCode.STARTED]).select_related("run").last()
    return found if found is not None and (found.run is None or found.run.is_active) else None


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


def _ask(lab: Lab, run: Run, told: str, by: str, **more: Any) -> StartRequest:
    try:
        with transaction.atomic():
            asked = StartRequest.objects.create(
                project=run.project,
                wanted_key=run.issue_key,
                continues=run,
                follow_up=told,
                by=by,
                at=lab.now(),
                **more,
            )
    except IntegrityError as error:
        other = StartRequest.objects.filter(continues=run, answer="").first()
        who = other.by if other is not None else "Somebody"
        text = f"{who} has asked for it in the same moment. Your text was not sent."
        raise FollowUpRefused(text, code="asked_already") from error
    lab.bell.look(run.project.slug)
    return asked


def retry(lab: Lab, run: Run, *, by: str) -> Discarding:
    """Have the issue of an ended run started anew: what the run left is discarded first.

    The worker discards, rescued as always, and asks for the new run in the same transaction; killed
    in between, it goes on where it stopped. Raises FollowUpRefused before anything is removed where
    no run could start, and DiscardRefused, SeamError.
    """
    why = rules.why_not_retry(facts.stored(lab, run))
    if not why and (said := discard.accepted(run.project, run.branch)):
        why = f"{said} Nothing was discarded. Discard it under Parked if that is what you want."
    why = why or _why_no_start(lab, run)
    if why:
        raise FollowUpRefused(why, code="cannot_retry")
    try:
        with transaction.atomic():
            Discarding.objects.filter(project=run.project, branch=run.branch).exclude(
                error=""
            ).delete()
            row = Discarding.objects.create(
                project=run.project,
                branch=run.branch,
                by=by,
                restarts=run.issue_key,
                asked_at=lab.now(),
            )
    except IntegrityError as error:
        text = (
            f"{run.branch} is being discarded already, by somebody who pressed in the same moment."
        )
        raise FollowUpRefused(text, code="asked_already") from error
    lab.queue.discard(row.pk)
    return row


def _why_no_start(lab: Lab, run: Run) -> str:
    """Why no run of the issue could start even if nothing claimed it; empty when one could."""
    key, settings = run.issue_key, Settings.current()
    (queue,) = dispatch_facts.gather(lab, settings, [run.project], key)
    free = None if queue.claims is None else set(queue.claims) - {key}
    queue = replace(queue, claims=free, left=())
    room = reserve.room(lab, settings, lab.sessions.look())
    decision = decide_start(queue, room)
    return decision.text if isinstance(decision, Refusal) else ""


def retried(lab: Lab, run: Run, row: Discarding, seconds: float = 5.0) -> StartRequest | Discarding:
    """What came of a retry: the request for its run once the work is discarded, else how it stands."""
    wanted = StartRequest.objects.filter(
        project=row.project, wanted_key=row.restarts, by=row.by, at__gte=row.asked_at
    )
    wanted = wanted.filter(Q(run=None) | Q(run__pk__gt=run.pk))
    for _ in range(max(1, int(seconds / start_requests.STEP_SECONDS))):
        asked = wanted.order_by("-pk").first()
        if asked is not None:
            return asked
        fresh = Discarding.objects.filter(pk=row.pk).first()
        if fresh is not None and fresh.error:
            return fresh
        lab.pause(start_requests.STEP_SECONDS)
    return row
