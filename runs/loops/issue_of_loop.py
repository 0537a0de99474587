"""The issues of a loop that stays, one after the other: begun, summed up, given back, ended with it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max, Q, Subquery

from runs.core.effects import IssueTaken
from runs.core.ports import Lab
from runs.core.states import Mirror, NoticeKind, Outcome, RunState, TrackerKind
from runs.forges import mirror
from runs.loops import prompts, stored
from runs.models import Loop, LoopIssue, LoopTask, LoopTurn, Run
from runs.spending import limit_rules
from runs.timeline import announce
from trackers.builtin.models import PullRequest

NEXT = "completed #{}, looking for the next one"
LEFT_OPEN = "its issue was completed"
MOST_NOTE = 300


@dataclass(frozen=True, slots=True)
class Used:
    """What the turns of one issue took. None: one of them did not tell it."""

    turns: int = 0
    seconds: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """An issue as pages and programs read it; what the open one took is counted so far."""

    issue: LoopIssue
    used: Used
    pull: int | None


def newest(loop: Loop, most: int) -> list[Shown]:
    """The newest issues of a loop, the newest first; none of a loop that does not stay.

    One query, one more while an issue is open; none where the loop does not stay.
    """
    if not stored.terms(loop.terms["rules"]).is_persistent:
        return []
    return [_shown_now(loop, one) for one in loop.issues.order_by("-position")[:most]]


def _shown_now(loop: Loop, issue: LoopIssue) -> Shown:
    if issue.is_open:
        return Shown(issue, used(issue), loop.run.pull_number)
    names = ("turns", "seconds", "tokens_in", "tokens_out", "cost")
    return Shown(issue, Used(*(getattr(issue, name) for name in names)), issue.pull_number)


def is_staying(loop: Loop) -> bool:
    """Whether a loop takes issue after issue."""
    return stored.terms(loop.terms["rules"]).is_persistent and loop.issues.exists()


def begin(lab: Lab, loop: Loop) -> None:
    """The issue with which a loop that stays was started, in the transaction that stores the loop."""
    run = loop.run
    before = Loop.objects.filter(run=run.continues_id).first() if run.continues_id else None
    last = before.issues.last() if before is not None else None
    is_done = last is not None and last.end == LoopIssue.End.COMPLETED
    ended: dict[str, Any] = {}
    if last is not None and is_done:  # and its tracker was told
        ended = {"ended_at": lab.now(), "end": last.end, "mirrored": mirror.ENDED}
        Run.objects.filter(pk=run.pk).update(mirrored=mirror.ENDED)
    LoopIssue.objects.create(
        loop=loop,
        position=1,
        issue_key=run.issue_key,
        title=run.issue_title,
        branch=run.branch,
        fork_point=run.fork_point,
        taken_at=lab.now(),
        moved_at=lab.now(),
        **ended,
    )


def current(loop: Loop) -> LoopIssue | None:
    """The issue that it works on; None between two."""
    return loop.issues.filter(ended_at=None).first()


def taken(lab: Lab, start: IssueTaken) -> None:
    """Store the claim with the launch pass's own transaction; the loop is asked to look at once."""
    loop = Loop.objects.select_related("run__project").get(run_id=start.run_id)
    last = loop.issues.aggregate(last=Max("position"))["last"] or 0
    made = LoopIssue.objects.create(
        loop=loop,
        position=last + 1,
        issue_key=start.issue_key,
        title=start.title,
        branch=loop.run.project.branch_for(start.issue_key),
        taken_at=lab.now(),
    )
    loop.turns.filter(ended_at=None).update(issue=made, issue_key=made.issue_key)
    folder = loop.folder(lab.paths)
    transaction.on_commit(lambda: lab.sessions.wake(folder), robust=True)


def of_turn(loop: Loop) -> dict[str, Any]:
    """The columns of a turn that is about to begin: the issue that it works on, none between two."""
    if not is_staying(loop):
        return {"issue_key": loop.run.issue_key}
    issue = current(loop)
    if issue is None or issue.moved_at is None:
        return {"issue_key": ""}
    return {"issue": issue, "issue_key": issue.issue_key}


def was_taken_in(turn: LoopTurn) -> bool:
    """Whether a turn took the issue that it works on."""
    issue = turn.issue
    return issue is not None and issue.position > 1 and issue.taken_at >= turn.ordered_at


def complete(lab: Lab, loop: Loop, completion: str) -> dict[str, Any]:
    """The completion word ends the issue; the columns of the loop that follow. In the caller's transaction.

    One that was claimed and not begun is no work of that turn: it is given back.
    """
    issue = current(loop)
    if issue is None:
        return {}
    if issue.moved_at is None:
        give_back(lab, loop, issue, "the loop said that it is done before it was begun")
        return {}
    run = loop.run
    pull, url = _pull(run)
    found = used(issue)
    # Nobody is told later of an issue that was completed while nobody wanted to be.
    mirrored = run.mirrored or (mirror.ENDED if run.project.mirror == Mirror.OFF else "")
    _close(lab, issue, LoopIssue.End.COMPLETED, found, pull=pull, url=url, mirrored=mirrored)
    # What is written there of the run is this issue's, whose end has a row of its own from now on.
    Run.objects.filter(pk=run.pk).update(mirrored=mirror.ENDED)
    run.mirrored = mirror.ENDED
    mirror.ask(lab, run)
    told = NEXT.format(issue.issue_key)
    what = (
        f"pull request #{pull}" if pull else f"no pull request, its branch {issue.branch} is kept"
    )
    announce.tell(lab, NoticeKind.LOOP_STEP, f"{told}: {what}; {words(found)}", run=run)
    columns: dict[str, Any] = {"objective": prompts.for_next(completion)}
    if loop.terms.get("resets_notes"):
        columns |= {"notes": f"{told}\n", "notes_number": loop.notes_number + 1}
        columns |= {"are_notes_new": True}
    if loop.terms.get("cleans_up"):
        loop.tasks.exclude(state=LoopTask.State.CLOSED).update(
            state=LoopTask.State.CLOSED, note=LEFT_OPEN, closed_at=lab.now()
        )
    return columns


def give_back(lab: Lab, loop: Loop, issue: LoopIssue, why: str) -> bool:
    """Undo a claim that was not begun: the run names the issue before it again. Whether it did."""
    with transaction.atomic():
        if not _leave(lab, loop, issue, why):
            return False
        text = f"issue {issue.issue_key} was given back: {why}"
        announce.tell(lab, NoticeKind.RUN_WARNED, text, run=loop.run)
    return True


def ended(lab: Lab, run_id: int) -> None:
    """What a loop that ends leaves open: a claim without a branch is given back, work ends with it."""
    issue = (
        LoopIssue.objects.filter(loop__run_id=run_id, ended_at=None)
        .select_related("loop__run")
        .first()
    )
    if issue is None:
        return
    run = issue.loop.run
    if issue.moved_at is None:
        _leave(lab, issue.loop, issue, "its loop ended before it was begun")
        return
    pull, url = _pull(run)
    _close(lab, issue, LoopIssue.End.WITH_LOOP, used(issue), pull=pull, url=url)


def used(issue: LoopIssue) -> Used:
    """What its turns took so far. A turn whose agent was turned away counts as none, but is paid."""
    rows = list(
        LoopTurn.objects.filter(issue=issue, ended_at__isnull=False).values_list(
            "was_refused", "seconds", "tokens_in", "tokens_out", "cost"
        )
    )
    worked = [row for row in rows if not row[0]]

    def sum_of(place: int) -> Any:
        known = [row[place] for row in rows if row[place] is not None]
        is_whole = bool(worked) and all(row[place] is not None for row in worked)
        return sum(known) if is_whole else None

    return Used(len(worked), sum_of(1), sum_of(2), sum_of(3), sum_of(4))


def words(found: Used) -> str:
    """What an issue took, in words; unknown stays unknown."""
    parts = [f"{found.turns} turn{'' if found.turns == 1 else 's'}"]
    if found.seconds is not None:
        parts.append(f"{int(timedelta(seconds=found.seconds).total_seconds() // 60)} min")
    parts.append("cost unknown" if found.cost is None else limit_rules.money(found.cost))
    return ", ".join(parts)


def _close(
    lab: Lab,
    issue: LoopIssue,
    end: LoopIssue.End,
    found: Used,
    *,
    pull: int | None,
    url: str,
    mirrored: str | None = None,
) -> None:
    more: Mapping[str, Any] = {} if mirrored is None else {"mirrored": mirrored}
    LoopIssue.objects.filter(pk=issue.pk, ended_at=None).update(
        ended_at=lab.now(),
        end=end,
        turns=found.turns,
        seconds=found.seconds,
        tokens_in=found.tokens_in,
        tokens_out=found.tokens_out,
        cost=found.cost,
        pull_number=pull,
        pull_url=url,
        **more,
    )


def _leave(lab: Lab, loop: Loop, issue: LoopIssue, why: str) -> bool:
    row = Run.objects.filter(pk=loop.run_id)
    rows = LoopIssue.objects.filter(pk=issue.pk, ended_at=None, moved_at=None)
    left = {"ended_at": lab.now(), "end": LoopIssue.End.GIVEN_BACK, "note": why[:MOST_NOTE]}
    # What was marked for it on the tracker is this row's to take back.
    if not rows.update(**left, mirrored=Subquery(row.values("mirrored")[:1])):
        return False
    row.update(mirrored=mirror.ENDED)
    mirror.ask(lab, loop.run)
    loop.turns.filter(issue=issue).update(issue=None, issue_key="")
    before = loop.issues.exclude(end=LoopIssue.End.GIVEN_BACK).last()
    if before is None:
        return True
    back = {
        **{"issue_key": before.issue_key, "issue_title": before.title},
        **{"pull_number": before.pull_number, "pull_url": before.pull_url},
    }
    with suppress(IntegrityError), transaction.atomic():  # somebody else works on it by now
        row.update(**back)
    loop.run.refresh_from_db()
    return True


def _pull(run: Run) -> tuple[int | None, str]:
    """The pull request of the branch: the run's own, else the newest that is known of."""
    if run.pull_number is not None:
        return run.pull_number, run.pull_url
    project = run.project
    if project.tracker == TrackerKind.BUILTIN and project.tracker_root.isdigit():
        rows = PullRequest.objects.filter(root=int(project.tracker_root), head=run.branch)
        return rows.order_by("-number").values_list("number", flat=True).first(), ""
    for number, head, _, url in project.pulls_seen:
        if head == run.branch:
            return int(number), str(url)
    return None, ""


def write_ends(lab: Lab, run_id: int) -> None:
    """Tell the tracker of each completed issue as of a run that ended, and free what was given back.

    Once. Raises no TrackerError.
    """
    was_marked = Q(end=LoopIssue.End.GIVEN_BACK) & ~Q(mirrored="")
    rows = LoopIssue.objects.filter(loop__run_id=run_id).exclude(mirrored=mirror.ENDED)
    for issue in rows.filter(Q(end=LoopIssue.End.COMPLETED) | was_marked):
        shown = _shown(Run.objects.select_related("project").get(pk=run_id), issue)
        mirror.write_end(lab, shown, partial(_note_written, issue))


def _note_written(issue: LoopIssue) -> bool:
    rows = LoopIssue.objects.filter(pk=issue.pk).exclude(mirrored=mirror.ENDED)
    return bool(rows.update(mirrored=mirror.ENDED))


def _shown(run: Run, issue: LoopIssue) -> Run:
    """The run as if this issue were all of it; nobody stores it."""
    run.issue_key, run.issue_title, run.branch = issue.issue_key, issue.title, issue.branch
    run.state, run.outcome, run.exit_status = RunState.ENDED, Outcome.SUCCEEDED, 0
    if issue.end == LoopIssue.End.GIVEN_BACK:  # as of a start that failed
        run.outcome, run.started_at = Outcome.FAILED, None
    run.pull_number, run.mirrored = issue.pull_number, issue.mirrored
    return run
