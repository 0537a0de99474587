"""A person's answer to an agent that waits: given once, by one person, to the question they saw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction
from django.db.models import Q

from runs.core.ports import DOWN, ENTER, ESCAPE, STOP_AGENTS, UP, Lab, MaybeGiven, SeamError
from runs.core.refusal import ActRefused
from runs.core.states import NoticeKind, RunState, Wait
from runs.lifecycle.querysets import RunQuerySet
from runs.models import Run
from runs.timeline import announce
from runs.transcript import hook_events, screens
from runs.waits import rules
from runs.waits.rules import Choice, Dialog

TEXT_CHARACTERS = 4000
STEP_SECONDS, MOVED_WITHIN = 0.1, 3.0
# The API tells times in milliseconds.
TOLD_WITHIN = timedelta(milliseconds=1)
SHOWN_CHARACTERS = 300

KEY = "Escape was sent"
AGENTS_KEY = "its agents in the background were told to stop"
_NO_ANSWER = {"answer": "", "answered_by": "", "answered_at": None, "answered_mark": ""}

NO_TEXT = "Write what the agent is to be told."
TOO_LONG = f"At most {TEXT_CHARACTERS:,} characters."
IS_LOOP = "It is a loop, whose agents are told with their next prompt. Nothing was sent."
ELSEWHERE = "Its session is on another machine. Nothing was sent."
GONE_ON = "It does not wait any more. Nothing was sent."
ANOTHER = "It asks something else by now. Nothing was sent; look at its screen."
WANTS_A_CHOICE = (
    "It wants one of its choices pressed, and a text could press another. Nothing was sent."
)


NOTHING_TO_INTERRUPT = "It does not work on anything that could be interrupted. Nothing was sent."
READS_NO_KEYS = "It works its task off in one go and reads no keys. Stop it instead."


class AnswerRefused(ActRefused):
    """The answer was not given as it was meant; the text says what is known."""


@dataclass(frozen=True, slots=True)
class Form:
    """What a page offers to answer with: choices to press, a box for a text, or both."""

    choices: Sequence[Choice]
    mark: str
    has_text: bool


def form(lab: Lab, run: Run) -> Form | None:
    """How a run may be answered now; None when it may not, or was answered a moment ago."""
    lab = lab.at(run.host)
    is_here = run.is_waiting and run.host == lab.host
    if not is_here or _is_fresh(lab, run.answered_at) or _was_cut(lab, run):
        return None
    if run.is_loop:  # its agents are told in their prompts, whatever the screen shows
        return Form((), "", has_text=True)
    wants_choice = run.waits in rules.WITH_CHOICES
    try:
        found = _dialog(lab, run)
    except SeamError:
        return None if wants_choice else Form((), "", has_text=True)
    if wants_choice:
        return Form(found.choices, found.mark, has_text=False) if found.choices else None
    if found.is_open:
        return Form(found.choices, found.mark, has_text=False)
    return Form((), "", has_text=True)


def say(lab: Lab, run: Run, text: str, *, since: datetime, by: str) -> None:
    """Give the agent a text, as an answer to what it waits for since `since`.

    Never while it shows a dialog, in which letters and Enter would press a choice. Raises
    AnswerRefused.
    """
    lab = lab.at(run.host)
    lines = text.replace("\r\n", "\n")
    said = "".join(c if c.isprintable() or c == "\n" else " " for c in lines).strip()
    if not said:
        raise AnswerRefused(NO_TEXT, code="invalid", field="text")
    if len(said) > TEXT_CHARACTERS:
        raise AnswerRefused(TOO_LONG, code="invalid", field="text")
    _check(lab, run, since)
    if run.is_loop:
        raise AnswerRefused(IS_LOOP, code="wants_a_choice")
    if run.waits in rules.WITH_CHOICES or _seen(lab, run).is_open:
        raise AnswerRefused(WANTS_A_CHOICE, code="wants_a_choice")
    _take(lab, run, said, by)
    _give(lab, run, lambda: lab.sessions.say(run.session, run.marker(lab.paths), said))


def choose(lab: Lab, run: Run, digit: int, *, since: datetime, mark: str, by: str) -> None:
    """Press the digit of a choice of the dialog with this mark, if that is the one on the screen.

    Raises AnswerRefused.
    """
    lab = lab.at(run.host)
    _check(lab, run, since)
    found = _seen(lab, run)
    chosen = next((one for one in found.choices if one.digit == digit), None)
    if chosen is None or found.mark != mark:
        raise AnswerRefused(ANOTHER, code="not_waiting")
    _take(lab, run, f"{digit}. {chosen.text}", by, mark)
    _give(lab, run, lambda: _press(lab, run, found, digit))


def _press(lab: Lab, run: Run, found: Dialog, digit: int) -> None:
    """Take a choice as its dialog wants it: by its digit, or with the cursor on it and Enter.

    Enter is pressed only once the cursor is seen there. Raises as `Sessions.press`.
    """
    press = partial(lab.sessions.press, run.session, run.marker(lab.paths))
    if not found.wants_enter or not found.cursor:
        press(str(digit))
        return
    steps = digit - found.cursor
    if not steps:
        press(ENTER)
        return
    press(DOWN if steps > 0 else UP)
    try:
        for _ in range(abs(steps) - 1):
            lab.pause(STEP_SECONDS)
            press(DOWN if steps > 0 else UP)
        if not _is_at(lab, run, digit, found.mark):
            raise MaybeGiven("the cursor did not come to that choice, so Enter was not pressed")
        press(ENTER)
    except MaybeGiven:
        raise
    except SeamError as error:
        raise MaybeGiven(f"the cursor was moved, and Enter perhaps not pressed: {error}") from error


def _is_at(lab: Lab, run: Run, digit: int, mark: str) -> bool:
    """Whether the cursor of the dialog comes to a choice within some seconds."""
    for _ in range(int(MOVED_WITHIN / STEP_SECONDS)):
        lab.pause(STEP_SECONDS)
        seen = _dialog(lab, run)
        if seen.mark == mark and seen.cursor == digit:
            return True
    return False


def may_interrupt(lab: Lab, run: Run) -> bool:
    """Whether a turn of its agent can be interrupted by a key now."""
    lab = lab.at(run.host)
    works = run.state == RunState.WORKING and not run.is_one_shot and run.host == lab.host
    was_free = not _is_fresh(lab, run.turn_interrupted_at) and not _is_fresh(lab, run.answered_at)
    return works and not _is_over(run) and was_free


def stops_agents(run: Run) -> bool:
    """Whether an interrupt stops agents in the background, since the turn before them is over."""
    return not run.asks and hook_events.has_agents_in_background(run)


def interrupt(lab: Lab, run: Run, *, by: str) -> None:
    """Have the agent stop what it does, by the key for it, and wait for a next word.

    Escape does that in Claude Code and in Codex; another program decides by itself what it means.
    Agents that work on in the background after a turn of Claude Code have a key of their own.
    Pressed once, whoever else presses at the same moment: a second one would mean something else.
    Raises AnswerRefused.
    """
    run.refresh_from_db()
    lab = lab.at(run.host)
    if run.is_one_shot:
        raise AnswerRefused(READS_NO_KEYS, code="no_keys")
    if run.host == lab.host:  # its turn may be over, and the worker have not read that yet
        hook_events.hear(lab, [run])
        run.refresh_from_db()
    if run.state != RunState.WORKING or _is_over(run):
        raise AnswerRefused(NOTHING_TO_INTERRUPT, code="not_working")
    if run.host != lab.host:
        raise AnswerRefused(ELSEWHERE)
    key, said = (STOP_AGENTS, AGENTS_KEY) if stops_agents(run) else (ESCAPE, KEY)
    now, asked_at = lab.now(), run.asked_at
    lost = now - rules.LOST_AFTER
    is_free = Q(turn_interrupted_at=None) | Q(turn_interrupted_at__lte=lost)
    # The key would close the dialog that an answer is on its way to.
    is_unanswered = Q(answered_at=None) | Q(answered_at__lte=lost)
    with transaction.atomic():
        rows = Run.objects.working().filter(is_free, is_unanswered, pk=run.pk, turn_ended_at=None)
        rows = rows.exclude(waits__in=rules.FOR_A_WORD)
        if not rows.update(turn_interrupted_at=now, turn_interrupted_by=by):
            raise _second_interrupt(lab, run)
        announce.tell(lab, NoticeKind.RUN_INTERRUPTED, f"interrupted: {said}", run=run, by=by)
    run.turn_interrupted_at, run.turn_interrupted_by = now, by
    mine = Run.objects.filter(pk=run.pk, turn_interrupted_at=now)
    none = {"turn_interrupted_at": None, "turn_interrupted_by": ""}
    _send(
        lab,
        run,
        lambda: lab.sessions.press(run.session, run.marker(lab.paths), key),
        mine,
        none,
    )
    # A question that stood there went away with the key, and no hook tells so.
    mine.filter(asked_at=asked_at).update(asks=Wait.NONE, asked_at=None, question="")


def _is_over(run: Run) -> bool:
    """Whether its turn is over: the program said so, or stood still after a key."""
    has_told = not run.is_adopted and run.turn_ended_at is not None
    return has_told or run.waits in rules.FOR_A_WORD


def _is_fresh(lab: Lab, at: datetime | None) -> bool:
    """Whether something was sent then, of which is not known yet what came of it."""
    return at is not None and lab.now() - at < rules.LOST_AFTER


def _second_interrupt(lab: Lab, run: Run) -> AnswerRefused:
    run.refresh_from_db()
    if run.state == RunState.WORKING and _is_fresh(lab, run.turn_interrupted_at):
        text = f"{run.turn_interrupted_by} has interrupted it already. Nothing more was sent."
        return AnswerRefused(text, code="answered")
    if run.state == RunState.WORKING and _is_fresh(lab, run.answered_at):
        text = f"{run.answered_by} has answered it just now: {run.answer}. No key was sent."
        return AnswerRefused(text, code="answered")
    return AnswerRefused(NOTHING_TO_INTERRUPT, code="not_working")


def _check(lab: Lab, run: Run, since: datetime) -> None:
    """Whether it waits here, and for what the person saw."""
    run.refresh_from_db()
    if not run.is_waiting or run.waits_at is None:
        raise AnswerRefused(GONE_ON, code="not_waiting")
    if abs(run.waits_at - since) > TOLD_WITHIN:
        raise AnswerRefused(ANOTHER, code="not_waiting")
    if run.host != lab.host:
        raise AnswerRefused(ELSEWHERE)


def _dialog(lab: Lab, run: Run) -> Dialog:
    text = lab.sessions.screens([run.session]).get(run.session, "")
    return rules.dialog(screens.plain(screens.tidy(text)))


def _seen(lab: Lab, run: Run) -> Dialog:
    try:
        return _dialog(lab, run)
    except SeamError as error:
        text = f"Its screen could not be read: {lab.mask(str(error))}. Nothing was sent."
        raise AnswerRefused(text) from error


def _was_cut(lab: Lab, run: Run) -> bool:
    """Whether a key was sent just now to what it waits for, which may close that."""
    at, since = run.turn_interrupted_at, run.waits_at
    return _is_fresh(lab, at) and at is not None and since is not None and at > since


def _take(lab: Lab, run: Run, text: str, by: str, mark: str = "") -> None:
    """Make this the one answer to the question, before it is sent: of two people one is let through.

    An answer to which nothing happened for a while may be given again. A choice only while its
    dialog still stands: `mark` is that of the one on the screen.
    """
    now, shown = lab.now(), lab.mask(text)[:SHOWN_CHARACTERS]
    lost = now - rules.LOST_AFTER
    is_lost = Q(answered_at__lte=lost, answered_mark=mark)
    # What waits since an interrupt waits for the next word; what waited before it may be gone.
    was_left = Q(turn_interrupted_at=None) | Q(turn_interrupted_at__lte=run.waits_at)
    was_left |= Q(turn_interrupted_at__lte=lost)
    rows = Run.objects.working().exclude(waits="").filter(pk=run.pk, waits_at=run.waits_at)
    told = {"answer": shown, "answered_by": by, "answered_at": now, "answered_mark": mark}
    with transaction.atomic():
        if not rows.filter(Q(answered_at=None) | is_lost, was_left).update(**told):
            raise _refusal(lab, run)
        announce.tell(lab, NoticeKind.RUN_ANSWERED, f"answered: {shown}", run=run, by=by)
    run.answered_at = now


def _refusal(lab: Lab, run: Run) -> AnswerRefused:
    """Why an answer came too late, from the row as it is now."""
    before = run.waits_at
    run.refresh_from_db()
    if run.is_waiting and _was_cut(lab, run):
        text = f"{run.turn_interrupted_by} has interrupted it just now. Nothing more was sent."
        return AnswerRefused(text, code="answered")
    if not run.is_waiting:
        return AnswerRefused(GONE_ON, code="not_waiting")
    if run.waits_at == before and run.answered_at is not None:
        text = f"{run.answered_by} has answered it already: {run.answer}. Nothing more was sent."
        return AnswerRefused(text, code="answered")
    return AnswerRefused(ANOTHER, code="not_waiting")


def _give(lab: Lab, run: Run, give: Callable[[], None]) -> None:
    """Send the answer that was taken."""
    mine = Run.objects.filter(pk=run.pk, waits_at=run.waits_at, answered_at=run.answered_at)
    _send(lab, run, give, mine, _NO_ANSWER)


def _send(
    lab: Lab,
    run: Run,
    give: Callable[[], None],
    mine: RunQuerySet,
    none: Mapping[str, object],
) -> None:
    """Send something; what surely did not arrive is taken back, and nothing of somebody else's."""
    try:
        give()
    except MaybeGiven as error:
        text = f"it is not known whether it arrived: {lab.mask(str(error))}"
        with transaction.atomic():
            announce.tell(lab, NoticeKind.RUN_WARNED, text, run=run)
        text = f"{text[:1].upper()}{text[1:]}. Look at its screen."
        raise AnswerRefused(text, code="unsure") from error
    except SeamError as error:
        text = f"not sent: {lab.mask(str(error))}"
        with transaction.atomic():
            mine.update(**none)
            announce.tell(lab, NoticeKind.RUN_STEP, text, run=run)
        raise AnswerRefused(f"It was {text}. The agent was left as it is.") from error
