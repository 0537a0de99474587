"""Rows of the database in the shapes of the API. Fields are named one by one: nothing slips out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TypeVar

from django.db.models import Model, QuerySet

from runs.accounts import held
from runs.agents import check_rules
from runs.api import schemas
from runs.api.asked import Paging
from runs.core.states import (
    Outcome,
    ProjectState,
    RunKind,
    RunState,
    Wait,
    WorktreeFate,
)
from runs.dispatch.eligibility import Change, Queue
from runs.dispatch.rules import Waiting
from runs.models import AgentProfile, Notice, Project, Run, Settings
from runs.pulls import schemas as pull_schemas
from runs.pulls.proof_rules import Proof
from runs.pulls.rules import MergeFacts, verdict
from runs.settings.acts import NUMBERS
from runs.waits.acts import Form
from trackers import plain
from trackers.base import PullState
from trackers.builtin.models import Issue, IssueComment, PullComment, PullRequest

Row = TypeVar("Row")
Stored = TypeVar("Stored", bound=Model)


def cut(rows: Sequence[Row], limit: int) -> tuple[Sequence[Row], Row | None]:
    """A page of rows, of which one more than asked for was read; and its last when more follow."""
    return rows[:limit], rows[limit - 1] if len(rows) > limit else None


def page(
    rows: QuerySet[Stored], wanted: Paging, order: str = "-pk"
) -> tuple[Sequence[Stored], int | None]:
    """The page that was asked for, by a number of the rows, and the cursor of the next one."""
    key = order.removeprefix("-")
    if wanted.cursor is not None:
        side = "gt" if key == order else "lt"
        rows = rows.filter(**{f"{key}__{side}": wanted.cursor})
    found, last = cut(list(rows.order_by(order)[: wanted.limit + 1]), wanted.limit)
    return found, getattr(last, key) if last else None


def project(row: Project) -> schemas.Project:
    return schemas.Project(
        id=row.pk,
        name=row.name,
        state=ProjectState(row.state),
        source=row.source,
        default_branch=row.default_branch,
        tracker=row.tracker,
        ready_label=row.ready_label,
        agent=row.agent_id,
        run_budget_minutes=row.run_budget_minutes,
        run_tokens_limit=row.run_tokens_limit,
        run_cost_limit=row.run_cost_limit,
        day_tokens_limit=row.day_tokens_limit,
        day_cost_limit=row.day_cost_limit,
        waits_stop_budget=row.waits_stop_budget,
        clone_progress=row.clone_progress,
        error=row.error,
        warning=" ".join(row.warnings),
        created_at=row.created_at,
        last_opened_at=row.last_opened_at,
        is_auto=row.is_auto,
        parallel_runs=row.parallel_runs,
        streak=row.streak,
        is_paused=row.is_paused,
        last_failure=row.last_failure_id,
    )


def waiting(queue: Queue, found: Sequence[Waiting]) -> schemas.WaitingIssues:
    return schemas.WaitingIssues(
        is_known=queue.ready is not None,
        items=[
            schemas.WaitingIssue(
                issue=one.issue.key,
                title=one.issue.title,
                failed=[
                    schemas.Obstacle(
                        why=failed.why,
                        text=failed.text,
                        only_auto=failed.only_auto,
                        change=change(failed.change),
                    )
                    for failed in one.failed
                ],
                changes=[change(wanted) for wanted in one.changes],
            )
            for one in found
        ],
    )


def change(row: Change) -> schemas.Change:
    return schemas.Change(act=row.act, target=row.target, text=row.text)


def hold(row: AgentProfile, now: datetime) -> schemas.AgentHold | None:
    """Why nothing is started with an agent; None while it is not held."""
    found = held.of_profile(row, now)
    if found is None:
        return None
    return schemas.AgentHold(
        trouble=found.trouble, note=found.note, since=found.at, until=found.until
    )


def agent(
    row: AgentProfile, settings: Settings, now: datetime, tried: Collection[str]
) -> schemas.Agent:
    """A profile; `tried`: the versions of its program that trials started."""
    return schemas.Agent(
        id=row.pk,
        name=row.name,
        mode=AgentProfile.Mode(row.mode),
        models=row.model_names,
        efforts=row.efforts,
        is_chosen=row.pk == settings.agent_id,
        is_found=row.is_found,
        version=row.version,
        untried=check_rules.untried(row.argv, row.version, tried),
        is_logged_in=row.is_logged_in,
        checked_at=row.checked_at,
        hold=hold(row, now),
    )


def issue_row(row: Issue) -> schemas.IssueRow:
    """An issue of a list, annotated with `comment_count`."""
    return schemas.IssueRow(
        number=row.number,
        title=row.title,
        author=row.author,
        labels=sorted(label.name for label in row.labels.all()),
        state="open" if row.is_open else "closed",
        comment_count=getattr(row, "comment_count", 0),
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def issue(row: Issue, comments: schemas.Comments) -> schemas.Issue:
    return schemas.Issue(**issue_row(row).model_dump(), body=row.body, comments=comments)


def comments(rows: Sequence[IssueComment], limit: int) -> schemas.Comments:
    page, last = cut(rows, limit)
    return schemas.Comments(
        items=[schemas.Comment(id=c.pk, author=c.author, body=c.body, at=c.at) for c in page],
        next=last.pk if last else None,
    )


def pull_row(row: PullRequest) -> pull_schemas.PullRow:
    return pull_schemas.PullRow(
        number=row.number,
        title=row.title,
        author=row.author,
        state=PullState(row.state),
        head=row.head,
        base=row.base,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def pull(row: PullRequest) -> pull_schemas.Pull:
    shown = pull_row(row).model_dump()
    was_merged = row.state == PullState.MERGED
    return pull_schemas.Pull(
        **shown,
        body=row.body,
        head_commit=row.head_commit,
        merged_by=row.merge_by if was_merged else "",
        merged_at=row.merge_at if was_merged else None,
        merge_commit=row.merge_commit if was_merged else "",
    )


def mergeable(facts: MergeFacts, proof: Proof) -> pull_schemas.Mergeable:
    said = verdict(facts)
    return pull_schemas.Mergeable(
        can_merge=said.can_merge,
        code=said.kind,
        text=said.text,
        files=list(said.files),
        head=facts.head_tip,
        into=facts.into,
        checks=pull_schemas.Proof(state=proof.state, text=proof.text),
    )


def pull_comment(row: PullComment) -> pull_schemas.PullComment:
    return pull_schemas.PullComment(
        id=row.pk,
        author=row.author,
        body=row.body,
        at=row.at,
        path=row.path,
        line=row.line,
        side=row.side,
        commit=row.commit,
        quote=row.quote,
    )


def run_row(row: Run, now: datetime, settings: Settings) -> schemas.RunRow:
    """A run, whose project is loaded, with its budget at this moment."""
    spent = row.spent(now, row.budget(settings))
    wait = held.wait_of(row, now)
    return schemas.RunRow(
        id=row.pk,
        project=row.project_id,
        issue=row.issue_key,
        issue_title=plain.line(row.issue_title),
        kind=RunKind(row.kind),
        state=RunState(row.state),
        outcome=Outcome(row.outcome) if row.outcome else None,
        reason=row.reason,
        agent=row.agent,
        model=row.model,
        effort=row.effort,
        session=row.session,
        slot=row.slot,
        branch=row.branch,
        worktree=row.worktree,
        worktree_fate=WorktreeFate(row.worktree_fate),
        started_by=row.started_by,
        continues=row.continues_id,
        amends=row.amends,
        requested_at=row.requested_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        held_at=row.held_at,
        held_until=wait.until if wait is not None else None,
        waits=_run_wait(row),
        interrupted=_interrupted(row),
        resumes=row.resumes,
        used_seconds=int(spent.used.total_seconds()),
        budget_seconds=int(spent.limit.total_seconds()),
        waited_seconds=int(row.waited(now).total_seconds()),
        is_budget_stopped=row.is_active and row.budget_stopped_at is not None,
        commits=row.commits,
        proven=row.proven,
        pull_number=row.pull_number,
        pull_url=row.pull_url,
        exit_status=row.exit_status,
        exit_signal=row.exit_signal,
        last_line=row.last_line,
        warning=row.warning,
        told=told(row),
    )


def _run_wait(row: Run) -> schemas.RunWait | None:
    if not row.is_waiting or row.waits_at is None:
        return None
    return schemas.RunWait(
        kind=Wait(row.waits),
        since=row.waits_at,
        note=row.waits_note,
        answer=row.answer,
        answered_by=row.answered_by,
        answered_at=row.answered_at,
        has_changed=row.has_changed_since(row.answered_at),
    )


def _interrupted(row: Run) -> schemas.RunInterrupt | None:
    at = row.turn_interrupted_at
    if at is None or row.outcome:
        return None
    has_changed = row.has_changed_since(at)
    return schemas.RunInterrupt(by=row.turn_interrupted_by, at=at, has_changed=has_changed)


def told(row: Run) -> schemas.AgentTold:
    """What the run's agent said of itself; what it did not say is null."""
    return schemas.AgentTold(
        state=row.state_of_agent if row.agent_state else None,
        until=row.agent_until,
        note=row.agent_note,
        session=row.agent_session,
        model=row.agent_model,
        turns=row.turns,
        tokens_in=row.tokens_in,
        tokens_cached=row.tokens_cached,
        tokens_out=row.tokens_out,
        context_tokens=row.context_tokens,
        context_window=row.context_window,
        cost_usd=float(row.cost_usd) if row.cost_usd is not None else None,
    )


def run(row: Run, now: datetime, settings: Settings, form: Form | None) -> schemas.Run:
    """A run; `form` is how it may be answered now."""
    shown = run_row(row, now, settings).model_dump()
    offers = None
    if form is not None:
        choices = [schemas.RunChoice(digit=one.digit, text=one.text) for one in form.choices]
        offers = schemas.RunOffer(has_text=form.has_text, choices=choices, mark=form.mark)
    shown |= {"prompt": row.prompt, "follow_up": row.follow_up, "last_words": row.last_words}
    return schemas.Run(**shown, offers=offers)


def entry(row: Notice) -> schemas.Entry:
    return schemas.Entry(
        id=row.pk,
        at=row.at,
        kind=row.kind,
        project=row.project_id,
        run=row.run_id,
        watch=row.watch_id,
        issue=row.issue_key,
        text=row.text,
        by=row.by,
        outcome=Outcome(row.outcome) if row.outcome else None,
        times=row.times or 1,
        since=row.since,
    )


def settings(row: Settings) -> schemas.Limits:
    numbers = {name: getattr(row, name) for name in NUMBERS}
    return schemas.Limits(**numbers, agent=row.agent_id, model=row.model, effort=row.effort)
