"""What agents keep during a loop and what people ask of one: memories, tasks, guidance, stop, restart."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.db.models import F, Max

from runs.core import lenient_json
from runs.core.ports import Lab
from runs.core.refusal import ActRefused
from runs.core.states import NoticeKind, Wait
from runs.loops.rules import End
from runs.models import Loop, LoopGuidance, LoopMemory, LoopTask, Run
from runs.timeline import announce

MOST_TEXT = 4000
MOST_FOUND = 100
MOST_TASKS = 1000
MOST_MEMORIES = 1000
NO_LOOP = "This run is no loop. Nothing was stored."
IS_OVER = "This loop has ended. Nothing was sent."
NO_TEXT = "Write a text."
TOO_LONG = f"At most {MOST_TEXT:,} characters."
ALREADY = "{} has asked for it already."
MANY_MEMORIES = (
    f"A project keeps at most {MOST_MEMORIES:,} memories. Nothing was stored. A person can remove old "
    "ones on the page Loops of the project; what this loop needs belongs into its scratchpad."
)
MANY_TASKS = f"A loop keeps at most {MOST_TASKS:,} tasks. Nothing was stored."


class LoopRefused(ActRefused):
    """It was not done; the text says why."""


def of_run(run: Run) -> Loop:
    """The loop of a run. Raises LoopRefused."""
    found = Loop.objects.filter(run=run).first()
    if found is None:
        raise LoopRefused(NO_LOOP, code="no_loop")
    found.run = run
    return found


def remember(lab: Lab, run: Run, text: str, by: str) -> LoopMemory:
    """Keep a text for all later runs of the project, once a run. Raises LoopRefused, also when full."""
    said = checked_text(lab, text)
    before = LoopMemory.objects.filter(run=run, text=said).first()
    if before is not None:  # a lost answer makes an agent ask again
        return before
    check_room(run.project_id)
    return LoopMemory.objects.create(
        project_id=run.project_id, run=run, text=said, by=by, at=lab.now()
    )


def check_room(project_id: int) -> None:
    """Raises LoopRefused where a project has as many memories as it keeps."""
    if LoopMemory.objects.filter(project_id=project_id).count() >= MOST_MEMORIES:
        raise LoopRefused(MANY_MEMORIES, code="too_many")


def memories(project_id: int, word: str = "") -> list[LoopMemory]:
    """A project's memories, the newest first; with `word` those that have it, in any case of letters."""
    rows = LoopMemory.objects.filter(project_id=project_id)
    if word.strip():
        rows = rows.filter(text__icontains=word.strip())
    return list(rows[:MOST_FOUND])


def add_task(lab: Lab, loop: Loop, text: str) -> LoopTask:
    """Keep a task of the loop under the next number; one that is open already as it is.

    Raises LoopRefused.
    """
    said = checked_text(lab, text)
    with transaction.atomic():
        _touch(loop)  # so that of two at once each has a number of its own
        before = loop.tasks.filter(text=said).exclude(state=LoopTask.State.CLOSED).first()
        if before is not None:
            return before
        last = loop.tasks.aggregate(last=Max("number"))["last"] or 0
        if last >= MOST_TASKS:
            raise LoopRefused(MANY_TASKS, code="too_many")
        return LoopTask.objects.create(loop=loop, number=last + 1, text=said, at=lab.now())


def set_task(lab: Lab, loop: Loop, number: int, state: LoopTask.State, note: str = "") -> LoopTask:
    """Close a task, block it or make it ready again; safe to repeat. Raises LoopRefused."""
    found = loop.tasks.filter(number=number).first()
    if found is None:
        raise LoopRefused(f"There is no task {number} in this loop.", code="not_found")
    found.state, found.note = state, lab.mask(lenient_json.text(note))[:300]
    found.closed_at = lab.now() if state == LoopTask.State.CLOSED else None
    found.save(update_fields=["state", "note", "closed_at"])
    return found


def acknowledge(lab: Lab, loop: Loop) -> int:
    """An agent confirms the guidance that it was given; how many pieces that were."""
    rows = loop.guidance.filter(acknowledged_at=None, given_in__isnull=False)
    with transaction.atomic():
        count = rows.update(acknowledged_at=lab.now())
        if count:
            announce.tell(lab, NoticeKind.LOOP_STEP, "guidance was acknowledged", run=loop.run)
    return count


def guide(lab: Lab, run: Run, text: str, *, by: str) -> LoopGuidance:
    """Tell the loop something; its next prompt has it, and a wait before that turn is cut short.

    Raises LoopRefused.
    """
    loop = _open(run)
    said = checked_text(lab, text)
    with transaction.atomic():
        made = LoopGuidance.objects.create(loop=loop, text=said, by=by, at=lab.now())
        # Any word of a person is the answer to what was asked.
        asked = Run.objects.filter(pk=run.pk, asks=Wait.QUESTION)
        asked.update(asks="", asked_at=None, question="")
        first = said.partition("\n")[0][:200]
        announce.tell(lab, NoticeKind.LOOP_GUIDED, f"guidance: {first}", run=run, by=by)
    lab.sessions.wake(loop.folder(lab.paths))
    return made


def ask_stop(lab: Lab, run: Run, *, by: str) -> None:
    """Have the loop end when its turn is over. Raises LoopRefused, also when somebody has asked."""
    _ask(lab, run, End.STOPPED, by)


def ask_restart(lab: Lab, run: Run, *, by: str) -> None:
    """Have the loop begin anew when its turn is over; memories and guidance stay. Raises LoopRefused."""
    _ask(lab, run, End.RESTART, by)


def _ask(lab: Lab, run: Run, wish: End, by: str) -> None:
    loop = _open(run)
    name = "stop" if wish is End.STOPPED else "restart"
    rows = Loop.objects.filter(pk=loop.pk, end="", **{f"{name}_asked_at": None})
    asked = {f"{name}_asked_at": lab.now(), f"{name}_asked_by": by}
    with transaction.atomic():
        if not rows.update(**asked, version=F("version") + 1):
            loop.refresh_from_db()
            if loop.end:
                raise LoopRefused(IS_OVER, code="ended")
            raise LoopRefused(ALREADY.format(getattr(loop, f"{name}_asked_by")), code="already")
        announce.tell(
            lab, NoticeKind.LOOP_STEP, f"{name} after this turn was asked for", run=run, by=by
        )
    lab.sessions.wake(loop.folder(lab.paths))


def _open(run: Run) -> Loop:
    loop = of_run(run)
    if loop.end or not run.is_active:
        raise LoopRefused(IS_OVER, code="ended")
    return loop


def checked_text(lab: Lab, text: str) -> str:
    """A text as it is stored: masked, not blank and not too long. Raises LoopRefused."""
    said = lab.mask(lenient_json.text(text)).strip()
    if not said:
        raise LoopRefused(NO_TEXT, code="invalid", field="text")
    if len(said) > MOST_TEXT:
        raise LoopRefused(TOO_LONG, code="invalid", field="text")
    return said


def _touch(loop: Loop) -> None:
    Loop.objects.filter(pk=loop.pk).update(version=F("version") + 1)


def texts(found: Sequence[LoopMemory]) -> list[str]:
    """The words of memories."""
    return [one.text for one in found]
