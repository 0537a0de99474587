"""Start requests and the launch pass that answers them: the only way to a slot and an issue."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from runs.core import budgets, writing
from runs.core.database import prepared, prepared_with_keys
from runs.core.ports import Lab
from runs.core.states import AnswerCode, NoticeKind, RunKind, RunState
from runs.core.tick_context import TickContext
from runs.dispatch import facts, further, reserve
from runs.dispatch.rules import Refusal, Start, decide_start
from runs.forges import tracker_cache
from runs.models import Project, Run, StartRequest
from runs.timeline import announce
from trackers.account import awaited

PATIENCE = further.PATIENCE
# Between two looks for an answer: most come at once, and one that does not is not looked for as often.
STEP_SECONDS, LONGEST_STEP, SLOWER = 0.02, 0.2, 1.2
# After the reason, while a request waits for what nobody could tell.
TRIED_AGAIN = "It is tried again for up to two minutes from when it was asked for; nothing has to be pressed again."


def request(
    lab: Lab,
    project: Project,
    by: str,
    wanted: str = "",
    loop_options: Mapping[str, Any] | None = None,
) -> StartRequest:
    """Ask for a run; the launch pass of the worker answers. `wanted` names one issue.

    `loop_options` are over the project's loop settings, for this run alone.
    """
    asked = StartRequest.objects.create(
        project=project,
        by=by,
        wanted_key=writing.clean(wanted)[:60],
        at=lab.now(),
        loop_options=dict(loop_options or {}),
    )
    lab.bell.look(project.slug)
    return asked


def withdraw(asked: StartRequest) -> bool:
    """Take a request back; False when it was answered before, and its run may have begun."""
    return bool(StartRequest.objects.filter(pk=asked.pk, answer="").delete()[0])


def wait(lab: Lab, asked: StartRequest, seconds: float = 5.0) -> StartRequest:
    """The request as it stands once it is answered and its run no longer starts, or time is up.

    At once where it waits for what nobody could tell: its text says so.
    """
    left, step = seconds, min(seconds, STEP_SECONDS)
    while True:
        found = _with_run().rows(keys=[asked.pk])
        if not found:
            raise StartRequest.DoesNotExist
        asked = found[0]
        is_open = asked.answer == AnswerCode.PENDING and not asked.text
        if not is_open and (asked.run is None or asked.run.state != RunState.STARTING):
            return asked
        if left <= 0:
            return asked
        lab.pause(step)
        left -= step
        step = min(step * SLOWER, LONGEST_STEP, left)


@prepared_with_keys(1)
def _with_run(_now: datetime, request: int) -> QuerySet[StartRequest]:
    rows = StartRequest.objects.select_related("run", "run__project", "project")
    return rows.filter(pk=request)


def launch_pass(tick: TickContext) -> int:
    """Answer every waiting request, oldest first; how many runs were put into *starting*.

    Runs under the lease of a tick, whose number it checks before each answer and with each row,
    so that no two passes overlap. Raises lease.Lost; what was answered before stays.
    """
    silent: dict[int, str] = {}
    return sum([_answer(tick, asked, silent) for asked in _waiting(tick.lab.host).rows()])


@prepared
def _waiting(_now: datetime, host: str) -> QuerySet[StartRequest]:
    return (
        StartRequest.objects.filter(answer="", continues=None)
        .filter(Q(takes_for=None) | Q(takes_for__host=host))
        .select_related("project", "project__agent", "takes_for")
        .order_by("pk")
    )


def refuse(lab: Lab, asked: StartRequest, refusal: Refusal) -> None:
    """Answer with a reason; it is on the timeline too, since the asker may be gone."""
    with transaction.atomic():
        if StartRequest.objects.filter(pk=asked.pk, answer="").update(
            answer=refusal.code, text=refusal.text
        ):
            announce.tell(
                lab, NoticeKind.START_REFUSED, refusal.text, project=asked.project, by=asked.by
            )


def not_now(lab: Lab, asked: StartRequest, refusal: Refusal) -> None:
    """Refuse, or leave it to the next passes where one of them may be told what this one was not."""
    if not refusal.may_pass:
        refuse(lab, asked, refusal)
        return
    text = f"{refusal.text} {TRIED_AGAIN}"
    StartRequest.objects.filter(pk=asked.pk, answer="").update(text=text)


def is_late(lab: Lab, asked: StartRequest, button: str) -> bool:
    """Whether a request waited too long to be carried out unseen; then it is answered so."""
    if budgets.age(lab.now(), asked.at) <= PATIENCE:
        return False
    if asked.text:
        why, code = asked.text.removesuffix(f" {TRIED_AGAIN}"), AnswerCode.SEAM_FAILED
    else:
        why = "The worker was away when this start was asked for, so nothing was started."
        code = AnswerCode.EXPIRED
    refuse(lab, asked, Refusal(code, f"{why} Press {button} again."))
    return True


def take(tick: TickContext, asked: StartRequest, start: Start, title: str, **more: Any) -> bool:
    """Store the run that was asked for, with the answer to its request; False when nothing came of it.

    `more` is what else `reserve.Asked` is to know. Raises lease.Lost.
    """

    def confirm(run: Run) -> bool:
        open_request = StartRequest.objects.filter(pk=asked.pk, answer="")
        return bool(open_request.update(answer=AnswerCode.STARTED, text="", run=run))

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
    if asked.takes_for is not None:
        further.answer(tick, asked, asked.takes_for, silent)
        return False
    if is_late(lab, asked, "Start"):
        return False
    room = reserve.room(lab, settings, tick.sightings, tick.being_made)
    if room.is_elsewhere(asked.project.job):
        return False  # that host answers
    # Asked fresh: ready issues of the tracker, claims of git.
    began = lab.now()
    with awaited():
        (queue,) = facts.gather(lab, settings, [asked.project], asked.wanted_key, silent)
    tracker_cache.keep_queues(lab, [asked.project], [queue], began)
    decision = decide_start(queue, room)
    if isinstance(decision, Refusal):
        not_now(lab, asked, decision)
        return False
    title = next((one.title for one in queue.ready or () if one.key == decision.key), "")
    return take(tick, asked, decision, title)
