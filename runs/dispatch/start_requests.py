"""Start requests and the launch pass that answers them: the only way to a slot and an issue."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction

from runs.core import budgets, writing
from runs.core.ports import Lab
from runs.core.states import AnswerCode, NoticeKind, RunKind, RunState
from runs.core.tick_context import TickContext
from runs.dispatch import facts, reserve
from runs.dispatch.rules import Refusal, Start, decide_start
from runs.forges import tracker_cache
from runs.models import Project, Run, StartRequest
from runs.timeline import announce
from trackers.account import awaited

PATIENCE = timedelta(minutes=2)
STEP_SECONDS = 0.02


def request(lab: Lab, project: Project, by: str, wanted: str = "") -> StartRequest:
    """Ask for a run; the launch pass of the worker answers. `wanted` names one issue."""
    key = writing.clean(wanted)[:60]
    asked = StartRequest.objects.create(project=project, by=by, wanted_key=key, at=lab.now())
    lab.bell.look(project.slug)
    return asked


def wait(lab: Lab, asked: StartRequest, seconds: float = 5.0) -> StartRequest:
    """The request as it stands once it is answered and its run no longer starts, or time is up."""
    for _ in range(max(1, int(seconds / STEP_SECONDS))):
        asked = StartRequest.objects.select_related("run", "run__project", "project").get(
            pk=asked.pk
        )
        is_open = asked.answer == AnswerCode.PENDING
        if not is_open and (asked.run is None or asked.run.state != RunState.STARTING):
            return asked
        lab.pause(STEP_SECONDS)
    return asked


def launch_pass(tick: TickContext) -> int:
    """Answer every waiting request, oldest first; how many runs were put into *starting*.

    Runs under the lease of a tick, whose number it checks before each answer and with each row,
    so that no two passes overlap. Raises lease.Lost; what was answered before stays.
    """
    silent: dict[int, str] = {}
    waiting = (
        StartRequest.objects.filter(answer="", continues=None)
        .select_related("project", "project__agent")
        .order_by("pk")
    )
    return sum([_answer(tick, asked, silent) for asked in waiting])


def refuse(lab: Lab, asked: StartRequest, refusal: Refusal) -> None:
    """Answer with a reason; it is on the timeline too, since the asker may be gone."""
    with transaction.atomic():
        if StartRequest.objects.filter(pk=asked.pk, answer="").update(
            answer=refusal.code, text=refusal.text
        ):
            announce.tell(
                lab, NoticeKind.START_REFUSED, refusal.text, project=asked.project, by=asked.by
            )


def is_late(lab: Lab, asked: StartRequest, button: str) -> bool:
    """Whether a request waited too long to be carried out unseen; then it is answered so."""
    if budgets.age(lab.now(), asked.at) <= PATIENCE:
        return False
    text = (
        "The worker was away when this start was asked for, so nothing was started. "
        f"Press {button} again."
    )
    refuse(lab, asked, Refusal(AnswerCode.EXPIRED, text))
    return True


def take(tick: TickContext, asked: StartRequest, start: Start, title: str, **more: Any) -> bool:
    """Store the run that was asked for, with the answer to its request; False when nothing came of it.

    `more` is what else `reserve.Asked` is to know. Raises lease.Lost.
    """

    def confirm(run: Run) -> bool:
        open_request = StartRequest.objects.filter(pk=asked.pk, answer="")
        return bool(open_request.update(answer=AnswerCode.STARTED, run=run))

    who = reserve.Asked(RunKind.MANUAL, asked.by, asked.at, confirm, **more)
    try:
        run = reserve.take(tick, asked.project, start, title, who)
    except IntegrityError:
        text = f"Issue {start.key} was taken by another start in the same moment."
        refuse(tick.lab, asked, Refusal(AnswerCode.NOTHING_READY, text))
        return False
    except reserve.NotWantedAnyMore:
        return False
    tick.being_made.add(run.session)
    return True


def _answer(tick: TickContext, asked: StartRequest, silent: dict[int, str]) -> bool:
    """`silent` are the projects whose tracker gave no answer in this pass, with its words."""
    lab, settings = tick.lab, tick.settings
    tick.keep_lease()
    if is_late(lab, asked, "Start"):
        return False
    # Asked fresh: ready issues of the tracker, claims of git.
    began = lab.now()
    with awaited():
        (queue,) = facts.gather(lab, settings, [asked.project], asked.wanted_key, silent)
    tracker_cache.keep_queues(lab, [asked.project], [queue], began)
    decision = decide_start(queue, reserve.room(lab, settings, tick.sightings, tick.being_made))
    if isinstance(decision, Refusal):
        refuse(lab, asked, decision)
        return False
    title = next((one.title for one in queue.ready or () if one.key == decision.key), "")
    return take(tick, asked, decision, title)
