"""The launch pass's answer to a loop that stays and asks for its next issue: it has its slot already."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from django.db import IntegrityError, transaction

from runs.core import budgets
from runs.core.effects import IssueTaken
from runs.core.ports import Lab
from runs.core.states import AnswerCode, NoticeKind, RunKind, RunState
from runs.core.tick_context import TickContext
from runs.dispatch import facts
from runs.dispatch.eligibility import Queue
from runs.dispatch.rules import Refusal, pick_further
from runs.forges import tracker_cache
from runs.models import Run, StartRequest
from runs.projects import start_waits
from runs.timeline import announce
from trackers.account import awaited

PATIENCE = timedelta(minutes=2)
IS_OVER = "This loop has ended, so it takes no further issue."
AWAY = "The worker was away when this was asked for, so nothing was claimed."


class _Dropped(Exception):
    """The request was answered or its run ended meanwhile; nothing was stored."""


def answer(tick: TickContext, asked: StartRequest, run: Run, silent: dict[int, str]) -> None:
    """Claim the next issue for a run that works, or say why not. Raises lease.Lost.

    The choice is that of any start: of a person's, or of automatic work where the run is of it.
    """
    lab = tick.lab
    if not run.is_active:
        refuse(asked, Refusal(AnswerCode.CANNOT_GO_ON, IS_OVER))
        return
    if budgets.age(lab.now(), asked.at) > PATIENCE:
        refuse(asked, Refusal(AnswerCode.EXPIRED, AWAY))
        return
    is_auto = run.kind == RunKind.AUTO
    began, projects = lab.now(), [asked.project]
    with awaited():
        (queue,) = facts.gather(
            lab, tick.settings, projects, "", silent, of_all=True, is_auto=is_auto
        )
    tracker_cache.keep_queues(lab, projects, [queue], began)
    found = pick_further(_of_loop(queue, asked), is_auto=is_auto)
    if isinstance(found, Refusal):
        refuse(asked, found)
        return
    title = next((one.title for one in queue.ready or () if one.key == found), "")
    try:
        _take(tick, asked, run, IssueTaken(run.pk, found, title))
    except IntegrityError:
        text = f"Issue {found} was taken by another start in the same moment."
        refuse(asked, Refusal(AnswerCode.NOTHING_READY, text))
    except _Dropped:
        return


def refuse(asked: StartRequest, refusal: Refusal) -> None:
    """Answer with a reason. It is on no timeline: a loop without work asks every few minutes."""
    rows = StartRequest.objects.filter(pk=asked.pk, answer="")
    rows.update(answer=refusal.code, text=refusal.text)


def _of_loop(queue: Queue, asked: StartRequest) -> Queue:
    """Without what the loop has had."""
    if queue.ready is None:
        return queue
    return replace(queue, ready=[one for one in queue.ready if one.key not in asked.without])


def _take(tick: TickContext, asked: StartRequest, run: Run, taken: IssueTaken) -> None:
    """The run's row names the issue from here on, which keeps every other start out.

    Raises IntegrityError when another run has it, _Dropped, lease.Lost.
    """
    lab: Lab = tick.lab
    with transaction.atomic():
        tick.keep_lease()
        rows = Run.objects.active().filter(pk=run.pk, state=RunState.WORKING, is_loop=True)
        # `mirrored` says until the issue is begun that the one before was written.
        names = {"issue_key": taken.issue_key, "issue_title": taken.title}
        gone = {"pull_number": None, "pull_url": "", "pull_state": ""}
        open_request = StartRequest.objects.filter(pk=asked.pk, answer="")
        if not open_request.update(answer=AnswerCode.STARTED, text="") or not rows.update(
            **names, **gone
        ):
            raise _Dropped
        start_waits.forget(run.project_id, taken.issue_key)
        run.refresh_from_db()
        announce.tell(lab, NoticeKind.RUN_STEP, f"takes issue {taken.issue_key} next", run=run)
        for effect in lab.effects.issue_taken:
            effect(lab, taken)
