"""How a loop that stays takes its next issue: by the launch pass, then fetch, branch and worktree.

`next_issue` is what `labctl next` asks for, `before_turn` what labsite does while the loop idles.
Both may be cut short anywhere and asked again: a claim is a row, and it is gone on with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F

from runs.core.ports import Lab, SeamError
from runs.core.states import AnswerCode, LoopState, NoticeKind
from runs.dispatch import start_requests
from runs.forges import mirror
from runs.kept import rescue
from runs.loops import acts, beginning, events, issue_of_loop, results, stored
from runs.loops.acts import LoopRefused
from runs.loops.events import Event
from runs.models import Loop, LoopIssue, LoopTurn, Run, StartRequest
from runs.projects import origin
from runs.timeline import announce
from trackers.base import NotFound, Refused, TrackerError

LONGEST_ANSWER = 5.0
ASKED = timedelta(seconds=2)
LATER = timedelta(seconds=10)
HEARD = timedelta(minutes=5)
NOT_STAYING = (
    "This loop works on one issue and ends with it, so it takes no other one. Only a loop of a "
    "project where one loop stays takes the next issue."
)
IS_STOPPING = (
    "This loop ends after this turn, since a person asked for it. It takes no further issue."
)
WAITS = "labsite has not answered yet. Ask again: labctl next"
LOOKS = "it asks labsite for the next issue"
ASLEEP = "there is nothing to do; it waits until somebody writes"
OPEN = (
    "Issue {key} is open in this loop. Its completion word says that it is done; the next issue is "
    "taken after that."
)
# Where nobody could say whether there is an issue, another question may help.
UNKNOWN = (AnswerCode.TRACKER_FAILED, AnswerCode.SEAM_FAILED, AnswerCode.EXPIRED)


class NotYet(Exception):
    """The issue is claimed and cannot be begun now; asking again goes on with it."""


class GivenBack(Exception):
    """The issue cannot be begun at all, so that its claim is gone."""


class State(StrEnum):
    """What came of asking for the next issue."""

    TAKEN = "taken"
    OPEN = "open"  # one was taken before, and is not completed
    NONE = "none"
    PENDING = "pending"  # not answered within the time that was given
    LATER = "later"  # could not be told, or is claimed and cannot be begun yet


@dataclass(frozen=True, slots=True)
class Found:
    """An answer as a sentence, with the issue where there is one."""

    state: State
    text: str
    issue: LoopIssue | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """Why no turn begins yet, and the columns of the loop that say so."""

    pause: timedelta
    why: str
    columns: Mapping[str, Any] = field(default_factory=dict)


def next_issue(lab: Lab, run: Run, by: str, seconds: float) -> Found:
    """Claim the next issue for a loop that stays, once for all who ask. Raises LoopRefused.

    Waits at most `seconds` for the launch pass; whoever asks again waits for the same answer.
    """
    loop = acts.of_run(run)
    if not issue_of_loop.is_staying(loop):
        raise LoopRefused(NOT_STAYING, code="one_issue")
    if loop.end:
        raise LoopRefused(acts.IS_OVER, code="ended")
    if issue_of_loop.current(loop) is None:
        refused = _ask(lab, loop, by, min(max(seconds, 0.0), LONGEST_ANSWER))
        # Whoever asked at the same time may have taken one, which keeps this one from a second.
        if refused is not None and issue_of_loop.current(loop) is None:
            return refused
    issue = issue_of_loop.current(loop)
    if issue is None:  # its claim was given back meanwhile
        return Found(State.LATER, WAITS)
    if issue.moved_at is not None:
        return Found(State.OPEN, OPEN.format(key=issue.issue_key), issue)
    return _begin_now(lab, loop, issue)


def _begin_now(lab: Lab, loop: Loop, issue: LoopIssue) -> Found:
    try:
        text = _begin(lab, loop, issue)
    except NotYet as error:
        why = f"Issue {issue.issue_key} is claimed for this loop and cannot be begun yet: {error}"
        return Found(State.LATER, f"{why}. Ask again: labctl next")
    except GivenBack as error:
        why = f"Issue {issue.issue_key} cannot be worked on: {error}. Its claim was given back."
        return Found(State.LATER, f"{why} Ask again: labctl next")
    issue.refresh_from_db()
    return Found(State.TAKEN, text, issue)


def before_turn(lab: Lab, loop: Loop) -> Pause | None:
    """What keeps the next turn of a loop that stays: an issue that is asked for, or being begun.

    None: the turn may begin. What a person said does not wait for an issue.
    """
    if loop.guidance.filter(acknowledged_at=None, given_in=None).exists():
        return None
    if not issue_of_loop.is_staying(loop):
        return _asleep(loop)
    issue = issue_of_loop.current(loop)
    if issue is not None:
        return None if issue.moved_at is not None else _begun(lab, loop, issue)
    if loop.state != LoopState.IDLE:
        return None
    if why := _why_none(loop):
        return _idle(lab, loop, why)
    asked = StartRequest.objects.filter(takes_for=loop.run_id).exclude(answer=AnswerCode.STARTED)
    last = asked.order_by("pk").last()
    if last is None:
        _request(lab, loop, "")
        return Pause(ASKED, LOOKS)
    if last.answer == AnswerCode.PENDING:
        return Pause(ASKED, LOOKS)
    StartRequest.objects.filter(pk=last.pk).delete()
    return _idle(lab, loop, last.text)


def _begun(lab: Lab, loop: Loop, issue: LoopIssue) -> Pause | None:
    try:
        _begin(lab, loop, issue)
    except NotYet as error:
        return Pause(LATER, f"issue {issue.issue_key} cannot be begun yet: {error}"[:300])
    except GivenBack as error:
        return _idle(lab, loop, f"issue {issue.issue_key} was given back: {error}")
    return Pause(timedelta(), f"issue {issue.issue_key} was begun")


def _asleep(loop: Loop) -> Pause | None:
    """An idle loop that takes no issue: nobody but a person, or an event that waits, has work for it."""
    is_called = any(one.topic != events.RESUME for one in stored.events(loop.pending))
    if loop.state != LoopState.IDLE or is_called:
        return None
    return Pause(timedelta(seconds=int(loop.terms["idle_seconds"])), ASLEEP)


def _idle(lab: Lab, loop: Loop, text: str) -> Pause:
    """Wait for the loop's interval; the columns keep whoever asks earlier waiting too."""
    seconds = int(loop.terms["idle_seconds"])
    said = text.strip().rstrip(".")
    why = f"{said[:1].lower()}{said[1:]}; it looks again after {seconds} s, or when somebody writes"
    pause = timedelta(seconds=seconds)
    return Pause(pause, why[:300], {"not_before": lab.now() + pause, "why": why[:300]})


def _ask(lab: Lab, loop: Loop, by: str, seconds: float) -> Found | None:
    """Have the launch pass answer; None when an issue is claimed now."""
    if why := _why_none(loop):
        return Found(State.NONE, why)
    try:
        asked = start_requests.wait(lab, _request(lab, loop, by), seconds)
    except StartRequest.DoesNotExist:  # whoever asked at the same time has heard the answer
        return Found(State.PENDING, WAITS)
    if asked.answer == AnswerCode.STARTED:
        return None
    if asked.answer == AnswerCode.PENDING:
        return Found(State.PENDING, WAITS)
    StartRequest.objects.filter(pk=asked.pk).delete()
    state = State.LATER if asked.answer in UNKNOWN else State.NONE
    return Found(state, asked.text)


def _why_none(loop: Loop) -> str:
    """Why a loop takes no issue, whatever is ready; empty when it may."""
    if loop.stop_asked_at is not None:
        return IS_STOPPING
    terms = beginning.terms_of(loop.run.project_id)
    return beginning.why_not(terms) if terms is not None else ""


def _request(lab: Lab, loop: Loop, by: str) -> StartRequest:
    """The one question of a loop that nobody has heard the answer of; made where there is none.

    An answer that nobody heard for minutes is none any more.
    """
    rows = StartRequest.objects.filter(takes_for=loop.run_id)
    heard = rows.exclude(answer=AnswerCode.STARTED).filter(at__gte=lab.now() - HEARD)
    there = rows.filter(answer=AnswerCode.PENDING).first() or heard.order_by("pk").last()
    if there is not None:
        return there
    project = loop.run.project
    had = list(loop.issues.values_list("issue_key", flat=True))
    try:
        with transaction.atomic():
            rows.exclude(answer__in=[AnswerCode.STARTED, AnswerCode.PENDING]).delete()
            made = StartRequest.objects.create(
                project=project, takes_for=loop.run, without=had, by=by[:150], at=lab.now()
            )
    except IntegrityError:  # somebody has just asked the same
        return rows.latest("pk")
    lab.bell.look(project.slug)
    return made


def _begin(lab: Lab, loop: Loop, issue: LoopIssue) -> str:
    """Branch, worktree and text of a claimed issue; a sentence about it. Raises NotYet, GivenBack."""
    run = Run.objects.select_related("project").get(pk=loop.run_id)
    loop.run = run
    try:
        objective = results.objective(lab, run, wants_open=True)
        mirror.claim_further(lab, run)
        warning = origin.freshen(lab, run.project)
        with lab.repos.hold(run.project.repo(lab.paths)):
            issue.refresh_from_db()
            if issue.moved_at is not None:
                return f"Issue {issue.issue_key} is taken."
            if issue.ended_at is not None:
                raise GivenBack(issue.note or "its loop has ended")
            text = _move(lab, loop, run, issue)
            _keep(
                lab, loop, run, issue, objective, " ".join(part for part in (text, warning) if part)
            )
    except (Refused, NotFound) as error:
        said = lab.mask(str(error)).rstrip(".")
        issue_of_loop.give_back(lab, loop, issue, said)
        raise GivenBack(said) from error
    except (TrackerError, SeamError) as error:
        raise NotYet(lab.mask(str(error)).rstrip(".")) from error
    return f"Issue {issue.issue_key} is taken. {text}"


def _move(lab: Lab, loop: Loop, run: Run, issue: LoopIssue) -> str:
    """Put the worktree on the issue's branch, made of origin's default branch as fetched.

    What git does in one step is not done twice: a worktree on the branch was moved before somebody
    was killed. Raises GivenBack, SeamError.
    """
    repo, path, project = run.project.repo(lab.paths), Path(run.worktree), run.project
    standing = lab.repos.standing(repo, path)
    if not standing.is_linked:
        raise SeamError(f"its worktree {path} is not there any more")
    if standing.branch == issue.branch and issue.fork_point:
        return f"The worktree is on {issue.branch} already."
    commit = lab.repos.upstream(repo, project.default_branch)
    there = lab.repos.tip(repo, f"refs/remotes/origin/{issue.branch}")
    if there is not None and lab.repos.is_ahead(repo, there, project.default_branch):
        raise Refused(f"origin has a branch {issue.branch} with other commits ({there[:7]})")
    here = lab.repos.tip(repo, f"refs/heads/{issue.branch}")
    if here is not None and here != issue.fork_point:
        raise Refused(f"the branch {issue.branch} is there already")
    LoopIssue.objects.filter(pk=issue.pk).update(fork_point=commit)
    issue.fork_point = commit
    clean = bool(loop.terms.get("cleans_up"))
    kept = _save(lab, run, repo, path, issue, clean=clean)
    is_fresh = lab.repos.switch(repo, path, issue.branch, commit, clean=clean)
    base = f"{project.default_branch} ({commit[:7]})"
    told = (
        f"Branch {issue.branch} begins at {base}."
        if is_fresh
        else (
            f"Branch {issue.branch} begins where the worktree was, since its changes were in the way of {base}."
        )
    )
    if kept:
        return f"{told} What was not committed of {run.branch} was kept as a rescue."
    if not clean and lab.repos.is_dirty(path):
        return f"{told} Changes that were not committed are still in the worktree."
    return told


def _save(lab: Lab, run: Run, repo: Path, path: Path, issue: LoopIssue, *, clean: bool) -> bool:
    """Keep what the branch before does not hold; whether anything was kept. Raises SeamError."""
    tip = lab.repos.tip(repo, f"refs/heads/{run.branch}")
    if tip is None:  # renamed or deleted by an agent: the worktree's own commit is what there is
        tip, stays = lab.repos.standing(repo, path).head, False
    else:
        stays = True
        if not clean and lab.repos.is_kept_by(repo, path, run.branch):
            return False
    why = f"run {run.pk} went on to issue {issue.issue_key}"
    made = rescue.keep(lab, run.project, run.branch, tip, path, why=why, tip_stays=stays)
    return made is not None


def _keep(lab: Lab, loop: Loop, run: Run, issue: LoopIssue, objective: str, told: str) -> None:
    """Store that the issue is begun: on its own row, on the run, on the loop and its turn."""
    with transaction.atomic():
        rows = LoopIssue.objects.filter(pk=issue.pk, ended_at=None, moved_at=None)
        if not rows.update(moved_at=lab.now(), objective=objective, fork_point=issue.fork_point):
            raise GivenBack("its loop has ended")
        at = {"branch": issue.branch, "fork_point": issue.fork_point, "prompt": objective}
        mine = Run.objects.active().filter(pk=run.pk)
        mine.update(**at, head="", commits=0, head_before="")
        mine.exclude(mirrored=mirror.CLAIMED).update(mirrored="")
        LoopTurn.objects.filter(loop=loop, issue=issue, ended_at=None).update(
            head_before=issue.fork_point
        )
        now = Loop.objects.get(pk=loop.pk)
        columns: dict[str, Any] = {"objective": objective}
        if now.state == LoopState.IDLE:  # labsite took it, so that its next turn is told
            said = (
                f"Issue {issue.issue_key} was taken for this loop: it is the objective now. {told}"
            )
            left = [one for one in stored.events(now.pending) if one.topic != events.RESUME]
            columns["pending"] = stored.of_events([*left, Event(events.RESUME, said)])
        changed = Loop.objects.filter(pk=loop.pk, version=now.version)
        if not changed.update(**columns, version=F("version") + 1):
            raise NotYet("somebody else changes this loop")
        text = f"issue {issue.issue_key} is begun: {told}"
        announce.tell(lab, NoticeKind.RUN_STEP, text, run=run)
        mirror.ask(lab, run)
