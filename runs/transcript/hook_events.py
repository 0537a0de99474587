"""What an interactive agent's hooks tell of its session: read, kept on the run, told when it changes.

The hooks of an agent write short lines into the run's folder (`labctl hook session`), and these
are read on from where the last look ended, as the record of a one-shot agent is. The agent could
write them too, so they explain and never prove: nothing in here makes a run a success.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from django.db import InterfaceError, OperationalError, transaction

from runs.accounts import refusal_rules
from runs.core import lenient_json
from runs.core.lenient_json import Entry
from runs.core.ports import Lab, Output
from runs.core.states import AgentMode, AgentState, Trouble, Wait
from runs.models import Run
from runs.timeline import announce
from runs.transcript import reports
from runs.transcript.reports import Report

logger = logging.getLogger(__name__)

FILE = "events.jsonl"
MOST_BYTES = 1_100_000  # hooks write no more than a little less
PIECE = 65_536
DAY = timedelta(days=1)
AT_ONCE = timedelta(seconds=2)
# The kinds of work in the background that end by themselves, and then have the main agent go on. Of
# any other, such as a command, nobody knows whether it ends: it may be a server that was left behind.
_AGENTS = frozenset({"subagent", "workflow", "teammate"})
_WITH_AGENTS = re.compile(r"\d+ agents?( and \d+ commands?)? in the background")
# A program gives a hook no longer than this, and shows its turn from before that.
HOOK_TAKES = timedelta(seconds=10)
# The types of Claude Code's notifications that wait for an answer.
_ASKED = {
    "permission_prompt": Wait.PERMISSION,
    "worker_permission_prompt": Wait.PERMISSION,
    "elicitation_dialog": Wait.QUESTION,
}
# The columns of a run that events write. Words of its screen and its tokens come from elsewhere.
TOLD = (
    *("agent_session", "agent_state", "agent_note", "agent_until"),
    *("result_subtype", "is_error", "api_status", "trouble"),
)


@dataclass(frozen=True, slots=True)
class Session:
    """An interactive agent's session, as its hooks told it.

    `began_at`: when it was first given its task; None says that it never got so far, or that it
    has no hooks. `turn_ended_at`: since when it has had nothing to do; None while it works.
    `report` is in the words of a one-shot agent's report, so that one rule judges both: after a
    turn that ended, `result_subtype` is set; when an error of the API ended it, `is_error` is True,
    `result_subtype` is the program's own name of the error ("rate_limit", "server_error",
    "authentication_failed", "billing_error", "model_not_found"), `agent_note` its words,
    `api_status` the status that stands in them, and `trouble` what that means for the account. The
    next word that the agent is given clears all of it. `asks`, `asked_at` and `question`: what it
    asks a person since when, in the middle of a turn. `interrupted_at`: when a person interrupted the
    turn, which its hooks do not tell. `read`: how many bytes of the file that is.

    A turn after which agents work on in the background has not ended: they have the program go on
    when they come back. `agent_note` says so then.
    """

    report: Report = field(default_factory=Report)
    began_at: datetime | None = None
    turn_ended_at: datetime | None = None
    asks: Wait = Wait.NONE
    asked_at: datetime | None = None
    question: str = ""
    interrupted_at: datetime | None = None
    read: int = 0

    @property
    def was_refused(self) -> bool:
        """Whether it idles because an error of the API ended its turn."""
        return self.turn_ended_at is not None and self.report.is_error


def read_on(session: Session, data: bytes, now: datetime) -> Session:
    """The session after the whole lines of `data`, which follow what was read; never raises."""
    lines = data.split(b"\n")
    for line in lines[:-1]:
        entry = lenient_json.entry(line)
        if entry is not None:
            session = _after(session, entry, now)
    return replace(session, read=session.read + len(data) - len(lines[-1]))


def hear(lab: Lab, runs: Sequence[Run]) -> None:
    """Bring working interactive runs up to date with what their hooks wrote since the last look.

    The worker does, and a web process just before it sends a key: who comes second keeps nothing.
    """
    for run in runs:
        if run.mode == AgentMode.INTERACTIVE and not run.is_adopted:
            try:
                _hear_one(lab, run)
            except (OperationalError, InterfaceError):
                raise
            except Exception:  # an agent writes these lines: none may keep others from being judged
                logger.exception("events were not read", extra={"run_id": run.pk})


def is_answering(lab: Lab, run: Run) -> bool:
    """Whether an interactive agent is in the middle of a turn; False where nothing tells so.

    Asked of a run that has ended, whose columns nobody writes any more.
    """
    if run.mode != AgentMode.INTERACTIVE or run.began_at is None or run.is_adopted:
        return False
    session = session_of(run)
    piece = _piece(lab, run, session.read)
    if piece is not None and piece.data:
        session = read_on(session, piece.data, lab.now())
    return session.turn_ended_at is None


def has_agents_in_background(run: Run) -> bool:
    """Whether its main turn is over while agents work on, which the key for a turn does not stop."""
    is_open = run.turn_ended_at is None and run.agent_state == AgentState.WORKING
    return is_open and _WITH_AGENTS.fullmatch(run.agent_note) is not None


def session_of(run: Run) -> Session:
    """What is kept on a run, to go on from there."""
    words = ("agent_state", "trouble")
    told = {name: getattr(run, name) for name in TOLD if name not in words}
    state, trouble = AgentState(run.agent_state), Trouble(run.trouble)
    report = Report(agent_state=state, trouble=trouble, **told)
    asked = (Wait(run.asks), run.asked_at, run.question, run.turn_interrupted_at)
    return Session(report, run.began_at, run.turn_ended_at, *asked, run.output_read)


def _hear_one(lab: Lab, run: Run) -> None:
    before = session_of(run)
    piece = _piece(lab, run, before.read)
    if piece is not None and piece.size < before.read:  # another file than the one read so far
        before = replace(before, read=0)
        piece = _piece(lab, run, 0)
    if piece is None or not piece.data or before.read >= MOST_BYTES:
        return
    after = read_on(before, piece.data, lab.now())
    if after == before:
        return
    columns = {
        **{name: getattr(after.report, name) for name in TOLD},
        **{"began_at": after.began_at, "turn_ended_at": after.turn_ended_at},
        **{"asks": after.asks, "asked_at": after.asked_at},
        "question": lab.mask(after.question)[:300],
        "agent_note": lab.mask(after.report.agent_note)[:300],
        "output_read": after.read,
    }
    if after.interrupted_at is None and before.interrupted_at is not None:
        columns |= {"turn_interrupted_at": None, "turn_interrupted_by": ""}
    news = reports.news(before.report, after.report)
    with transaction.atomic():
        if (
            not Run.objects.working()
            .filter(pk=run.pk, output_read=run.output_read)
            .update(**columns)
        ):
            return
        if news is not None:
            announce.tell(lab, *news, run=run)
    for name, value in columns.items():
        setattr(run, name, value)


def _piece(lab: Lab, run: Run, start: int) -> Output | None:
    return lab.sessions.output(lab.paths.run_folder(run.pk), start, PIECE, FILE)


def _after(session: Session, entry: Entry, now: datetime) -> Session:
    at = _time(entry, now)
    event = entry.get("event")
    if event in ("PermissionRequest", "Notification"):
        return _asking(session, entry, at)
    if event in ("UserPromptSubmit", "Stop", "StopFailure", "SessionEnd"):
        session = replace(session, asks=Wait.NONE, asked_at=None, question="")
    match event:
        case "UserPromptSubmit":
            ident = session.report.agent_session or lenient_json.word(entry, "session")
            fresh = Report(agent_session=ident, agent_state=AgentState.WORKING)
            began_at = session.began_at or at
            return replace(
                session,
                report=fresh,
                began_at=began_at,
                turn_ended_at=None,
                interrupted_at=session.interrupted_at if _was_cut(session, at) else None,
            )
        case "Stop" if _AGENTS & set(works := _background(entry)):
            return _in_background(session, works)
        case "Stop":
            report = reports.ended(session.report, "success", None, None, now)
            return replace(session, report=report, turn_ended_at=at)
        case "StopFailure":
            kind = lenient_json.line(entry, "kind", limit=60) or "error"
            words = lenient_json.line(entry, "text") or kind.replace("_", " ")
            status = refusal_rules.status_in(words)
            report = reports.ended(session.report, kind, words, status, now)
            return replace(session, report=report, turn_ended_at=at)
    return session


def _background(entry: Entry) -> list[str]:
    """What kinds of work go on after the end of a turn; none where nothing tells of any."""
    found = entry.get("background")
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def _in_background(session: Session, works: Sequence[str]) -> Session:
    """The session after its main turn, while agents work on."""
    agents = sum(kind in _AGENTS for kind in works)
    said = [
        f"{count} {word}{'s' if count > 1 else ''}"
        for count, word in ((agents, "agent"), (len(works) - agents, "command"))
        if count
    ]
    report = Report(
        agent_session=session.report.agent_session,
        agent_state=AgentState.WORKING,
        agent_note=f"{' and '.join(said)} in the background",
    )
    return replace(session, report=report, turn_ended_at=None)


def _was_cut(session: Session, prompted_at: datetime) -> bool:
    """Whether the turn that begins with this word is the one that a person interrupted.

    The first word may be told a moment after the key that stopped it: a hook takes its time.
    """
    cut_at = session.interrupted_at
    if cut_at is None:
        return False
    is_first = session.began_at is None
    return prompted_at < cut_at or (is_first and prompted_at - cut_at < HOOK_TAKES)


def _asking(session: Session, entry: Entry, at: datetime) -> Session:
    """The session after an event that may say that it asks a person.

    Two hooks tell of one permission, in either order: the one that names the tool says for what.
    Of several that are asked at once the first stands, as its dialog does; a later one is another.
    """
    is_of_tool = entry.get("event") == "PermissionRequest"
    kind = Wait.PERMISSION if is_of_tool else _ASKED.get(lenient_json.word(entry, "asks"))
    is_another = is_of_tool and session.asked_at is not None and at - session.asked_at > AT_ONCE
    if is_another:
        session = replace(session, asks=Wait.NONE, asked_at=None, question="")
    if kind is None or session.question:
        return session
    tool, wish = lenient_json.line(entry, "tool", limit=60), lenient_json.line(entry, "wish")
    question = f"{tool}: {wish}" if tool and wish else tool
    if kind is Wait.QUESTION:
        question = lenient_json.line(entry, "said")
    is_first = session.asks is Wait.NONE
    return replace(
        session,
        asks=kind if is_first else session.asks,
        asked_at=at if is_first else session.asked_at,
        question=question[:300],
    )


def _time(entry: Entry, now: datetime) -> datetime:
    """When an event was; now, where that cannot be."""
    at = lenient_json.moment(entry.get("at"))
    return at if at is not None and timedelta(0) <= now - at < DAY else now
