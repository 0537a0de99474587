"""What a turn left on disk and in git, as the rules and its row want it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from runs.core import lenient_json, writing
from runs.core.ports import Lab, SeamError
from runs.core.states import Trouble
from runs.lifecycle.verdict import exit_words
from runs.loops import events, prompts, stored
from runs.loops.rules import TurnResult
from runs.models import LoopTurn, Run
from runs.transcript import models as transcript_models
from runs.transcript import record, rendering
from runs.transcript.record import Reading
from runs.transcript.reports import Report
from trackers.base import Refused

logger = logging.getLogger(__name__)

EVENTS, OUTPUT = "events.jsonl", "output"
NOTES, MOST_NOTES = "scratchpad.md", 1_000_000
MOST_EVENT_BYTES = 4_000_000
PIECE = 1_000_000
ANSWER_BYTES, ANSWER_CHARACTERS = 64_000, 12_000
MOST_COMMITS, MOST_TOLD_COMMITS = 1000, 20
MOST_FILES, MOST_PATH = 50, 200
MOST_OBJECTIVE = 30_000
CUT = "\n\n[The issue goes on; read it whole with `labctl issue view {}`.]"
FIRST_WAIT = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Result:
    """How the process of a turn ended, as its runner wrote it down. `seconds` is how long it ran."""

    exit_code: int | None = None
    signal: int | None = None
    trouble: str = ""
    seconds: float = 0.0
    is_interrupted: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """A turn that is over: for the rules, for its row, and in words. `refused_until`: its agent's
    account turned it away, until then."""

    turn: TurnResult
    report: Report
    columns: Mapping[str, Any]
    words: str
    note: str = ""
    refused_until: datetime | None = None
    is_refused: bool = False


def read(lab: Lab, turn: LoopTurn, result: Result, malformed_row: int) -> Finished:
    """Everything that a turn left. What cannot be read is empty, and said in the log."""
    folder = turn.folder(lab.paths)
    report = _report(lab, turn, folder)
    # Masked in one go: an agent may write millions of lines.
    text = lab.mask(_bytes(lab, folder, EVENTS, MOST_EVENT_BYTES).decode("utf-8", "replace"))
    # By line ends alone: JSON leaves other separators as they are within its texts.
    batch = events.read(text.split("\n"), malformed_row)
    answer = lab.mask(tail(lab, folder, OUTPUT, ANSWER_BYTES, is_record=bool(turn.output)))
    tip = head(lab, turn.loop.run)
    made = _commits(lab, turn.loop.run, turn.head_before, tip)
    last = _said_last(lab, folder) if turn.output else _last_line(answer)
    code = result.exit_code if not result.trouble and result.signal is None else None
    if result.is_interrupted:  # by a person, so that it counts as no failure
        code = 0
    if code == 0 and report.is_error:
        code = 1
    cost = report.cost_usd
    columns: dict[str, Any] = {
        "seconds": result.seconds,
        "exit_code": result.exit_code,
        "exit_signal": result.signal,
        "trouble": lab.mask(lenient_json.text(result.trouble))[:1000],
        "events": stored.of_events(batch.events),
        "malformed": batch.malformed,
        "dropped": batch.dropped,
        "answer": answer[-ANSWER_CHARACTERS:],
        "tokens_in": report.tokens_in,
        "tokens_out": report.tokens_out,
        "cost": cost,
        "head": tip,
        "commits": made,
    }
    has_worked = bool(made) or any(one.topic.startswith("task.") for one in batch.events)
    found = TurnResult(turn.role, code, batch, last, cost, has_worked)
    is_refused = report.trouble is not Trouble.NONE
    until = (report.agent_until or lab.now() + FIRST_WAIT) if is_refused else None
    words = _words(result, batch.malformed, made)
    return Finished(found, report, columns, words, lab.mask(report.agent_note), until)


def add_use(lab: Lab, run: Run, found: Finished) -> None:
    """Add what a turn used to its run, for the day that it is; what was not told adds nothing."""
    report = found.report
    told: dict[str, Any] = {"turns": (run.turns or 0) + 1}
    for name in ("tokens_in", "tokens_cached", "tokens_out", "cost_usd"):
        own, more = getattr(run, name), getattr(report, name)
        told[name] = (
            own if more is None else (own or Decimal(0) if name == "cost_usd" else own or 0) + more
        )
    told |= {"agent_model": report.agent_model or run.agent_model}
    told |= {"began_at": run.began_at or lab.now()}
    told |= transcript_models.days(told, run, lab.now())
    Run.objects.active().filter(pk=run.pk).update(**told)
    for name, value in told.items():
        setattr(run, name, value)


def objective(lab: Lab, run: Run, *, wants_open: bool = False) -> str:
    """What a loop on an issue is for, with the issue as it is now. Raises TrackerError.

    With `wants_open` also where the issue was closed meanwhile.
    """
    tracker = lab.tracker_for(run.project.tracker)
    if tracker is None:
        raise Refused("This project has no tracker that labsite can read.")
    issue = tracker.issue(run.project.tracker_root, run.issue_key)
    if wants_open and not issue.is_open:
        raise Refused("it was closed meanwhile")
    body = lab.mask(issue.body)
    if len(body) > MOST_OBJECTIVE:
        body = body[:MOST_OBJECTIVE] + CUT.format(run.issue_key)
    return prompts.for_issue(run.issue_key, lab.mask(issue.title), body, list(issue.labels))


def head(lab: Lab, run: Run) -> str:
    """The commit of the run's branch; empty where git does not say."""
    repo = run.project.repo(lab.paths)
    try:
        return lab.repos.tip(repo, f"refs/heads/{run.branch}") or ""
    except SeamError as error:
        logger.info("head was not read", extra={"run_id": run.pk, "error": str(error)})
        return ""


def uncommitted(lab: Lab, run: Run) -> list[str]:
    """The files of the worktree with changes that are in no commit; none where git does not say."""
    tip = head(lab, run)
    try:
        found = lab.repos.changes(Path(run.worktree), tip) if tip else ()
    except SeamError as error:
        logger.info("changes were not read", extra={"run_id": run.pk, "error": str(error)})
        return []
    return [writing.one_line(lab.mask(one.path), MOST_PATH) for one in found if one.is_open]


def commits(lab: Lab, run: Run) -> list[str]:
    """The commits of the run's branch, newest first; none where git does not say."""
    tip = head(lab, run)
    if not tip or not run.fork_point:
        return []
    try:
        repo = run.project.repo(lab.paths)
        found = lab.repos.commits(repo, run.fork_point, tip, MOST_COMMITS)
    except SeamError as error:
        logger.info("commits were not read", extra={"run_id": run.pk, "error": str(error)})
        return []
    return [f"{one.id[:7]} {writing.one_line(lab.mask(one.subject), MOST_PATH)}" for one in found]


def stands_on(lab: Lab, run: Run) -> str:
    """Where the worktree stands when it is not on the branch of the run; empty where it is, or git does
    not say."""
    try:
        found = lab.repos.standing(run.project.repo(lab.paths), Path(run.worktree))
    except SeamError as error:
        logger.info("branch was not read", extra={"run_id": run.pk, "error": str(error)})
        return ""
    if not found.head or found.branch == run.branch:
        return ""
    name = writing.one_line(lab.mask(found.branch), MOST_PATH)
    return f"the branch `{name}`" if name else "no branch, as within a rebase"


def tail(lab: Lab, folder: Path, name: str, limit: int, *, is_record: bool = False) -> str:
    """The last bytes of a file as text, from a whole line on; of a record in words. Empty: not there."""
    piece = lab.sessions.output(folder, -limit, limit, name)
    if piece is None or not piece.data:
        return ""
    raw = piece.data if piece.size <= limit else piece.data.partition(b"\n")[2] or piece.data
    if is_record:
        return rendering.render_all(raw)
    return lenient_json.text(raw.decode("utf-8", "replace"))


def _report(lab: Lab, turn: LoopTurn, folder: Path) -> Report:
    """What a program that prints JSON lines told of itself."""
    reading = Reading()
    if not turn.output:
        return reading.report
    while True:
        piece = lab.sessions.output(folder, reading.output_read, PIECE, OUTPUT)
        if piece is None:
            return reading.report
        is_over = reading.output_read + len(piece.data) >= piece.size
        after = record.read(turn.output, reading, piece.data, lab.now(), is_over=is_over)
        if is_over or after.output_read == reading.output_read:
            return after.report
        reading = after


def _bytes(lab: Lab, folder: Path, name: str, limit: int) -> bytes:
    piece = lab.sessions.output(folder, 0, limit, name)
    return piece.data if piece is not None else b""


def _commits(lab: Lab, run: Run, before: str, after: str) -> int:
    if not before or not after or before == after:
        return 0
    try:
        return len(lab.repos.commits(run.project.repo(lab.paths), before, after, MOST_COMMITS))
    except SeamError as error:
        logger.info("commits were not counted", extra={"run_id": run.pk, "error": str(error)})
        return 0


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lenient_json.line(lines[-1]) if lines else ""


def _said_last(lab: Lab, folder: Path) -> str:
    """The last line that the agent itself said at the end of a record; empty where that is anybody else's."""
    piece = lab.sessions.output(folder, -ANSWER_BYTES, ANSWER_BYTES, OUTPUT)
    for raw in reversed(piece.data.split(b"\n") if piece is not None else []):
        entry = lenient_json.entry(raw)
        if entry is None or rendering.is_note(entry):  # nothing, or that it is done
            continue
        style, text = rendering.shown(entry)[-1]
        is_own = style == "says" and not lenient_json.line(entry, "parent_tool_use_id")
        return _last_line(text) if is_own else ""
    return ""


def _words(result: Result, malformed: int, commits: int) -> str:
    """How a turn ended, after its name."""
    if result.trouble:
        how = f"failed, {lenient_json.line(result.trouble)},"
    elif result.exit_code == 0 and result.signal is None:
        how = "ended"
    else:
        how = exit_words(result.exit_code, result.signal)
    parts = [f"{how} after {result.seconds:.0f} s"]
    parts += [f"{commits} commit{'' if commits == 1 else 's'}"] if commits else []
    parts += [f"{malformed} unreadable event{'' if malformed == 1 else 's'}"] if malformed else []
    return ", ".join(parts)
